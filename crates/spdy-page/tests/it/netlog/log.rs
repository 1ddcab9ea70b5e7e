//! What a log alone has.

use spdy_page::limits::Limits;
use spdy_page::open::{ImportOptions, OpenError, OpenedReplica};
use spdy_page::replica::Exchange;

use crate::support::netlog_writer::NetLog;

use super::samples::{HTML, LOG, one, open, open_with, page, text};

#[test]
fn a_log_of_chromium_has_every_byte_of_heads_and_bodies() {
    let OpenedReplica { replica, notes } = open(LOG).unwrap();
    let statuses: Vec<_> = replica
        .exchanges
        .iter()
        .filter_map(Exchange::status)
        .collect();
    assert_eq!(statuses, [200, 200, 200, 302, 404, 200, 200, 304, 206, 404]);
    assert_eq!(
        text(&one(&replica, "/", 200).response_head),
        "HTTP/1.1 200 Fine thanks\r\ncontent-TYPE:   text/html; charset=utf-8  \r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\n\
         X-Dup: 1\r\nx-dup: 2\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    // gzip with a name and a comment, in chunks with extensions.
    assert_eq!(one(&replica, "/", 200).body[..4], [0x1f, 0x8b, 8, 0x18]);
    // Chromium follows a redirect without reading its body.
    assert_eq!(&one(&replica, "/r.png", 302).body[..], b"bye");
    assert!(text(&one(&replica, "/a.css", 200).response_head).contains("X-Folded: a\r\n  b\r\n"));
    assert_eq!(one(&replica, "/a.css", 304).body, "");
    let post = one(&replica, "/post", 200);
    assert_eq!(&post.observed.request_body[..], b"x=1");
    assert!(text(&post.request_head).contains("\r\nCookie: a=1; b=2\r\n"));
    assert_eq!(post.address, Some([127, 0, 0, 1].into()));
    assert_eq!(replica.failures[0].error, "net::ERR_NAME_NOT_RESOLVED");
    assert_eq!(replica.failures[0].url, "http://x.nowhere.test/z.png");
    assert_eq!(notes.skipped["of the browser's own"], 2);
    assert!(
        notes
            .remarks
            .iter()
            .all(|remark| remark.contains("trailer fields")),
        "{notes}"
    );
}

#[test]
fn a_connection_that_ends_with_no_bytes_keeps_earlier_ones() {
    let head = HTML.replace(": ", ":   ");
    let (mut log, socket) = page(&head, "hi");
    let none = serde_json::json!({"byte_count": 0});
    log.event("SOCKET_BYTES_RECEIVED", 0, socket, &none);
    let whole = open(&log.text()).unwrap().replica;
    assert_eq!(text(&whole.exchanges[0].response_head), head);

    // If bytes were counted but not logged, Chromium's own parsed form is used.
    let some = serde_json::json!({"byte_count": 9});
    log.event("SOCKET_BYTES_RECEIVED", 0, socket, &some);
    let read = open(&log.text()).unwrap();
    assert!(read.notes.to_string().contains("as Chromium decoded them"));
}

#[test]
fn a_truncated_log_is_read_to_its_last_complete_event() {
    let cut = open(&LOG[..LOG.len() - 30]).unwrap();
    assert_eq!(cut.replica.exchanges.len(), 10);
    assert!(
        cut.notes.to_string().contains("the log is incomplete"),
        "{}",
        cut.notes
    );
    let mut least = usize::MAX;
    for end in (1..LOG.len()).rev().step_by(97) {
        let exchanges = open(&LOG[..end]).map_or(0, |opened| opened.replica.exchanges.len());
        assert!(
            exchanges <= least,
            "{exchanges} exchanges in {end} bytes, {least} in more"
        );
        least = exchanges;
    }
    assert_eq!(least, 0);
}

#[test]
fn mismatched_socket_bytes_fall_back_to_chromiums_events() {
    let mut log = NetLog::default();
    let socket = log.socket("192.0.2.7:3128");
    // A CONNECT request to a proxy precedes the requests.
    log.bytes(
        "SOCKET_BYTES_SENT",
        socket,
        b"CONNECT a.test:80 HTTP/1.1\r\n\r\n",
    );
    log.bytes(
        "SOCKET_BYTES_RECEIVED",
        socket,
        b"HTTP/1.1 200 Connected\r\n\r\n",
    );
    log.exchange("http://a.test/", true, socket, HTML, "hi");
    let OpenedReplica { replica, notes } = open(&log.text()).unwrap();
    assert_eq!(text(&replica.document().response_head), HTML);
    assert_eq!(&replica.document().body[..], b"hi");
    assert!(
        notes.to_string().contains("as Chromium decoded them"),
        "{notes}"
    );
}

#[test]
fn a_body_from_events_is_encoded_and_marked_if_cut() {
    let coded = spdy_page::coding::encode(b"<p>some text</p>", "gzip", None).unwrap();
    for (came, refused) in [
        (coded.len(), None),
        (
            coded.len() - 9,
            Some("the body ended before its declared length"),
        ),
    ] {
        let mut log = NetLog::default();
        let id = log.start("GET", "http://a.test/", true);
        // A connection that is not in the log.
        log.bind(id, 4711);
        let params = serde_json::json!({"line": "GET / HTTP/1.1\r\n", "headers": ["Host: a.test"]});
        log.event("HTTP_TRANSACTION_SEND_REQUEST_HEADERS", 0, id, &params);
        let fields = [
            "HTTP/1.1 200 OK",
            "Content-Type: text/html",
            "Content-Encoding: gzip",
        ];
        log.event(
            "HTTP_TRANSACTION_READ_RESPONSE_HEADERS",
            0,
            id,
            &serde_json::json!({"headers": fields}),
        );
        log.bytes("URL_REQUEST_JOB_BYTES_READ", id, &coded[..came]);
        log.bytes(
            "URL_REQUEST_JOB_FILTERED_BYTES_READ",
            id,
            b"<p>some text</p>",
        );
        log.end(id, 0);
        let replica = open(&log.text()).unwrap().replica;
        assert_eq!(replica.document().body[..], coded[..came]);
        assert_eq!(replica.document().observed.refused.as_deref(), refused);
    }
}

#[test]
fn a_request_that_is_sent_again_is_one_exchange() {
    let mut log = NetLog::default();
    let (dead, alive) = (log.socket("192.0.2.7:80"), log.socket("192.0.2.7:80"));
    let id = log.start("GET", "http://a.test/", true);
    let head = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    log.send(id, dead, head);
    log.send(id, alive, head);
    log.answer(
        id,
        alive,
        format!("{HTML}hi").as_bytes(),
        &["HTTP/1.1 200 OK"],
        b"hi",
    );
    let replica = open(&log.text()).unwrap().replica;
    assert_eq!(replica.exchanges.len(), 1);
    assert_eq!(text(&replica.document().response_head), HTML);
}

#[test]
fn cut_bodies_and_failed_requests_are_reported() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9\r\n\r\n";
    let (mut log, _) = page(head, "half");
    let id = log.start("GET", "http://a.test/gone", false);
    log.end(id, -3);
    let other = log.start("GET", "http://a.test/unknown", false);
    log.end(other, -4711);
    let cached = log.start("GET", "http://a.test/cached", false);
    log.end(cached, 0);
    let OpenedReplica { replica, notes } = open(&log.text()).unwrap();
    let refused = replica.document().observed.refused.as_deref();
    assert_eq!(refused, Some("the body ended before its declared length"));
    let errors: Vec<_> = replica
        .failures
        .iter()
        .map(|failure| &failure.error[..])
        .collect();
    assert_eq!(errors, ["net::ERR_ABORTED", "net error -4711"]);
    assert_eq!(notes.skipped["from the browser's cache"], 1);
}

