//! What is rejected over HTTP/1.1 is rejected over every other protocol: the same corpus over HTTP/2, HTTP/3 and SPDY, and fields
//! that cannot be sent in HTTP/1.1, which must not change the meaning of the request to the origin.

use std::sync::Arc;

use http::Request;
use spdy::body::Body;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy_client::client::{Client, Config};
use spdy_frame::priority::Priority;
use spdy_net::network::SystemNetwork;
use spdy_net::protocol::Protocol;
use spdy_net::tls::certificates::certificates_from_pem;
use spdy_net::tls::verify::Trust;
use spdy_net::tls::{ClientTls, TlsOptions};
use spdy_testkit::wait::WAIT_LIMIT;

use crate::accelerate::abuse::proxied_urls::{SITE, Setup, corpus, setup};
use crate::accelerate::abuse::smuggling::{
    NEXT_REQUEST, PATHS, SMUGGLED, SmugglingSetup, assert_origin_got_unambiguous_requests,
};
use crate::support::clients::raw_frames::{Fields, FrameProtocol};

/// Connection fields of HTTP/1.1. HTTP/2 rejects them; SPDY and HTTP/3 drop them here, and the rest of the request is valid.
const CONNECTION_FIELDS: [&str; 5] = [
    "connection",
    "upgrade",
    "transfer-encoding",
    "content-length",
    "http2-settings",
];

fn has_connection_field(case: &corpus::Case) -> bool {
    let mut names = case.fields.iter().map(|(name, _)| name);
    names.any(|name| CONNECTION_FIELDS.contains(name))
}

/// True if a case with the response `status` was handled correctly, by the origins' requests after the first `requests_before`.
fn is_correct(
    setup: &Setup,
    case: &corpus::Case,
    status: Option<u16>,
    requests_before: usize,
) -> bool {
    let requests = setup.origins.requests().split_off(requests_before);
    match (case.refusal, status) {
        // The HTTP implementation rejected it.
        (_, None) => requests.is_empty(),
        ("not-proxied", Some(404)) => {
            requests.len() == 1 && requests[0].host == SITE && requests[0].target == case.target
        }
        ("not-proxied", Some(400)) => requests.is_empty(),
        ("method", Some(status)) => requests.is_empty() && matches!(status, 400 | 405 | 501),
        (_, Some(status)) => requests.is_empty() && matches!(status, 400 | 404),
    }
}

