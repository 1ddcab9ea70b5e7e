//! Origins that stall, close early, send wrong lengths, endless bodies or invalid responses. The program serves and stores no wrong
//! byte, reports the failure to the client, bounds its memory, and still serves other requests.

use std::io::Write as _;
use std::sync::LazyLock;
use std::thread;

use crate::support::accelerator::accelerated_site::{AcceleratedSite, Setting};
use crate::support::clients::raw_client::RawResponse;
use crate::support::origins::scripted::{OriginRequest, Origins, Step, complete_response};

const SITE: &str = "www.site.test";
const CDN: &str = "cdn.test";
const MIB: usize = 1 << 20;

/// Maximum growth of the program's memory in this test, bytes: one page of the maximum size (64 MiB), one response that might have
/// been stored (32 MiB), and memory that the allocator has not returned. More rounds do not increase it.
const MAX_GROWTH: u64 = 160 << 20;

fn gzip(text: &[u8], repeats: usize) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..repeats {
        out.write_all(text).expect("writing to memory cannot fail");
    }
    out.finish().expect("writing to memory cannot fail")
}

/// Twice the maximum size of a page, compressed to 128 KiB.
static BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| gzip(&[b' '; MIB], 128));

fn send_text(text: &str) -> Step {
    Step::Send(text.as_bytes().to_vec())
}

const CSS: &str = "Content-Type: text/css\r\nCache-Control: max-age=600\r\n";
const HTML: &str = "Content-Type: text/html\r\nCache-Control: max-age=600\r\n";
const PNG: &str = "Content-Type: image/png\r\nCache-Control: max-age=600\r\n";

