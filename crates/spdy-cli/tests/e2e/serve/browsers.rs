//! curl and Chromium load a replica from `spdy serve`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use spdy_net::tls::certificates::certificates_from_pem;
use spdy_net::tls::pins::Pin;
use spdy_page::builtin;

use crate::support::certificate::CERTIFICATE;
use crate::support::clients::chromium::chromium;
use crate::support::files::sha256;
use crate::support::peers::{is_installed, peers_enabled, require};
use crate::support::program::{ServeProcess, run_expecting};

/// Number of resources of the built-in page `portal`.
const RESOURCES: usize = 44;

fn serve_portal(options: &[&str]) -> ServeProcess {
    let paths = [&CERTIFICATE.chain, &CERTIFICATE.key]
        .map(|path| path.to_str().expect("the path is UTF-8"));
    ServeProcess::start(
        Path::new("portal"),
        &[&["--cert", paths[0], "--key", paths[1]], options].concat(),
    )
}

/// The hash of each resource of the page, by host and path.
fn resources() -> BTreeMap<(String, String), String> {
    let exchanges = builtin::portal().exchanges;
    let key = |url: &url::Url| {
        (
            url.host_str().expect("a URL with a host").to_owned(),
            url.path().to_owned(),
        )
    };
    exchanges
        .iter()
        .map(|exchange| (key(&exchange.url), sha256(&exchange.body)))
        .collect()
}

#[test]
fn curl_gets_the_page_by_http_1_1() {
    curl_gets("http", &["--http1.1", "--parallel"], "1.1", RESOURCES);
}

#[test]
fn curl_gets_the_page_by_http_1_1_over_tls() {
    curl_gets("https", &["--http1.1", "--parallel"], "1.1", RESOURCES);
}

#[test]
fn curl_gets_the_page_by_http_2() {
    curl_gets("https", &["--http2", "--parallel"], "2", RESOURCES);
}

#[test]
fn curl_gets_a_resource_by_http_2_without_tls() {
    // Only one: curl 7.88 cannot use such a connection twice (curl issue 10634).
    curl_gets("http", &["--http2-prior-knowledge"], "2", 1);
}

/// Fetches the first `count` resources on their real hosts with one curl, without decompressing bodies.
fn curl_gets(scheme: &str, protocol_options: &[&str], version: &str, count: usize) {
    if !peers_enabled() {
        return;
    }
    require("curl", is_installed("curl"));
    let server = serve_portal(&[]);
    let address = if scheme == "https" {
        server.tls
    } else {
        server.plain
    };
    let folder = tempfile::tempdir().expect("create a folder");
    let resources = resources();
    assert_eq!(resources.len(), RESOURCES);
    let mut curl = Command::new("curl");
    curl.args([
        "--silent",
        "--show-error",
        "--insecure",
        "--fail",
        "--connect-to",
        &format!("::{address}"),
    ]);
    curl.args(["--write-out", "%{http_version} %{http_code} %{url}\n"])
        .args(protocol_options);
    for (number, (host, path)) in resources.keys().take(count).enumerate() {
        curl.arg("--output")
            .arg(folder.path().join(number.to_string()))
            .arg(format!("{scheme}://{host}{path}"));
    }
    let output = run_expecting(0, &mut curl);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(stdout.lines().count(), count, "{stdout}");
    assert!(
        stdout
            .lines()
            .all(|line| line.starts_with(&format!("{version} 200 "))),
        "{stdout}"
    );
    for (number, ((host, path), expected)) in resources.iter().take(count).enumerate() {
        let body = fs::read(folder.path().join(number.to_string())).unwrap_or_default();
        assert_eq!(&sha256(&body), expected, "{host}{path}");
    }
}

#[test]
fn curl_accepts_the_configured_certificate_of_serve() {
    if !peers_enabled() {
        return;
    }
    require("curl", is_installed("curl"));
    let server = serve_portal(&[]);
    let mut curl = Command::new("curl");
    curl.args([
        "--silent",
        "--show-error",
        "--output",
        "/dev/null",
        "--write-out",
        "%{http_code} %{ssl_verify_result}",
    ]);
    curl.arg("--cacert")
        .arg(&CERTIFICATE.authority)
        .args(["--header", "host: www.portal.test"]);
    let output = run_expecting(
        0,
        curl.arg(format!("https://localhost:{}/", server.tls.port())),
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), "200 0");
}

