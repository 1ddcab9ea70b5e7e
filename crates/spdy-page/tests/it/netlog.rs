//! Imports of Chromium's logs: a real one, and small ones with one defect each.

use std::time::Duration;

use spdy_page::devtools::Observations;
use spdy_page::graph::PageGraph;
use spdy_page::limits::Limits;
use spdy_page::netlog;
use spdy_page::open::{ImportOptions, OpenError, OpenedReplica, read};
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};

use crate::support::netlog_writer::NetLog;
use crate::support::soundness;

/// Chromium 156 on a page of four hosts; only the events and parameters that are used.
const LOG: &str = include_str!("../data/chromium.netlog.json");
/// The DevTools messages of the same load, one on each line.
const DEVTOOLS: &str = include_str!("../data/chromium.devtools");

fn observations() -> Observations {
    let mut observations = Observations::new(&Limits::default());
    DEVTOOLS
        .lines()
        .for_each(|message| observations.take(message, true));
    observations
}

fn open(log: &str) -> Result<OpenedReplica, OpenError> {
    open_with(log, ImportOptions::default())
}

fn open_with(log: &str, options: ImportOptions) -> Result<OpenedReplica, OpenError> {
    let opened = read(log.as_bytes().to_vec().into(), "log.json", &options)?;
    let replica = &opened.replica;
    soundness::assert_sound(replica, "log");
    soundness::assert_lawful(replica, &PageGraph::of(replica), "log");
    Ok(opened)
}

fn one<'a>(replica: &'a Replica, path: &str, status: u16) -> &'a Exchange {
    let mut all = replica.exchanges.iter();
    let found =
        all.find(|exchange| exchange.url.path() == path && exchange.status() == Some(status));
    found.unwrap_or_else(|| panic!("no {path} with {status}"))
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("it is text")
}

/// A page of one exchange, and its socket.
fn page(head: &str, body: &str) -> (NetLog, u64) {
    let mut log = NetLog::default();
    let socket = log.socket("192.0.2.7:80");
    log.exchange("http://a.test/", true, socket, head, body);
    (log, socket)
}