#[test]
fn every_abuse_of_proxied_urls_is_refused_over_http2_and_spdy() {
    let setup = setup();
    let cases = corpus::cases('1');
    let mut failures = Vec::new();
    for framed in FrameProtocol::ALL {
        for case in &cases {
            // Everything after `#` is removed, so this is an allowed URL.
            if case.name == "fragment"
                || framed == FrameProtocol::Spdy && has_connection_field(case)
            {
                continue;
            }
            let authority = SITE.as_bytes();
            let mut fields: Vec<(&str, &[u8])> = vec![
                (":method", case.method.as_bytes()),
                (":scheme", b"http"),
                (":path", case.target.as_bytes()),
                (":authority", authority),
            ];
            let case_fields = case.fields.iter();
            fields.extend(case_fields.map(|(name, value)| (*name, value.as_bytes())));
            let requests_before = setup.origins.requests().len();
            let status = framed.request_status(setup.program.plain(), &fields, None);
            // In HTTP/2 this is an invalid path, in HTTP/1.1 a URL.
            let is_absolute = case.name == "absolute-form" && matches!(status, Some(400 | 404));
            if !is_correct(&setup, case, status, requests_before) && !is_absolute {
                let requests = setup.origins.requests().split_off(requests_before);
                failures.push((framed, case.name, case.refusal, status, requests));
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
    setup.assert_healthy();
}

#[test]
fn every_abuse_of_proxied_urls_is_refused_over_http3() {
    let setup = setup();
    let pem = setup.origins.certificates.path("authority.pem");
    let pem = std::fs::read(pem).expect("read the certificate");
    let trust = Trust::only(certificates_from_pem(&pem, "a test's").expect("valid PEM"));
    let tls = ClientTls::new(&trust, &TlsOptions::default()).expect("a TLS configuration");
    let runtime = tokio::runtime::Runtime::new().expect("create a runtime");
    let (mut failures, mut cases_sent) = (Vec::new(), 0);
    runtime.block_on(async {
        let mut config = Config::default();
        config.protocols = vec![Protocol::Http3];
        config.tls = Some(tls);
        config.resolve = vec![(SITE.to_owned(), None, [127, 0, 0, 1].into())];
        let runtime = SharedRuntime::new(TokioRuntime::start());
        let client = Client::new(runtime, Arc::new(SystemNetwork), config);
        for case in corpus::cases('1') {
            // Cases that this client cannot send, or sends in another form.
            let is_unsupported = matches!(case.name, "fragment" | "absolute-form");
            let uri = format!("https://{SITE}:{}{}", setup.program.tls.port(), case.target);
            let mut request = Request::builder().method(case.method).uri(uri);
            for (name, value) in &case.fields {
                request = request.header(*name, value);
            }
            let Ok(request) = request.body(Body::empty()) else {
                continue;
            };
            let is_unchanged = request
                .uri()
                .path_and_query()
                .is_some_and(|path| *path == case.target[..]);
            if is_unsupported || !is_unchanged || has_connection_field(&case) {
                continue;
            }
            let requests_before = setup.origins.requests().len();
            let response = client.send(request, Priority::HIGHEST);
            let response = tokio::time::timeout(WAIT_LIMIT, response).await;
            let response = response.unwrap_or_else(|_| panic!("{}: no response", case.name));
            let status = response
                .as_ref()
                .ok()
                .map(|response| response.status().as_u16());
            cases_sent += 1;
            if !is_correct(&setup, &case, status, requests_before) {
                failures.push((
                    case.name,
                    case.refusal,
                    response.map(|response| response.status()),
                ));
            }
        }
    });
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(cases_sent >= 80, "{cases_sent} cases");
    setup.assert_healthy();
}

#[test]
fn no_path_is_confused_over_http2_and_spdy() {
    let setup = SmugglingSetup::start();
    let plain = setup.accelerator.plain();
    for framed in FrameProtocol::ALL {
        // The cache stores this first, so that a path that is mistaken for it would get its response.
        assert_eq!(request_status(framed, plain, "/secret"), Some(200));
        for target in PATHS {
            let requests_before = setup.origin.requests().len();
            let status = request_status(framed, plain, target);
            let requests = setup.origin.requests().split_off(requests_before);
            match status {
                Some(200) if requests.is_empty() => {
                    // A cache hit, stored under its own path.
                    let earlier = setup.origin.requests();
                    assert!(
                        earlier.iter().any(|request| request.target() == target),
                        "{framed:?} {target}"
                    );
                }
                Some(200) => assert_eq!(requests[0].target(), target, "{framed:?}"),
                status => assert!(
                    requests.is_empty() && matches!(status, None | Some(400 | 404)),
                    "{framed:?} {target}: {status:?}, {requests:?}"
                ),
            }
        }
    }
    assert_origin_got_unambiguous_requests(&setup);
}

fn request_status(framed: FrameProtocol, to: std::net::SocketAddr, target: &str) -> Option<u16> {
    let fields: Fields<'_> = &[
        (":method", b"GET"),
        (":scheme", b"http"),
        (":path", target.as_bytes()),
        (":authority", b"site.test"),
    ];
    framed.request_status(to, fields, None)
}

/// In HTTP/2 and SPDY a field can contain the bytes that end a field or a head in HTTP/1.1.
#[test]
fn no_framed_header_smuggles_a_request_to_the_origin() {
    const METHOD: (&str, &[u8]) = (":method", b"POST");
    const SCHEME: (&str, &[u8]) = (":scheme", b"http");
    const PATH: (&str, &[u8]) = (":path", b"/form");
    const HOST: (&str, &[u8]) = (":authority", b"site.test");
    let smuggled = SMUGGLED.as_bytes();
    let with_smuggled = |start: &str| [start.as_bytes(), b"\r\n\r\n", smuggled].concat();
    let (in_path, in_host, in_value) = (
        with_smuggled("/form HTTP/1.1"),
        with_smuggled("site.test"),
        with_smuggled("a"),
    );
    let multiline_name = format!("x: a\r\n\r\n{SMUGGLED}x");
    let chunks = format!("0\r\n\r\n{SMUGGLED}");
    let with = |extra_fields: &[(&'static str, &'static [u8])]| {
        [&[METHOD, SCHEME, PATH, HOST], extra_fields].concat()
    };
    type Case<'a> = (&'a str, Vec<(&'a str, &'a [u8])>, Option<&'a [u8]>);
    let cases: Vec<Case<'_>> = vec![
        (
            "a request in the path",
            vec![METHOD, SCHEME, (":path", &in_path), HOST],
            None,
        ),
        (
            "a request in the method",
            vec![
                (":method", b"GET /smuggled HTTP/1.1\r\nx:"),
                SCHEME,
                PATH,
                HOST,
            ],
            None,
        ),
        (
            "a target in the method",
            vec![(":method", b"GET /smuggled"), SCHEME, PATH, HOST],
            None,
        ),
        (
            "a space in the path",
            vec![METHOD, SCHEME, (":path", b"/a HTTP/1.1"), HOST],
            None,
        ),
        (
            "a request in the host",
            vec![METHOD, SCHEME, PATH, (":authority", &in_host)],
            None,
        ),
        (
            "a request in the scheme",
            vec![
                METHOD,
                (":scheme", b"http://site.test/smuggled?"),
                PATH,
                HOST,
            ],
            None,
        ),
        (
            "a request in a value",
            [&with(&[])[..], &[("x", &in_value)]].concat(),
            None,
        ),
        (
            "a request in a name",
            [&with(&[])[..], &[(&multiline_name[..], b"b")]].concat(),
            None,
        ),
        (
            "CRLF in a value",
            with(&[("x", b"a\r\ntransfer-encoding: chunked")]),
            Some(chunks.as_bytes()),
        ),
        (
            "a LF in a value",
            with(&[("x", b"a\ntransfer-encoding: chunked")]),
            Some(chunks.as_bytes()),
        ),
        (
            "a CR in a value",
            with(&[("x", b"a\rtransfer-encoding: chunked")]),
            Some(chunks.as_bytes()),
        ),
        (
            "a zero byte in a value",
            with(&[("x", b"a\0transfer-encoding: chunked")]),
            Some(chunks.as_bytes()),
        ),
        (
            "chunks",
            with(&[("transfer-encoding", b"chunked")]),
            Some(chunks.as_bytes()),
        ),
        (
            "chunked in upper case",
            with(&[("Transfer-Encoding", b"chunked")]),
            Some(chunks.as_bytes()),
        ),
        (
            "chunked after a space",
            with(&[("transfer-encoding ", b"chunked")]),
            Some(chunks.as_bytes()),
        ),
        (
            "chunked after a colon",
            with(&[("transfer-encoding: chunked\r\nx", b"a")]),
            Some(chunks.as_bytes()),
        ),
        (
            "a shorter length",
            with(&[("content-length", b"0")]),
            Some(smuggled),
        ),
        (
            "a longer length",
            with(&[("content-length", b"999")]),
            Some(smuggled),
        ),
        (
            "two lengths",
            with(&[("content-length", b"0"), ("content-length", b"43")]),
            Some(smuggled),
        ),
        (
            "an invalid length",
            with(&[("content-length", b"0x2b")]),
            Some(smuggled),
        ),
        (
            "a length and no body",
            with(&[("content-length", b"43")]),
            None,
        ),
        (
            "fields of a connection",
            with(&[
                ("connection", b"x-forwarded-for, content-length"),
                ("upgrade", b"h2c"),
                ("te", b"gzip"),
            ]),
            Some(b"abc"),
        ),
        ("two paths", with(&[(":path", b"/smuggled")]), None),
        ("two methods", with(&[(":method", b"GET")]), None),
        ("two hosts", with(&[("host", b"other.test/smuggled")]), None),
        ("no path", vec![METHOD, SCHEME, HOST], None),
        (
            "an empty path",
            vec![METHOD, SCHEME, (":path", b""), HOST],
            None,
        ),
        (
            "an invalid path",
            vec![METHOD, SCHEME, (":path", b"smuggled"), HOST],
            None,
        ),
        (
            "an absolute URL as path",
            vec![
                METHOD,
                SCHEME,
                (":path", b"http://other.test/smuggled"),
                HOST,
            ],
            None,
        ),
        ("no method", vec![SCHEME, PATH, HOST], None),
        (
            "an unknown pseudo-header",
            with(&[(":smuggled", b"/smuggled")]),
            None,
        ),
        (
            "a pseudo-header at the end",
            vec![METHOD, SCHEME, HOST, ("x", b"a"), PATH],
            None,
        ),
        ("an empty name", with(&[("", b"/smuggled")]), None),
    ];
    let setup = SmugglingSetup::start();
    for framed in FrameProtocol::ALL {
        for (what, fields, body) in &cases {
            let requests_before = setup.origin.requests().len();
            let status = framed.request_status(setup.accelerator.plain(), fields, *body);
            let requests = setup.origin.requests().split_off(requests_before);
            assert!(
                requests.len() <= 1,
                "{framed:?}, {what}: one became {requests:?}"
            );
            let was_forwarded = status.is_some_and(|status| status == 200);
            assert_eq!(
                requests.len(),
                usize::from(was_forwarded),
                "{framed:?}, {what}: {status:?}, {requests:?}"
            );
            let next = setup.responses_to(NEXT_REQUEST);
            assert_eq!(next, ["GET /after, 0 bytes"], "{framed:?}, after {what}");
        }
    }
    assert_origin_got_unambiguous_requests(&setup);
}
