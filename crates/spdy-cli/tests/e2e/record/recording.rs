//! `spdy record` with a real Chromium: the replica has exactly what the origin sent, and `spdy serve` serves it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use serde_json::Value;
use spdy_net::protocol::Protocol;
use spdy_net::tls::verify::Trust;
use spdy_net::tls::{ClientTls, TlsOptions};
use spdy_page::builtin;
use spdy_page::head::{Head, authority, head_len, target};
use spdy_page::open::open;
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};
use spdy_testkit::wait::{WAIT_LIMIT, with_read_timeout};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::files::sha256;
use crate::support::origins::raw::{RawOrigin, SentExchange};
use crate::support::peers::{is_installed, peers_enabled, require};
use crate::support::program::{ServeProcess, run_expecting, spdy};

/// Records the site. Returns the printed report and the replica.
fn record(origin: &RawOrigin, output: &Path, options: &[&str]) -> (Value, Replica) {
    let mut command = spdy(&["record", &origin.url(), "--json", "--insecure"]);
    for resolve in origin.resolve() {
        command.args(["--resolve", &resolve]);
    }
    let output_text = output.to_str().expect("the path is UTF-8");
    let output = run_expecting(0, command.args(["-o", output_text]).args(options));
    let report = serde_json::from_slice(&output.stdout).expect("valid JSON");
    let import = open(output_text).expect("a replica was written");
    (report, import.replica)
}

/// Exchanges sorted by URL and method, like [`RawOrigin::exchanges`].
fn sorted(replica: &Replica) -> Vec<&Exchange> {
    let mut exchanges: Vec<_> = replica.exchanges.iter().collect();
    exchanges.sort_by_key(|exchange| (exchange.url.to_string(), exchange.method.to_string()));
    exchanges
}

/// The first recorded exchange with this path and status.
fn find_exchange<'a>(replica: &'a Replica, path: &str, status: u16) -> &'a Exchange {
    let mut all = replica.exchanges.iter();
    let exchange =
        all.find(|exchange| exchange.url.path() == path && exchange.status() == Some(status));
    exchange.unwrap_or_else(|| panic!("no {path} with {status}"))
}

#[test]
fn a_site_of_four_hosts_is_recorded_and_served_again_byte_for_byte() {
    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let origin = RawOrigin::start();
    let folder = tempfile::tempdir().expect("create a folder");
    let file = folder.path().join("four.warc.gz");
    let (report, replica) = record(&origin, &file, &[]);

    assert_is_what_was_sent(&replica, &origin.exchanges());
    assert_failures_reported(&report, &replica);
    assert_is_served(&file, &replica);
}