fn respond(request: &OriginRequest) -> Vec<Step> {
    let cut = |kind: &str, body: &[u8]| {
        let head = format!("HTTP/1.1 200 OK\r\n{kind}Content-Length: 1000\r\n\r\n");
        vec![Step::Send([head.as_bytes(), body].concat()), Step::Close]
    };
    let coded = |kind: &str, body: &[u8]| {
        complete_response(&format!("200 OK\r\n{kind}Content-Encoding: gzip\r\n"), body)
    };
    match request.target.as_str() {
        "/good" => complete_response(&format!("200 OK\r\n{HTML}"), b"<p>good"),
        "/stalls" => vec![Step::Stall],
        "/stalls-in-head" => vec![send_text("HTTP/1.1 200 OK\r\nContent-Ty"), Step::Stall],
        "/stalls-in-body" => vec![
            send_text(&format!(
                "HTTP/1.1 200 OK\r\n{PNG}Content-Length: 1000\r\n\r\nhalf"
            )),
            Step::Stall,
        ],
        "/resets" => vec![Step::Reset],
        "/resets-in-body" => vec![
            send_text(&format!(
                "HTTP/1.1 200 OK\r\n{PNG}Content-Length: 1000\r\n\r\nhalf"
            )),
            Step::Reset,
        ],
        "/closes" => vec![Step::Close],
        "/too-short" => cut(PNG, b"half"),
        "/too-short-page" => cut(HTML, b"<p>half"),
        "/too-short-sheet" => cut(CSS, b"p { color: red } /* half"),
        "/too-long" => vec![
            send_text(&format!(
                "HTTP/1.1 200 OK\r\n{PNG}Content-Length: 4\r\n\r\n"
            )),
            send_text("goodHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"),
        ],
        "/chunks-cut" => vec![
            send_text(&format!(
                "HTTP/1.1 200 OK\r\n{PNG}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
            )),
            Step::Close,
        ],
        "/chunks-wrong" => vec![
            send_text(&format!(
                "HTTP/1.1 200 OK\r\n{PNG}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n"
            )),
            Step::Close,
        ],
        "/two-lengths" => vec![
            send_text(&format!(
                "HTTP/1.1 200 OK\r\n{PNG}Content-Length: 4\r\nContent-Length: 8\r\n\r\ngoodgood"
            )),
            Step::Close,
        ],
        "/length-and-chunks" => vec![
            send_text(&format!(
                "HTTP/1.1 200 OK\r\n{PNG}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
            )),
            Step::Close,
        ],
        "/no-length" => vec![
            send_text(&format!(
                "HTTP/1.1 200 OK\r\nConnection: close\r\n{PNG}\r\nto the end"
            )),
            Step::Close,
        ],
        "/garbage" => vec![
            send_text("\u{1}\u{2}\u{3} this is no HTTP at all\r\n\r\n"),
            Step::Close,
        ],
        "/another-protocol" => vec![send_text("SSH-2.0-OpenSSH_9.2\r\n"), Step::Close],
        "/unknown-status" => vec![
            send_text("HTTP/1.1 99 What\r\nContent-Length: 0\r\n\r\n"),
            Step::Close,
        ],
        "/switches" => vec![
            send_text("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
            Step::Close,
        ],
        "/endless-early-hints" => vec![Step::Forever(
            b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".to_vec(),
        )],
        "/endless-head" => vec![
            send_text("HTTP/1.1 200 OK\r\n"),
            Step::Forever(b"X-Field: and so on\r\n".repeat(500)),
        ],
        "/endless-field" => vec![
            send_text("HTTP/1.1 200 OK\r\nX-Field: "),
            Step::Forever(vec![b'a'; 16 << 10]),
        ],
        "/endless" => vec![
            send_text(&format!(
                "HTTP/1.1 200 OK\r\n{PNG}Transfer-Encoding: chunked\r\n\r\n"
            )),
            Step::Forever([&b"4000\r\n"[..], &[b'x'; 0x4000], b"\r\n"].concat()),
        ],
        "/endless-sheet" => vec![
            send_text(&format!(
                "HTTP/1.1 200 OK\r\n{CSS}Transfer-Encoding: chunked\r\n\r\n"
            )),
            Step::Forever([&b"4000\r\n"[..], &[b'x'; 0x4000], b"\r\n"].concat()),
        ],
        "/endless-tag" => vec![
            send_text(&format!(
                "HTTP/1.1 200 OK\r\n{HTML}Transfer-Encoding: chunked\r\n\r\n7\r\n<img a=\r\n"
            )),
            Step::Forever([&b"4000\r\n"[..], &[b'x'; 0x4000], b"\r\n"].concat()),
        ],
        "/bomb.css" => coded(CSS, &BOMB),
        "/bomb.html" => coded(HTML, &BOMB),
        "/bomb.png" => coded(PNG, &BOMB),
        "/cut.css" => {
            let coded_text = gzip(b"p { color: red } ", 1000);
            coded(CSS, &coded_text[..coded_text.len() - 9])
        }
        "/cut.html" => {
            let coded_text = gzip(b"<p>hello</p>", 1000);
            coded(HTML, &coded_text[..coded_text.len() - 9])
        }
        "/no-gzip.css" => coded(CSS, b"p { color: red }"),
        "/no-gzip.html" => coded(HTML, b"<p>this was never compressed"),
        "/wrong-sum.css" => {
            let mut coded_text = gzip(b"p { color: red } ", 1000);
            let len = coded_text.len();
            coded_text[len - 6] ^= 1;
            coded(CSS, &coded_text)
        }
        _ => complete_response("404 Not Found\r\n", b""),
    }
}

fn setup() -> (Origins, AcceleratedSite) {
    let origins = Origins::start(&[(SITE, "http"), (CDN, "http")], |request, _| {
        respond(request)
    });
    let cdn = origins.addresses.address(CDN).port();
    let setting = Setting {
        // Listing a host with its port allows the program to connect to that port.
        // The timeouts are long enough for a busy machine.
        upstream: "head_timeout_s = 5\nbody_timeout_s = 5\nfailures = 0\nallow_addresses = ['127.0.0.2/32']",
        site: &format!("[[site.rewrite.hosts]]\nhost = '{CDN}:{cdn}'\nscheme = 'http'\n"),
        ..Setting::default()
    };
    let program = AcceleratedSite::start(&origins, &setting);
    (origins, program)
}

/// The program still serves requests.
fn assert_healthy(program: &AcceleratedSite) {
    let response = program.get(SITE, "/good", "");
    assert_eq!(
        (response.status, response.text()),
        (200, "<p>good".to_owned()),
        "{}",
        response.head
    );
}

/// The response reports that the origin's response was incomplete: by its status, or because it is truncated.
fn assert_reports_failure(target: &str, response: &RawResponse, statuses: &[u16]) {
    if response.status == 200 {
        assert!(
            statuses.contains(&200),
            "{target}: {} {}",
            response.head,
            response.text()
        );
        assert!(
            !response.is_complete,
            "{target}: a truncated body was sent as complete: {} {}",
            response.head,
            response.text()
        );
        return;
    }
    assert!(
        statuses.contains(&response.status),
        "{target}: expected {statuses:?}, found {:?}",
        response.head
    );
    let proxy_status = response.field("proxy-status").unwrap_or_default();
    assert!(
        proxy_status.starts_with("spdy; error="),
        "{target}: {}",
        response.head
    );
    assert!(
        response.text().starts_with("the origin "),
        "{target}: {}",
        response.text()
    );
}

#[test]
fn a_truncated_response_is_never_served_as_complete_or_stored() {
    let (origins, program) = setup();
    let cases = [
        ("/stalls", &[504][..]),
        ("/stalls-in-head", &[504]),
        ("/stalls-in-body", &[200]),
        ("/resets", &[502]),
        ("/resets-in-body", &[200, 502]),
        ("/closes", &[502]),
        ("/too-short", &[200]),
        ("/too-short-page", &[200]),
        ("/too-short-sheet", &[200, 502]),
        ("/chunks-cut", &[200]),
        ("/chunks-wrong", &[200]),
        ("/two-lengths", &[502]),
        ("/length-and-chunks", &[502]),
        ("/garbage", &[502]),
        ("/another-protocol", &[502]),
        ("/unknown-status", &[502]),
        ("/switches", &[502]),
        ("/cut.css", &[200, 502]),
        ("/cut.html", &[200, 502]),
        ("/no-gzip.css", &[200, 502]),
        ("/no-gzip.html", &[200, 502]),
        ("/wrong-sum.css", &[200, 502]),
    ];
    // Both for the site itself and for another host. Pages of other hosts are not proxied.
    let port = origins.addresses.address(CDN).port();
    let hosts = [
        (SITE, String::new()),
        (CDN, format!("/.spdy/1/-/p/{CDN}~{port}")),
    ];
    // All at once: no request waits for another one's stalled origin.
    thread::scope(|scope| {
        let host_cases = hosts.iter().flat_map(|host| cases.map(|case| (host, case)));
        for ((host, prefix), (target, statuses)) in host_cases {
            if *host == CDN && (target.ends_with("page") || target.ends_with("html")) {
                continue;
            }
            let (origins, program) = (&origins, &program);
            scope.spawn(move || {
                for round in 0..2 {
                    let count_requests = || {
                        origins
                            .requests()
                            .iter()
                            .filter(|request| request.host == *host && request.target == target)
                            .count()
                    };
                    let requests_before = count_requests();
                    let response = program.get(SITE, &format!("{prefix}{target}"), "");
                    assert_reports_failure(&format!("{host}{target}"), &response, statuses);
                    // Failures of another host are cached for a while.
                    let is_dead = *host == CDN && response.head.contains("detail=negative");
                    assert!(
                        count_requests() > requests_before || (round > 0 && is_dead),
                        "{host}{target}: round {round} was a cache hit: {}",
                        response.head
                    );
                    assert!(
                        !response.text().contains("wrong"),
                        "{host}{target}: {}",
                        response.text()
                    );
                }
            });
        }
    });
    assert_healthy(&program);
}

#[test]
fn bytes_after_a_response_are_discarded() {
    let (origins, program) = setup();
    let response = program.get(SITE, "/too-long", "");
    assert_eq!(
        (response.status, response.text()),
        (200, "good".to_owned()),
        "{}",
        response.head
    );
    for _ in 0..3 {
        assert_healthy(&program);
        assert_eq!(program.get(SITE, "/gone", "").status, 404);
    }
    let second_response = program.get(SITE, "/too-long", "");
    assert_eq!(second_response.text(), "good", "{}", second_response.head);
    let without_length = program.get(SITE, "/no-length", "");
    assert_eq!(without_length.text(), "to the end");
    assert!(
        origins.connections(SITE) >= 2,
        "a connection with unread bytes was reused"
    );
}

#[test]
fn endless_responses_are_cut_off_within_memory_limits() {
    let (_origins, program) = setup();
    assert_healthy(&program);
    LazyLock::force(&BOMB);
    let memory_before = program.memory();
    for _ in 0..2 {
        for (target, statuses) in [
            ("/endless-head", &[502, 504][..]),
            ("/endless-field", &[502, 504]),
            ("/endless-early-hints", &[502, 504]),
        ] {
            assert_reports_failure(target, &program.get(SITE, target, ""), statuses);
        }
        for target in ["/endless-sheet", "/bomb.css", "/bomb.html"] {
            for _ in 0..2 {
                let response = program.get(SITE, target, "Accept-Encoding: gzip\r\n");
                assert_reports_failure(target, &response, &[200, 502]);
            }
        }
        // These are streamed: the client reads as much as it wants, and disconnects.
        for target in ["/endless", "/endless-tag"] {
            let request = format!("GET {target} HTTP/1.1\r\nHost: {SITE}\r\n\r\n");
            let response = program.begin(request.as_bytes()).end(64 * MIB);
            assert_eq!(
                (response.status, response.is_complete),
                (200, false),
                "{target}"
            );
            assert!(
                response.body.len() > 60 * MIB,
                "{target}: {} bytes",
                response.body.len()
            );
        }
    }
    // A response that is not rewritten is not decompressed.
    let response = program.get(SITE, "/bomb.png", "Accept-Encoding: gzip\r\n");
    assert!(
        response.is_complete && response.body.len() < MIB,
        "{}",
        response.head
    );
    assert_healthy(&program);
    if let (Some(memory_before), Some(memory_after)) = (memory_before, program.memory()) {
        let growth = memory_after.saturating_sub(memory_before);
        assert!(
            growth <= MAX_GROWTH,
            "from {memory_before} to {memory_after} bytes"
        );
    }
}