const HTML: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\n";

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
fn devtools_events_add_initiators_priorities_and_exact_times() {
    let observations = observations();
    let recorded = netlog::record(
        LOG.as_bytes(),
        "four",
        "a test",
        &observations,
        &Limits::default(),
    );
    let replica = recorded.unwrap().replica;
    soundness::assert_sound(&replica, "recorded");
    let at = |path: &str| {
        let mut all = replica.exchanges.iter();
        all.position(|exchange| exchange.url.path() == path)
            .expect("it is there")
    };
    let by = |index| Initiator::Resource {
        index,
        at_byte: None,
    };
    assert_eq!(one(&replica, "/", 200).initiator, Initiator::Navigation);
    assert_eq!(one(&replica, "/s.js", 200).initiator, by(at("/")));
    assert_eq!(one(&replica, "/post", 200).initiator, by(at("/s.js")));
    assert_eq!(
        one(&replica, "/real.png", 200).initiator,
        Initiator::Redirect {
            index: at("/r.png")
        }
    );
    assert_eq!(one(&replica, "/big", 206).kind, Kind::Fetch);
    let script = &one(&replica, "/s.js", 200);
    assert_eq!(script.observed.priority.as_deref(), Some("High"));
    assert_eq!(script.observed.compute, Some(Duration::from_micros(1495)));
    assert_eq!(script.started, Some(Duration::from_nanos(20_680_000)));
    assert_eq!(replica.load, Some(Duration::from_nanos(60_437_000)));
    assert_eq!(
        replica.recorded.unwrap().to_string(),
        "2026-11-21T10:00:59.167152Z"
    );
    let graph = PageGraph::of(&replica);
    let node = graph
        .nodes
        .iter()
        .find(|node| node.exchange == at("/s.js"))
        .unwrap();
    assert_eq!(node.compute, Duration::from_micros(1495));
    assert_eq!((observations.requests(), observations.in_flight()), (11, 0));
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

#[test]
fn observed_requests_are_limited_to_a_recordings_maximum() {
    let limits = Limits {
        records: 10,
        ..Limits::default()
    };
    let mut observations = Observations::new(&limits);
    DEVTOOLS
        .lines()
        .for_each(|message| observations.take(message, true));
    assert_eq!(observations.requests(), 10);
    let recorded = netlog::record(LOG.as_bytes(), "x", "x", &observations, &Limits::default());
    let notes = recorded.unwrap().notes.to_string();
    assert!(
        notes.contains("more requests were made than a recording can store"),
        "{notes}"
    );
}

/// The DevTools messages for a request, served from the memory cache or not.
fn devtools_request(number: usize, url: &str, priority: &str, from_memory: bool) -> String {
    let kind = if number == 1 { "Document" } else { "Image" };
    let params = format!(
        r#"{{"requestId":"{number}","request":{{"url":"{url}","method":"GET","initialPriority":"{priority}"}},"timestamp":{number},"type":"{kind}"}}"#
    );
    let sent = format!(r#"{{"method":"Network.requestWillBeSent","params":{params}}}"#);
    let served = format!(
        r#"{{"method":"Network.requestServedFromCache","params":{{"requestId":"{number}"}}}}"#
    );
    if from_memory {
        format!("{sent}\n{served}")
    } else {
        sent
    }
}

#[test]
fn times_and_failures_of_a_load_need_no_log() {
    let mut observations = Observations::new(&Limits::default());
    assert_eq!(observations.load_time(), None);
    for number in 1..=5 {
        let url = format!("http://a.test/{number}");
        observations.take(&devtools_request(number, &url, "Low", false), true);
    }
    let messages = [
        r#"{"method":"Page.domContentEventFired","params":{"timestamp":6.25}}"#,
        r#"{"method":"Page.loadEventFired","params":{"timestamp":6.5}}"#,
        // Complete; without a response; of another origin without CORS; cut off.
        r#"{"method":"Network.loadingFinished","params":{"requestId":"1"}}"#,
        r#"{"method":"Network.loadingFailed","params":{"requestId":"2","errorText":"net::ERR_EMPTY_RESPONSE"}}"#,
        r#"{"method":"Network.loadingFailed","params":{"requestId":"3","corsErrorStatus":{"corsError":"MissingAllowOriginHeader"}}}"#,
        r#"{"method":"Network.responseReceived","params":{"requestId":"4","response":{"timing":{"requestTime":4}}}}"#,
        r#"{"method":"Network.loadingFailed","params":{"requestId":"4","errorText":"net::ERR_ABORTED"}}"#,
    ];
    messages
        .iter()
        .for_each(|message| observations.take(message, true));
    let times = (
        observations.dom_content_loaded_time(),
        observations.load_time(),
    );
    let ms = |ms| Some(Duration::from_millis(ms));
    assert_eq!(times, (ms(5_250), ms(5_500)));
    let failures = observations.failures();
    let failures: Vec<_> = failures
        .iter()
        .map(|it| (&it.url[..], &it.error[..]))
        .collect();
    let expected = [
        ("http://a.test/2", "net::ERR_EMPTY_RESPONSE"),
        ("http://a.test/5", "in progress when the recording ended"),
    ];
    assert_eq!(failures, expected);
}

/// As with QUIC: no event has the address of its sockets.
#[test]
fn addresses_missing_in_the_log_come_from_devtools() {
    let mut log = NetLog::default();
    log.exchange("https://a.test/", true, 4_242, HTML, "hi");
    let received = r#"{"method":"Network.responseReceived","params":{"requestId":"1","response":{"remoteIPAddress":"[2001:db8::7]"}}}"#;
    let mut observations = Observations::new(&Limits::default());
    observations.take(
        &devtools_request(1, "https://a.test/", "VeryHigh", false),
        true,
    );
    observations.take(received, true);
    let limits = Limits::default();
    let recorded = netlog::record(log.text().as_bytes(), "x", "x", &observations, &limits);
    let address = recorded.unwrap().replica.document().address;
    assert_eq!(address, Some("2001:db8::7".parse().unwrap()));
}

#[test]
fn responses_of_a_service_worker_are_counted() {
    let (log, _) = page(HTML, "hi");
    let received = r#"{"method":"Network.responseReceived","params":{"requestId":"2","response":{"fromServiceWorker":true}}}"#;
    let mut observations = Observations::new(&Limits::default());
    for message in [
        &devtools_request(1, "http://a.test/", "VeryHigh", false),
        &devtools_request(2, "http://a.test/x.png", "Low", false),
        received,
    ] {
        observations.take(message, true);
    }
    let limits = Limits::default();
    let recorded = netlog::record(log.text().as_bytes(), "x", "x", &observations, &limits);
    let OpenedReplica { replica, notes } = recorded.unwrap();
    assert_eq!(replica.exchanges.len(), 1);
    assert_eq!(notes.skipped["from a service worker"], 1);
}

#[test]
fn repeated_requests_match_their_own_observation() {
    let (mut log, socket) = page(HTML, "hi");
    let url = "http://a.test/x.png";
    log.exchange(url, false, socket, HTML, "1!");
    let cached = log.start("GET", url, false);
    log.end(cached, 0);
    log.exchange(url, false, socket, HTML, "2!");
    let mut observations = Observations::new(&Limits::default());
    let messages = [
        devtools_request(1, "http://a.test/", "VeryHigh", false),
        devtools_request(2, url, "Low", false),
        devtools_request(3, url, "memory", true),
        devtools_request(4, url, "disk", false),
        devtools_request(5, url, "High", false),
    ];
    messages
        .iter()
        .flat_map(|message| message.lines())
        .for_each(|message| observations.take(message, true));
    let recorded = netlog::record(
        log.text().as_bytes(),
        "x",
        "x",
        &observations,
        &Limits::default(),
    );
    let OpenedReplica { replica, notes } = recorded.unwrap();
    let seen: Vec<_> = replica
        .exchanges
        .iter()
        .map(|exchange| {
            (
                text(&exchange.body),
                exchange.observed.priority.as_deref().unwrap_or_default(),
            )
        })
        .collect();
    assert_eq!(seen, [("hi", "VeryHigh"), ("1!", "Low"), ("2!", "High")]);
    assert_eq!(notes.skipped["from the browser's cache"], 1);
}

/// Chromium looks for a font in its cache before it requests it; DevTools shows one request.
#[test]
fn a_cache_lookup_is_no_failure_of_the_later_request() {
    let (mut log, socket) = page(HTML, "hi");
    let (font, absent) = ("http://a.test/font.woff2", "http://a.test/absent.woff2");
    for url in [font, absent] {
        let look = log.start("GET", url, false);
        log.end(look, -400);
    }
    log.exchange(font, false, socket, HTML, "1!");
    let mut observations = Observations::new(&Limits::default());
    observations.take(
        &devtools_request(1, "http://a.test/", "VeryHigh", false),
        true,
    );
    observations.take(&devtools_request(2, font, "Low", false), true);
    observations.take(&devtools_request(3, absent, "Low", false), true);
    let failed = r#"{"method":"Network.loadingFailed","params":{"requestId":"3","timestamp":4,"errorText":"net::ERR_CACHE_MISS"}}"#;
    observations.take(failed, true);
    let limits = Limits::default();
    let recorded = netlog::record(log.text().as_bytes(), "x", "x", &observations, &limits);
    let OpenedReplica { replica, notes } = recorded.unwrap();
    let failures = replica.failures.iter();
    let failures: Vec<_> = failures.map(|it| (&it.url[..], &it.error[..])).collect();
    assert_eq!(failures, [(absent, "net::ERR_CACHE_MISS")]);
    assert!(notes.skipped.is_empty(), "{notes}");
    let priority = replica.exchanges[1].observed.priority.as_deref();
    assert_eq!(priority, Some("Low"), "the observation is of the request");
}

#[test]
fn invalid_messages_are_ignored() {
    let mut observations = observations();
    let before = format!("{observations:?}");
    for message in [
        "",
        "{",
        "[]",
        "{\"method\":7}",
        "{\"method\":\"Network.requestWillBeSent\"}",
        "{\"method\":\"Network.loadingFinished\",\"params\":{\"requestId\":\"unknown\"}}",
    ] {
        observations.take(message, true);
    }
    assert_eq!(format!("{observations:?}"), before);
}