/// The replica has the heads and bodies of exactly the sent requests and responses.
fn assert_is_what_was_sent(replica: &Replica, sent_exchanges: &[SentExchange]) {
    let recorded = sorted(replica);
    let names = |of: &dyn Fn(usize) -> String, count: usize| (0..count).map(of).collect::<Vec<_>>();
    assert_eq!(
        names(
            &|at| format!("{} {}", recorded[at].method, recorded[at].url),
            recorded.len()
        ),
        names(
            &|at| format!("{} {}", sent_exchanges[at].method, sent_exchanges[at].url),
            sent_exchanges.len()
        )
    );
    for (exchange, sent_exchange) in recorded.iter().zip(sent_exchanges) {
        let what = format!("{} {}", sent_exchange.method, sent_exchange.url);
        for (part, recorded, sent_bytes) in [
            (
                "request head",
                &exchange.request_head,
                &sent_exchange.request_head,
            ),
            (
                "request body",
                &exchange.observed.request_body,
                &sent_exchange.request_body,
            ),
            ("head", &exchange.response_head, &sent_exchange.head),
            ("body", &exchange.body, &sent_exchange.body),
        ] {
            let text = String::from_utf8_lossy(recorded);
            assert_eq!(
                sha256(recorded),
                sha256(sent_bytes),
                "{what}: {part}: {text:?}"
            );
        }
        assert_eq!(
            exchange.observed.protocol.as_deref(),
            Some("http/1.1"),
            "{what}"
        );
        assert!(exchange.address.is_some(), "{what}: no address");
        assert!(
            exchange.started.is_some() && exchange.wait.is_some(),
            "{what}: no times"
        );
        assert!(exchange.observed.priority.is_some(), "{what}: no priority");
    }
    let statuses = [
        ("/", 200, Kind::Document),
        ("/style.css", 200, Kind::Stylesheet),
        ("/again", 200, Kind::Fetch),
        ("/again", 304, Kind::Fetch),
        ("/script.js", 200, Kind::Script),
        ("/logo.png", 302, Kind::Image),
        ("/real.png", 200, Kind::Image),
        ("/gone.png", 404, Kind::Image),
        ("/post", 201, Kind::Fetch),
        ("/big", 206, Kind::Fetch),
        ("/to-the-end", 200, Kind::Fetch),
        ("/nothing", 204, Kind::Fetch),
        ("/cut", 200, Kind::Fetch),
    ];
    for (path, status, kind) in statuses {
        assert_eq!(find_exchange(replica, path, status).kind, kind, "{path}");
    }
    let at = |path: &str, status| {
        let expected_exchange = find_exchange(replica, path, status);
        let mut all = replica.exchanges.iter();
        all.position(|exchange| std::ptr::eq(exchange, expected_exchange))
            .expect("a position")
    };
    let (page, script, logo) = (at("/", 200), at("/script.js", 200), at("/logo.png", 302));
    assert_eq!(replica.start, page);
    assert_eq!(
        find_exchange(replica, "/", 200).initiator,
        Initiator::Navigation
    );
    let by = |index| Initiator::Resource {
        index,
        at_byte: None,
    };
    assert_eq!(
        find_exchange(replica, "/script.js", 200).initiator,
        by(page)
    );
    assert_eq!(find_exchange(replica, "/post", 201).initiator, by(script));
    assert_eq!(
        find_exchange(replica, "/real.png", 200).initiator,
        Initiator::Redirect { index: logo }
    );
    let cookies = Head::parse(&find_exchange(replica, "/post", 201).request_head)
        .and_then(|head| head.value("cookie"));
    assert_eq!(cookies, Some("a=1; b=2"));
    assert!(
        find_exchange(replica, "/script.js", 200)
            .observed
            .compute
            .is_some()
    );
    assert!(replica.load > replica.dom_content_loaded && replica.dom_content_loaded.is_some());
}

/// Failures are stored in the replica and reported.
fn assert_failures_reported(report: &Value, replica: &Replica) {
    assert_eq!(report["exchanges"], replica.exchanges.len());
    assert_eq!(report["hosts"], 4);
    let errors: Vec<_> = report["errors"].as_array().into_iter().flatten().collect();
    let is_missing_image = |error: &&&Value| {
        error["url"]
            .as_str()
            .is_some_and(|url| url.ends_with("/gone.png"))
    };
    assert_eq!(
        errors.iter().filter(is_missing_image).count(),
        1,
        "{report}"
    );
    assert_eq!(
        report["failures"][0]["url"], "http://127.0.0.1:1/refused.png",
        "{report}"
    );
    assert_eq!(replica.failures.len(), 1);
    assert!(
        replica.failures[0].error.starts_with("net::ERR_"),
        "{:?}",
        replica.failures
    );
    let refusal = find_exchange(replica, "/cut", 200)
        .observed
        .refused
        .as_deref();
    assert_eq!(refusal, Some("net::ERR_CONTENT_LENGTH_MISMATCH"));
    let remarks = report["remarks"].to_string();
    assert!(remarks.contains("trailer fields"), "{remarks}");
}

/// `spdy serve` sends every response again: with the same body, and the same fields except those of the connection.
fn assert_is_served(file: &Path, replica: &Replica) {
    let server = ServeProcess::start(file, &["--protocols", "http/1.1"]);
    let mut statuses = BTreeMap::new();
    for exchange in &replica.exchanges {
        let status = exchange.status().expect("a status");
        // If there are several responses to one request, the server sends the first complete one.
        let request = (exchange.method.to_string(), exchange.url.to_string());
        if statuses.insert(request, status).is_some() && status != 304 {
            continue;
        }
        let (head, body) = repeat_request(&server, exchange);
        let (head, recorded) = (
            Head::parse(&head).expect("a head"),
            Head::parse(&exchange.response_head).expect("a recorded head"),
        );
        let what = format!("{} {}", exchange.method, exchange.url);
        assert_eq!(head.status(), Some(status), "{what}");
        assert_eq!(
            sha256(&body),
            sha256(&exchange.body),
            "{what}: {:?}",
            String::from_utf8_lossy(&body)
        );
        let is_not_modified = status == 304;
        assert_eq!(
            fields(&head, is_not_modified),
            fields(&recorded, is_not_modified),
            "{what}"
        );
    }
}

