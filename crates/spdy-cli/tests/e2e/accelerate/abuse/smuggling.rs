//! Ambiguous requests. If two programs on the path parse one differently, one client's bytes become another client's request, or
//! a response is stored under the wrong key.
//!
//! ```text
//!  client ── the case, then GET /after ──▶ spdy accelerate ── the forwarded requests ──▶ origin, which echoes what it parsed
//! ```
//!
//! Each case states what the client gets: a status, or the echo. Three invariants hold for all cases. The origin never gets a
//! target with the word `smuggled`, every head that it gets is unambiguous, and the next request gets its own response.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::support::accelerator::program::Accelerator;
use crate::support::origins::echo::EchoOrigin;

/// Longer than any response takes: a read that reaches this timeout waits for bytes that never arrive.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The request that follows each case on its connection.
pub(crate) const NEXT_REQUEST: &[u8] =
    b"GET /after HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n";

/// An origin, and the accelerator in front of it.
pub(crate) struct SmugglingSetup {
    pub(crate) origin: EchoOrigin,
    pub(crate) accelerator: Accelerator,
}

impl SmugglingSetup {
    pub(crate) fn start() -> Self {
        let origin = EchoOrigin::start("max-age=60", Duration::ZERO);
        let accelerator = Accelerator::start(&format!(
            r#"
            [listen]
            tls = []
            plain = ["127.0.0.1:0"]
            [[site]]
            names = ["site.test", "www.site.test"]
            origin = "http://{}"
            "#,
            origin.address
        ));
        Self {
            origin,
            accelerator,
        }
    }

    /// Sends `bytes` on a new connection. Returns a status or an echo for each response.
    pub(crate) fn responses_to(&self, bytes: &[u8]) -> Vec<String> {
        let bytes_received = exchange(self.accelerator.plain(), bytes);
        let host = format!(" of {}", self.origin.address);
        let responses = parse_responses(&bytes_received).into_iter();
        responses
            .map(|response| response.replace(&host, ""))
            .collect()
    }
}

/// Sends `bytes` and reads until the server closes the connection.
fn exchange(to: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(to).expect("connect");
    socket
        .set_read_timeout(Some(TIMEOUT))
        .expect("set the option");
    // A server that rejects the beginning need not read the rest.
    let _ = socket.write_all(bytes);
    let mut response = Vec::new();
    match socket.read_to_end(&mut response) {
        Ok(_) => response,
        Err(error) if error.kind() == ErrorKind::ConnectionReset => response,
        Err(error) => panic!(
            "{error} after {:?}, for {:?}",
            response.escape_ascii().to_string(),
            bytes[..bytes.len().min(500)].escape_ascii().to_string()
        ),
    }
}

/// The status of each response in `bytes`, or the body if the status is 200.
fn parse_responses(mut bytes: &[u8]) -> Vec<String> {
    let mut responses = Vec::new();
    while let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let status = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let length = head.split("\r\ncontent-length: ").nth(1);
        let length = length.and_then(|rest| rest.lines().next()?.parse::<usize>().ok());
        let body = &bytes[end + 4..];
        let (body, rest) = body.split_at(length.unwrap_or(0).min(body.len()));
        bytes = rest;
        responses.push(match status.as_str() {
            "200" => String::from_utf8_lossy(body).into_owned(),
            _ => status,
        });
    }
    responses
}

/// A POST with these fields and this body.
fn post(fields: &str, body: &str) -> Vec<u8> {
    format!("POST /form HTTP/1.1\r\nHost: site.test\r\n{fields}\r\n{body}").into_bytes()
}

/// A request that no client sends outside of another request.
pub(crate) const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: site.test\r\n\r\n";

/// A request, and the expected responses.
struct Case {
    description: &'static str,
    bytes: Vec<u8>,
    expected: &'static [&'static str],
}