#[test]
fn http_2_keeps_fields_in_order_and_bodies_out_of_frames() {
    let mut log = NetLog::default();
    let frames = [
        &[0, 0, 0, 4, 0, 0, 0, 0, 0][..],
        &[0, 0, 4, 0, 0x8, 0, 0, 0, 1, 1, b'h', b'i', 0],
        &[0, 0, 1, 0, 0, 0, 0, 0, 1, b'!'],
        &[0, 0, 2, 1, 0x5, 0, 0, 0, 1, 0, 0],
    ];
    let answers: [&[&str]; 3] = [
        &[":status: 103", "link: </a.css>"],
        &[
            ":status: 200",
            "b: 2",
            "content-type: text/html",
            "set-cookie: x=1\0y=2",
            "empty:",
            "a: 1",
        ],
        &["trailer: 1"],
    ];
    let sent = [
        &[0, 0, 0, 4, 0, 0, 0, 0, 0][..],
        &[0, 0, 3, 0, 0x1, 0, 0, 0, 1, b'x', b'=', b'1'],
    ];
    log.http2(
        "https://a.test/",
        true,
        &answers,
        &sent.concat(),
        &frames.concat(),
    );
    let OpenedReplica { replica, notes } = open(&log.text()).unwrap();
    let document = replica.document();
    assert_eq!(
        text(&document.response_head),
        "HTTP/1.1 200 OK\r\nb: 2\r\ncontent-type: text/html\r\nset-cookie: x=1\r\nset-cookie: y=2\r\nempty: \r\na: 1\r\n\r\n"
    );
    assert_eq!(
        text(&document.request_head),
        "GET / HTTP/1.1\r\nHost: a.test\r\naccept: */*\r\n\r\n"
    );
    assert_eq!(&document.body[..], b"hi!");
    assert_eq!(&document.observed.request_body[..], b"x=1");
    assert_eq!(document.observed.protocol.as_deref(), Some("h2"));
    assert_eq!(document.observed.refused, None);
    assert_eq!(document.address, Some("::1".parse().unwrap()));
    assert!(notes.to_string().contains("trailer fields"), "{notes}");
}