/// Fields by name, with their values in order; without those of the connection, and without Date, which was not recorded.
fn fields(head: &Head<'_>, is_generated: bool) -> BTreeMap<String, Vec<String>> {
    let mut fields = BTreeMap::<String, Vec<String>>::new();
    let excluded_names = [
        "connection",
        "keep-alive",
        "transfer-encoding",
        "content-length",
        "date",
    ];
    for (name, value) in head.fields() {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        // The server evaluates conditional requests itself: a 304 has the fields of the stored response.
        let is_excluded = is_generated && name != "etag";
        if !excluded_names.contains(&&name[..]) && !is_excluded {
            fields
                .entry(name)
                .or_default()
                .push(String::from_utf8_lossy(value).into_owned());
        }
    }
    fields
}

/// Sends the recorded request again, with its recorded head and `Connection: close`.
fn repeat_request(server: &ServeProcess, exchange: &Exchange) -> (Vec<u8>, Vec<u8>) {
    let mut lines = vec![
        format!("{} {} HTTP/1.1", exchange.method, target(&exchange.url)),
        format!("Host: {}", authority(&exchange.url)),
        "Connection: close".to_owned(),
    ];
    let request = Head::parse(&exchange.request_head).expect("a recorded head");
    for (name, value) in request.fields() {
        let name = String::from_utf8_lossy(name).into_owned();
        if !["host", "connection"].contains(&&name.to_ascii_lowercase()[..]) {
            lines.push(format!("{name}: {}", String::from_utf8_lossy(value)));
        }
    }
    let head = format!("{}\r\n\r\n", lines.join("\r\n"));
    let wire = [head.as_bytes(), &exchange.observed.request_body].concat();
    let response = exchange_with(server, &exchange.url, &wire);
    let head_len = head_len(&response).unwrap_or_else(|| panic!("no head in {response:?}"));
    let mut body = response[head_len..].to_vec();
    let head = response[..head_len].to_vec();
    let length = Head::parse(&head).and_then(|head| head.content_length());
    body.truncate(length.map_or(body.len(), |length| length as usize));
    (head, body)
}

/// Sends `wire` and returns everything that the server sends until it closes the connection.
fn exchange_with(server: &ServeProcess, url: &url::Url, wire: &[u8]) -> Vec<u8> {
    match url.scheme() {
        "https" => exchange_bytes_over_tls(server.tls, url, wire),
        _ => exchange_bytes(server.plain, wire),
    }
}

fn exchange_bytes(address: SocketAddr, wire: &[u8]) -> Vec<u8> {
    let mut socket = with_read_timeout(TcpStream::connect(address).expect("connect"));
    socket.write_all(wire).expect("write the request");
    let end = socket.shutdown(std::net::Shutdown::Write);
    end.expect("close the connection for writing");
    let mut response = Vec::new();
    socket
        .read_to_end(&mut response)
        .expect("a response from the server");
    response
}

fn exchange_bytes_over_tls(address: SocketAddr, url: &url::Url, wire: &[u8]) -> Vec<u8> {
    let trust = Trust {
        insecure: true,
        ..Trust::default()
    };
    let tls = ClientTls::new(&trust, &TlsOptions::default()).expect("a TLS configuration");
    let host = url.host_str().expect("a URL with a host");
    let runtime = tokio::runtime::Runtime::new().expect("create a runtime");
    runtime.block_on(async {
        let socket = tokio::net::TcpStream::connect(address).await;
        let socket = Box::new(socket.expect("connect"));
        let handshake = tls
            .with_alpn(&[Protocol::Http1])
            .connect(socket, host)
            .await;
        let (mut socket, _) = handshake.expect("any certificate is accepted");
        socket.write_all(wire).await.expect("write the request");
        socket
            .shutdown()
            .await
            .expect("close the connection for writing");
        let mut response = Vec::new();
        let result = tokio::time::timeout(WAIT_LIMIT, socket.read_to_end(&mut response)).await;
        result
            .expect("a response before the timeout")
            .expect("a response from the server");
        response
    })
}