#[test]
fn no_framing_is_ambiguous() {
    let case = |description, bytes, expected| Case {
        description,
        bytes,
        expected,
    };
    let hidden = format!("0\r\n\r\n{SMUGGLED}");
    let cases = [
        case("lengths that differ", post(&format!("Content-Length: 0\r\nContent-Length: {}\r\n", SMUGGLED.len()), SMUGGLED), &["400"]),
        case("lengths that agree", post("Content-Length: 3\r\nContent-Length: 3\r\n", "abc"), &["POST /form, 3 bytes", "GET /after, 0 bytes"]),
        case("a list of lengths that agree", post("Content-Length: 3, 3\r\n", "abc"), &["400"]),
        case("a list of lengths that differ", post("Content-Length: 0, 44\r\n", SMUGGLED), &["400"]),
        case("a length with a sign", post("Content-Length: +3\r\n", "abc"), &["400"]),
        case("a negative length", post("Content-Length: -1\r\n", "abc"), &["400"]),
        case("a length in hexadecimal", post("Content-Length: 0x3\r\n", "abc"), &["400"]),
        case("a length with a space", post("Content-Length: 1 0\r\n", "abc"), &["400"]),
        case("a length that overflows", post("Content-Length: 18446744073709551619\r\n", "abc"), &["400"]),
        case("an empty length", post("Content-Length:\r\n", SMUGGLED), &["400"]),
        case("chunks and a length", post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", &hidden), &["POST /form, 0 bytes"]),
        case("chunks and a length, in reverse order", post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", &hidden), &["POST /form, 0 bytes"]),
        case("an unknown transfer coding", post("Transfer-Encoding: xchunked\r\n", &hidden), &["400"]),
        case("chunks, then another coding", post("Transfer-Encoding: chunked, identity\r\n", &hidden), &["400"]),
        case("gzip and chunked", post("Transfer-Encoding: gzip, chunked\r\n", &hidden), &["501"]),
        case("chunks twice", post("Transfer-Encoding: chunked, chunked\r\n", &hidden), &["501"]),
        case("chunks in two fields", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", &hidden), &["400"]),
        case("only identity", post("Transfer-Encoding: identity\r\n", &hidden), &["400"]),
        case("chunks in quotes", post("Transfer-Encoding: \"chunked\"\r\n", &hidden), &["400"]),
        case("chunked in upper case", post("Transfer-Encoding: CHUNKED\r\n", "3\r\nabc\r\n0\r\n\r\n"), &["POST /form, 3 bytes", "GET /after, 0 bytes"]),
        case("a space before the colon", post("Transfer-Encoding : chunked\r\nContent-Length: 3\r\n", "abc"), &["400"]),
        case("a tab before the coding", post("Transfer-Encoding:\tchunked\r\n", "3\r\nabc\r\n0\r\n\r\n"), &["POST /form, 3 bytes", "GET /after, 0 bytes"]),
        case("a vertical tab before the coding", post("Transfer-Encoding:\x0bchunked\r\n", &hidden), &["400"]),
        case("a NUL after the coding", post("Transfer-Encoding: chunked\0\r\n", &hidden), &["400"]),
        case("an underscore in the name", post("Transfer_Encoding: chunked\r\nContent-Length: 3\r\n", "abc"), &["POST /form, 3 bytes", "GET /after, 0 bytes"]),
        case("a folded coding", post("Transfer-Encoding:\r\n chunked\r\n", &hidden), &["400"]),
        case("a folded field", post("X-Long: a\r\n b\r\nContent-Length: 3\r\n", "abc"), &["400"]),
        case("a bare CR in a value", post("X: a\rTransfer-Encoding: chunked\r\nContent-Length: 3\r\n", "abc"), &["400"]),
        case("a bare LF in a head", post("X: a\nContent-Length: 3\r\n", "abc"), &["POST /form, 3 bytes", "GET /after, 0 bytes"]),
        case("a zero byte in a name", post("X\0: a\r\nContent-Length: 3\r\n", "abc"), &["400"]),
        case("a field without a name", post(": a\r\nContent-Length: 3\r\n", "abc"), &["400"]),
        case("a field without a colon", post("Nothing\r\nContent-Length: 3\r\n", "abc"), &["400"]),
        case("a space before the first header", b"POST /form HTTP/1.1\r\n Transfer-Encoding: chunked\r\nHost: site.test\r\nContent-Length: 3\r\n\r\nabc".to_vec(), &["400"]),
        case("chunks in HTTP/1.0", b"POST /form HTTP/1.0\r\nHost: site.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_vec(), &["400"]),
        case("a chunk size that overflows", post("Transfer-Encoding: chunked\r\n", "10000000000000003\r\nabc\r\n0\r\n\r\n"), &["400"]),
        case("a chunk size with a prefix", post("Transfer-Encoding: chunked\r\n", "0x3\r\nabc\r\n0\r\n\r\n"), &["400"]),
        case("a chunk size with a sign", post("Transfer-Encoding: chunked\r\n", "+3\r\nabc\r\n0\r\n\r\n"), &["400"]),
        case("an invalid chunk size", post("Transfer-Encoding: chunked\r\n", "\r\nabc\r\n0\r\n\r\n"), &["400"]),
        case("a chunk longer than its size", post("Transfer-Encoding: chunked\r\n", "3\r\nabcd\r\n0\r\n\r\n"), &["400"]),
        case("a chunk's line that ends in LF", post("Transfer-Encoding: chunked\r\n", "3\nabc\r\n0\r\n\r\n"), &["400"]),
        case("a LF in a chunk's extension", post("Transfer-Encoding: chunked\r\n", &format!("3;x\nabc\r\n{hidden}")), &["400"]),
        case("a CR in a chunk's extension", post("Transfer-Encoding: chunked\r\n", &format!("3;x\rabc\r\n{hidden}")), &["400"]),
        case("an extension of a chunk", post("Transfer-Encoding: chunked\r\n", "3;a=\"b\"\r\nabc\r\n0\r\n\r\n"), &["POST /form, 3 bytes", "GET /after, 0 bytes"]),
        case("an extension without an end", post("Transfer-Encoding: chunked\r\n", &format!("3;{}\r\nabc\r\n0\r\n\r\n", "x".repeat(1 << 17))), &["400"]),
        case("a length in the trailer", post("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\nContent-Length: 99\r\n\r\n"), &["POST /form, 3 bytes", "GET /after, 0 bytes"]),
        case("a body of GET", b"GET /with-body HTTP/1.1\r\nHost: site.test\r\nContent-Length: 3\r\n\r\nabc".to_vec(), &["GET /with-body, 3 bytes", "GET /after, 0 bytes"]),
        case("a request in the body of GET", format!("GET /with-body HTTP/1.1\r\nHost: site.test\r\nContent-Length: {}\r\n\r\n{SMUGGLED}", SMUGGLED.len()).into_bytes(), &["GET /with-body, 43 bytes", "GET /after, 0 bytes"]),
        case("a hop-by-hop field that names the length", post("Connection: content-length\r\nContent-Length: 3\r\n", "abc"), &["POST /form, 3 bytes", "GET /after, 0 bytes"]),
        case("an upgrade to WebSocket", b"GET /upgraded HTTP/1.1\r\nHost: site.test\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n".to_vec(), &["400", "GET /after, 0 bytes"]),
        case("a WebSocket that the origin does not support", b"GET /socket HTTP/1.1\r\nHost: site.test\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".to_vec(), &["GET /socket, 0 bytes", "GET /after, 0 bytes"]),
        case("an upgrade", b"GET /upgraded HTTP/1.1\r\nHost: site.test\r\nConnection: upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n".to_vec(), &["GET /upgraded, 0 bytes", "GET /after, 0 bytes"]),
        case("an unknown expectation", post("Expect: something\r\nContent-Length: 3\r\n", "abc"), &["POST /form, 3 bytes", "GET /after, 0 bytes"]),
    ];
    assert_cases(&cases);
}

#[test]
fn no_request_line_or_host_is_ambiguous() {
    let line = |line: &str, fields: &str| format!("{line}\r\n{fields}\r\n").into_bytes();
    let host = "Host: site.test\r\n";
    let case = |description, bytes, expected| Case {
        description,
        bytes,
        expected,
    };
    let cases = [
        case("no host", line("GET /a HTTP/1.1", ""), &["400"] as &[&str]),
        case(
            "an empty host",
            line("GET /a HTTP/1.1", "Host:\r\n"),
            &["421", "GET /after, 0 bytes"],
        ),
        case(
            "two hosts",
            line("GET /a HTTP/1.1", "Host: site.test\r\nHost: other.test\r\n"),
            &["400"],
        ),
        case(
            "two hosts that agree",
            line("GET /a HTTP/1.1", "Host: site.test\r\nHost: site.test\r\n"),
            &["400"],
        ),
        case(
            "a list of hosts",
            line("GET /a HTTP/1.1", "Host: site.test, other.test\r\n"),
            &["400"],
        ),
        case(
            "a host with a user",
            line("GET /a HTTP/1.1", "Host: other.test@site.test\r\n"),
            &["400"],
        ),
        case(
            "a host with a path",
            line("GET /a HTTP/1.1", "Host: site.test/other\r\n"),
            &["400"],
        ),
        case(
            "a host with an invalid port",
            line("GET /a HTTP/1.1", "Host: site.test:80x\r\n"),
            &["421", "GET /after, 0 bytes"],
        ),
        case(
            "a host with a port",
            line("GET /port HTTP/1.1", "Host: site.test:81\r\n"),
            &["GET /port, 0 bytes", "GET /after, 0 bytes"],
        ),
        case(
            "a host in upper case",
            line("GET /capitals HTTP/1.1", "Host: SITE.TEST\r\n"),
            &["GET /capitals, 0 bytes", "GET /after, 0 bytes"],
        ),
        case(
            "a host with a final dot",
            line("GET /a HTTP/1.1", "Host: site.test.\r\n"),
            &["421", "GET /after, 0 bytes"],
        ),
        case(
            "a space before the Host's colon",
            line("GET /a HTTP/1.1", "Host : site.test\r\n"),
            &["400"],
        ),
        case(
            "the origin's own name",
            line("GET /a HTTP/1.1", "Host: 127.0.0.1\r\n"),
            &["421", "GET /after, 0 bytes"],
        ),
        case(
            "an absolute target of another host",
            line("GET http://other.test/a HTTP/1.1", host),
            &["421", "GET /after, 0 bytes"],
        ),
        case(
            "an absolute target of the site, another Host",
            line(
                "GET http://site.test/absolute HTTP/1.1",
                "Host: other.test\r\n",
            ),
            &["GET /absolute, 0 bytes", "GET /after, 0 bytes"],
        ),
        case(
            "an absolute target with a user",
            line("GET http://other.test@site.test/a HTTP/1.1", host),
            &["421", "GET /after, 0 bytes"],
        ),
        case(
            "an absolute target without a host",
            line("GET http:///a HTTP/1.1", host),
            &["400"],
        ),
        case(
            "a target of another scheme",
            line("GET ftp://site.test/a HTTP/1.1", host),
            &["400", "GET /after, 0 bytes"],
        ),
        case(
            "a target without a slash",
            line("GET a HTTP/1.1", host),
            &["421", "GET /after, 0 bytes"],
        ),
        case(
            "an asterisk as the target of GET",
            line("GET * HTTP/1.1", host),
            &["400", "GET /after, 0 bytes"],
        ),
        case(
            "OPTIONS *",
            line("OPTIONS * HTTP/1.1", host),
            &["OPTIONS *, 0 bytes", "GET /after, 0 bytes"],
        ),
        case(
            "CONNECT",
            line("CONNECT other.test:443 HTTP/1.1", host),
            &["421", "GET /after, 0 bytes"],
        ),
        case(
            "TRACE",
            line("TRACE /a HTTP/1.1", host),
            &["501", "GET /after, 0 bytes"],
        ),
        case(
            "two spaces in the request line",
            line("GET  /a HTTP/1.1", host),
            &["400"],
        ),
        case(
            "a tab in the line",
            line("GET\t/a\tHTTP/1.1", host),
            &["400"],
        ),
        case(
            "a space in the target",
            line("GET /a b HTTP/1.1", host),
            &["400"],
        ),
        case(
            "a CR in the target",
            line("GET /a\rb HTTP/1.1", host),
            &["400"],
        ),
        case(
            "a zero byte in the target",
            line("GET /a\0b HTTP/1.1", host),
            &["400"],
        ),
        case(
            "a byte beyond ASCII in the target",
            b"GET /\xff HTTP/1.1\r\nHost: site.test\r\n\r\n".to_vec(),
            &["400"],
        ),
        case("no version", line("GET /a", host), &["400"]),
        case(
            "an invalid version",
            line("GET /a HTTP/9.9", host),
            &["400"],
        ),
        case(
            "an unknown method",
            line("FROB /frob HTTP/1.1", host),
            &["FROB /frob, 0 bytes", "GET /after, 0 bytes"],
        ),
        case("an invalid method", line("G(T /a HTTP/1.1", host), &["400"]),
        case(
            "a fragment",
            line("GET /a#b HTTP/1.1", host),
            &["GET /a, 0 bytes", "GET /after, 0 bytes"],
        ),
        case(
            "a very long target",
            line(&format!("GET /{} HTTP/1.1", "x".repeat(1 << 17)), host),
            &["431"],
        ),
        case(
            "a very long field",
            line(
                "GET /a HTTP/1.1",
                &format!("{host}X: {}\r\n", "x".repeat(1 << 20)),
            ),
            &["431"],
        ),
        case(
            "very many fields",
            line(
                "GET /a HTTP/1.1",
                &format!("{host}{}", "X: x\r\n".repeat(1000)),
            ),
            &["431"],
        ),
        case(
            "empty lines before the request",
            [b"\r\n\r\n", &line("GET /empty HTTP/1.1", host)[..]].concat(),
            &["GET /empty, 0 bytes", "GET /after, 0 bytes"],
        ),
        case(
            "a loop",
            line(
                "GET /loop HTTP/1.1",
                &format!("{host}CDN-Loop: site.test\r\n"),
            ),
            &["508", "GET /after, 0 bytes"],
        ),
    ];
    assert_cases(&cases);
}

/// Paths that a parser may confuse with `/secret`, or with each other.
pub(crate) const PATHS: [&str; 60] = [
    "/",
    "//",
    "///",
    "/.",
    "/./",
    "/..",
    "/../secret",
    "/a/../secret",
    "/a/./secret",
    "//secret",
    "/secret/",
    "/secret//",
    "/secret/.",
    "/SECRET",
    "/secret?",
    "/secret??",
    "/secret?a",
    "/secret?a=",
    "/secret?a=1&b=2",
    "/secret?b=2&a=1",
    "/secret;a.css",
    "/secret;jsessionid=1",
    "/secret/x.css",
    "/secret%2fx.css",
    "/secret%2Fx.css",
    "/a%2f..%2fsecret",
    "/a/%2e%2e/secret",
    "/a/%2E%2E/secret",
    "/%73ecret",
    "/secret%00.css",
    "/secret%0a.css",
    "/secret%0d%0aX: y",
    "/secret%23.css",
    "/secret%3f.css",
    "/secret%3F.css",
    "/secret%252fx.css",
    "/secret\\x.css",
    "/a/..\\secret",
    "/secret%5cx.css",
    "/secret%",
    "/secret%zz",
    "/secret%u002f",
    "/secret+x",
    "/secret%20x",
    "/secret,a",
    "/secret:80",
    "/secret@site.test",
    "/http://other.test/secret",
    "/secret|a",
    "/secret\"a\"",
    "/secret<a>",
    "/secret{a}",
    "/secret^",
    "/secret`",
    "/.spdy",
    "/.spdy/",
    "/.spdy/1/-/s/other.test/a",
    "/%2espdy/1/-/s/other.test/a",
    "//.spdy/1/-/s/other.test/a",
    "/a/../.spdy/1/-/s/other.test/a",
];

/// The cache never treats two spellings of a path as one: the path of the request, of the key and of the fetch are the same bytes.
#[test]
fn no_two_paths_share_a_cache_key() {
    let setup = SmugglingSetup::start();
    let responses_to = |target: &str| {
        let request =
            format!("GET {target} HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n");
        setup.responses_to(request.as_bytes())
    };
    // Twice: the second response comes from the cache, under the same path.
    for _ in 0..2 {
        assert_eq!(responses_to("/secret"), ["GET /secret, 0 bytes"]);
        for target in PATHS {
            let responses = responses_to(target);
            let expected = format!("GET {target}, 0 bytes");
            let is_refused = responses == ["400"] || responses == ["404"];
            assert!(
                is_refused || responses == [expected],
                "{target}: {responses:?}"
            );
        }
    }
    assert_origin_got_unambiguous_requests(&setup);
}

/// The origin gets the host and port of the request, and its response may depend on them. So a response is stored for that host
/// only.
#[test]
fn no_two_hosts_share_a_cache_key() {
    let setup = SmugglingSetup::start();
    let names = [
        "site.test",
        "site.test:81",
        "SITE.test",
        "www.site.test",
        "site.test",
    ];
    for name in names {
        let responses = setup.responses_to(
            format!("GET /named HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n").as_bytes(),
        );
        assert_eq!(responses, ["GET /named, 0 bytes"], "{name}");
    }
    let forwarded_hosts: Vec<_> = setup
        .origin
        .requests()
        .iter()
        .flat_map(|request| request.values("x-forwarded-host"))
        .collect();
    assert_eq!(
        forwarded_hosts,
        &names[..4],
        "the last response is stored under the first URL"
    );
}

/// A header of a GET that names another target, method or host is not forwarded: the response would be stored under the wrong key.
#[test]
fn no_header_overrides_target_method_or_host() {
    let setup = SmugglingSetup::start();
    let claims = "X-Original-URL: /smuggled\r\nX-Rewrite-URL: /smuggled\r\nX_Original_URL: /smuggled\r\n\
        X-HTTP-Method-Override: DELETE\r\nX-Host: evil.test\r\nX-Forwarded-Host: evil.test\r\n\
        X_Forwarded_Host: evil.test\r\nX-Forwarded-Server: evil.test\r\nX-Forwarded-Prefix: /evil\r\n\
        X-Forwarded-For: 6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nContent_Length: 66\r\n";
    let head =
        format!("GET /claims HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n{claims}\r\n");
    assert_eq!(
        setup.responses_to(head.as_bytes()),
        ["GET /claims, 0 bytes"]
    );
    let requests = setup.origin.requests();
    let head = String::from_utf8_lossy(&requests[0].head).to_ascii_lowercase();
    for claim in ["smuggled", "evil", "6.6.6.6", "delete", "content_length"] {
        assert!(!head.contains(claim), "{claim} in {head}");
    }
}

/// Every case gets its expected response, and the next request gets its own.
fn assert_cases(cases: &[Case]) {
    let setup = SmugglingSetup::start();
    let mut failures = Vec::new();
    for Case {
        description,
        bytes,
        expected,
    } in cases
    {
        let responses = setup.responses_to(&[bytes, NEXT_REQUEST].concat());
        if responses != *expected {
            failures.push(format!(
                "{description}: expected {expected:?}, found {responses:?}"
            ));
        }
        let next = setup.responses_to(NEXT_REQUEST);
        assert_eq!(next, ["GET /after, 0 bytes"], "after {description}");
    }
    assert!(failures.is_empty(), "{failures:#?}");
    assert_origin_got_unambiguous_requests(&setup);
}

/// No head that the origin got is ambiguous, and no request was smuggled.
pub(crate) fn assert_origin_got_unambiguous_requests(setup: &SmugglingSetup) {
    for request in setup.origin.requests() {
        let head = request.head.escape_ascii();
        assert!(!request.target().contains("smuggled"), "{head}");
        let lengths = request.values("content-length").len();
        let codings = request.values("transfer-encoding").len();
        assert!(lengths + codings <= 1, "{head}");
        assert_eq!(request.values("host").len(), 1, "{head}");
        // An upgrade must be a complete WebSocket handshake.
        match request.values("sec-websocket-key").is_empty() {
            true => assert!(request.values("upgrade").is_empty(), "{head}"),
            false => assert_eq!(request.values("upgrade"), ["websocket"], "{head}"),
        }
    }
}