#[test]
fn chromium_loads_the_whole_page_by_http_2() {
    chromium_loads(
        &[],
        &["--disable-quic".to_owned()],
        "HTTP2_SESSION_SEND_HEADERS",
        "HTTP2_SESSION_RECV_HEADERS",
    );
}

#[test]
fn chromium_loads_the_whole_page_by_http_3() {
    let hosts: BTreeSet<_> = resources()
        .into_keys()
        .map(|(host, _)| format!("{host}:443"))
        .collect();
    let hosts: Vec<_> = hosts.into_iter().collect();
    let forced = format!("--origin-to-force-quic-on={}", hosts.join(","));
    let protocols = ["--protocols", "h3,h2,http/1.1"];
    chromium_loads(
        &protocols,
        &["--enable-quic".to_owned(), forced],
        "HTTP3_HEADERS_SENT",
        "HTTP3_HEADERS_DECODED",
    );
}

/// Loads the page from a server with `serve_options` in a Chromium with `browsing`. `sent_type` and `received_type` are the event
/// types of headers in its log.
fn chromium_loads(
    serve_options: &[&str],
    browsing: &[String],
    sent_type: &str,
    received_type: &str,
) {
    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let server = serve_portal(serve_options);
    let folder = tempfile::tempdir().expect("create a folder");
    let log = folder.path().join("net.json");
    let chain = fs::read(&CERTIFICATE.chain).expect("read the file");
    let leaf = certificates_from_pem(&chain, "the test's chain")
        .expect("valid PEM")
        .remove(0);
    let pin = Pin::of(&leaf).expect("valid certificate").to_string();

    let mut chromium = chromium(folder.path());
    chromium
        .arg(format!("--log-net-log={}", log.display()))
        .arg("--net-log-capture-mode=Everything");
    chromium.arg(format!(
        "--ignore-certificate-errors-spki-list={}",
        pin.trim_start_matches("sha256//")
    ));
    chromium.arg(format!("--host-resolver-rules=MAP * {}", server.tls));
    chromium.args(browsing);
    let output = run_expecting(0, chromium.args(["--dump-dom", "https://www.portal.test/"]));

    let dom = String::from_utf8_lossy(&output.stdout);
    assert!(
        dom.matches("<img").count() >= RESOURCES - 2,
        "a page without its images: {dom}"
    );
    let log = fs::read_to_string(&log).expect("Chromium wrote its log");
    let answered_requests = answered_requests(&log, sent_type, received_type);
    let missing: Vec<_> = resources()
        .into_keys()
        .filter(|resource| !answered_requests.contains(resource))
        .collect();
    assert!(
        missing.is_empty(),
        "no {received_type} with 200 of {missing:?}"
    );
}

/// Host and path of every request that Chromium's log shows with the status 200, by the names of its events.
fn answered_requests(
    log: &str,
    sent_type: &str,
    received_type: &str,
) -> BTreeSet<(String, String)> {
    let log: Value = serde_json::from_str(log).expect("Chromium's log is JSON");
    let kind = |name: &str| {
        log["constants"]["logEventTypes"][name]
            .as_u64()
            .expect("a known event type")
    };
    let (sent_type, received_type) = (kind(sent_type), kind(received_type));
    let field = |event: &Value, name: &str| {
        let headers = event["params"]["headers"].as_array()?;
        headers
            .iter()
            .filter_map(Value::as_str)
            .find_map(|header| header.strip_prefix(name))
            .map(str::to_owned)
    };
    let mut requests = BTreeMap::new();
    let mut answered_requests = BTreeSet::new();
    for event in log["events"].as_array().expect("a list of events") {
        let stream = (
            event["source"]["id"].as_u64(),
            event["params"]["stream_id"].as_u64(),
        );
        if event["type"] == sent_type {
            let request = field(event, ":authority: ").zip(field(event, ":path: "));
            requests.insert(stream, request.expect("a request has both"));
        } else if event["type"] == received_type
            && field(event, ":status: ").as_deref() == Some("200")
        {
            answered_requests.extend(requests.get(&stream).cloned());
        }
    }
    answered_requests
}