#[test]
fn a_page_over_http_2_is_recorded_with_its_fields_in_their_order() {
    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let server = ServeProcess::start(Path::new("portal"), &[]);
    let folder = tempfile::tempdir().expect("create a folder");
    let file = folder.path().join("portal.warc");
    let rules = format!("--browser-arg=--host-resolver-rules=MAP * {}", server.tls);
    let output = file.to_str().expect("the path is UTF-8");
    let command = [
        "record",
        "https://www.portal.test/",
        "-k",
        "--pin",
        "-o",
        output,
        &rules,
    ];
    run_expecting(0, &mut spdy(&command));

    let recorded = open(output).expect("a replica was written").replica;
    let portal = builtin::portal();
    let mut missing = 0;
    for original in &portal.exchanges {
        let path = |exchange: &&Exchange| {
            exchange.url.host() == original.url.host()
                && target(&exchange.url) == target(&original.url)
        };
        let Some(copy) = recorded.exchanges.iter().find(path) else {
            missing += 1;
            continue;
        };
        assert_eq!(
            sha256(&copy.body),
            sha256(&original.body),
            "{}",
            original.url
        );
        assert_eq!(
            copy.observed.protocol.as_deref(),
            Some("h2"),
            "{}",
            original.url
        );
        assert_eq!(names(copy), names(original), "{}", original.url);
        assert_eq!(
            copy.response_head.slice(..15),
            "HTTP/1.1 200 OK",
            "{}",
            original.url
        );
    }
    assert_eq!(missing, 0);
    let connections = recorded
        .exchanges
        .iter()
        .filter_map(|exchange| exchange.observed.connection);
    let hosts = recorded.hosts().len() as u32;
    assert!(
        connections.max().is_some_and(|last| last < 2 * hosts),
        "more connections than HTTP/2 needs"
    );
}

/// Names of the fields of a response, in lower case as in HTTP/2, without the fields of an HTTP/1.1 connection.
fn names(exchange: &Exchange) -> Vec<String> {
    let head = Head::parse(&exchange.response_head).expect("a recorded head");
    let names = head
        .fields()
        .map(|(name, _)| String::from_utf8_lossy(name).to_ascii_lowercase());
    names
        .filter(|name| {
            ![
                "connection",
                "keep-alive",
                "transfer-encoding",
                "content-length",
            ]
            .contains(&&name[..])
        })
        .collect()
}

#[test]
fn pinned_runs_fetch_the_same_and_differences_are_reported() {
    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let folder = tempfile::tempdir().expect("create a folder");
    // The clock and random numbers of the page, of a frame of another site, and of a worker.
    let random = "[Math.random(), Date.now(), +new Date, crypto.getRandomValues(new Uint8Array(4)), performance.now() * 0].join('-')";
    let write = |name: &str, text: String| {
        fs::write(folder.path().join(name), text).expect("write the test's file");
    };
    write(
        "frame.html",
        format!("<!doctype html><img id=i><script>i.src = '/frame?' + {random}</script>"),
    );
    write("worker.js", format!("fetch('/worker?' + {random})"));
    write(
        "index.html",
        format!(
            "<!doctype html><img id=i><iframe id=f></iframe><script>i.src = '/page?' + {random};\
             f.src = '//localhost:' + location.port + '/frame.html'; new Worker('/worker.js')</script>"
        ),
    );
    let server = ServeProcess::start(folder.path(), &[]);
    let output = folder.path().join("page.warc");
    let output = output.to_str().expect("the path is UTF-8");
    for (pinned, same) in [(true, true), (false, false)] {
        let url = format!("{}/", server.origin(false));
        let mut command = spdy(&["record", &url, "--runs", "2", "--json", "-o", output]);
        command.args(["--settle", "5"]); // for a frame and a worker that wait for a CPU core
        let output = run_expecting(0, command.args(pinned.then_some("--pin")));
        let report: Value = serde_json::from_slice(&output.stdout).expect("valid JSON");
        let run = |number: usize, field: &str| report["runs"][number][field].clone();
        assert_eq!(
            run(0, "fingerprint") == run(1, "fingerprint"),
            same,
            "{report}"
        );
        let differs = |field| run(1, field).as_array().map(Vec::len);
        let count = Some(if same { 0 } else { 3 });
        assert_eq!(
            (differs("added"), differs("missing")),
            (count, count),
            "{report}"
        );
    }
}