#[test]
fn one_page_of_several_is_taken_by_its_number() {
    let (mut log, socket) = page(HTML, "hi");
    log.exchange("http://a.test/x.png", false, socket, HTML, "no");
    log.exchange("http://a.test/two", true, socket, HTML, "me");
    log.exchange("http://a.test/y.png", false, socket, HTML, "no");
    let of_page = |page| {
        let options = ImportOptions {
            page,
            ..ImportOptions::default()
        };
        let opened = open_with(&log.text(), options)?;
        let paths = opened
            .replica
            .exchanges
            .iter()
            .map(|exchange| exchange.url.path().to_owned());
        Ok::<Vec<String>, OpenError>(paths.collect())
    };
    assert_eq!(of_page(None).unwrap(), ["/", "/x.png"]);
    assert_eq!(of_page(Some(2)).unwrap(), ["/two", "/y.png"]);
    assert!(matches!(
        of_page(Some(3)),
        Err(OpenError::NoSuchPage { page: 3, pages: 2 })
    ));
}

#[test]
fn a_log_without_a_page_is_an_error() {
    let reason = |log: &str| open(log).unwrap_err().to_string();
    assert_eq!(
        reason("{\"constants\":{},\"events\":[]}"),
        "NetLog: no event types in the log's constants"
    );
    assert!(
        reason("{\"constants\":{},\"events\":[7]}").starts_with("NetLog: invalid type: integer")
    );
    let mut log = NetLog::default();
    assert_eq!(
        reason(&log.text()),
        "no page load in the recording: the log has no request for a page"
    );
    let id = log.start("GET", "http://a.test/", true);
    log.end(id, -3);
    assert_eq!(
        reason(&log.text()),
        "no page load in the recording: http://a.test/: net::ERR_ABORTED"
    );
}

#[test]
fn one_exchange_or_one_byte_past_a_limit_is_refused() {
    let (log, _) = page(HTML, "hi");
    let with = |limits: Limits| {
        let options = ImportOptions { page: None, limits };
        open_with(&log.text(), options).map(|opened| opened.replica.exchanges.len())
    };
    let usual = Limits::default();
    let head_bytes = HTML.len();
    for (fits, past) in [
        (
            Limits {
                body_bytes: 2,
                ..usual
            },
            Limits {
                body_bytes: 1,
                ..usual
            },
        ),
        (
            Limits {
                head_bytes,
                ..usual
            },
            Limits {
                head_bytes: head_bytes - 1,
                ..usual
            },
        ),
        (
            Limits {
                records: 4,
                ..usual
            },
            Limits {
                records: 3,
                ..usual
            },
        ),
    ] {
        assert_eq!(with(fits).unwrap(), 1);
        assert!(
            matches!(with(past), Err(OpenError::Limit { .. })),
            "{past:?}"
        );
    }
}
