//! `spdy accelerate` for an operator: its configuration, its log, its admin listener, and its reload.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};

use serde_json::Value;
use spdy_testkit::wait::{WAIT_LIMIT, until, with_read_timeout};

use crate::support::accelerator::program::{Accelerator, check};
use crate::support::clients::raw_client::PendingResponse;
use crate::support::program::{ServeProcess, output, run_expecting, spdy};

/// The path of the shipped example.
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/accelerate.toml");

#[test]
fn the_shipped_example_is_valid() {
    let output = run_expecting(0, &mut spdy(&["accelerate", "--check", EXAMPLE]));
    let stderr = String::from_utf8(output.stderr).expect("text is UTF-8");
    assert_eq!(stderr, "good: example.com, www.example.com\n");
    // The example is also valid with its commented keys enabled.
    let [secret, former, token] = [b's', b'f', b't'].map(|fill| {
        let file = tempfile::NamedTempFile::new().expect("create the file");
        std::fs::write(file.path(), [fill; 32]).expect("write the file");
        file
    });
    let users = tempfile::NamedTempFile::new().expect("create the file");
    let folder = tempfile::tempdir().expect("create a folder");
    let text = std::fs::read_to_string(EXAMPLE).expect("read the file");
    let text: String = text
        .lines()
        .map(|line| match line.strip_prefix("# [") {
            Some(rest) => format!("[{rest}\n"),
            None => match line.strip_prefix("# ").filter(|line| line.contains(" = ")) {
                Some(rest) if rest.starts_with("secret_file") => {
                    format!("secret_file = '{}'\n", secret.path().display())
                }
                Some(rest) if rest.starts_with("former_secret_file") => {
                    format!("former_secret_file = '{}'\n", former.path().display())
                }
                Some(rest) if rest.starts_with("token_file") => {
                    format!("token_file = '{}'\n", token.path().display())
                }
                Some(rest) if rest.starts_with("basic_auth =") => {
                    format!("basic_auth = '{}'\n", users.path().display())
                }
                Some(rest) if rest.starts_with("folder = \"/srv/") => {
                    format!("folder = '{}'\n", folder.path().display())
                }
                // These files do not exist on this machine.
                Some(rest)
                    if ["headers_file", "key_file", "error_pages"]
                        .iter()
                        .any(|key| rest.contains(key)) =>
                {
                    format!("{line}\n")
                }
                Some(rest) if !rest.contains(".pem") => format!("{rest}\n"),
                _ => format!("{line}\n"),
            },
        })
        .collect();
    for table in ["[[dns.zone]]", "[admin]", "[cache.shared]", "[telemetry]"] {
        assert!(text.contains(&format!("\n{table}\n")), "{table}");
    }
    let (code, message) = check(&text);
    let (first_line, rest) = message.split_once('\n').expect("a line");
    assert_eq!(
        (code, first_line),
        (0, "good: app.example.com, example.com, www.example.com")
    );
    // The zone of the aliases is not in `[dns]`. Each alias is reported, one for each secret.
    let missing_alias = "x.site-assets.example is not served by [dns]";
    assert_eq!(rest.matches(missing_alias).count(), 2, "{rest}");
    assert_eq!(rest.lines().count(), 2, "{rest}");
}

#[test]
fn an_invalid_configuration_is_reported_with_its_key() {
    let site = "[[site]]\nnames = ['a.test']\norigin = 'https://b.test'\n";
    for (text, key) in [
        ("", "site"),
        (
            "[[site]]\nnames = []\norigin = 'https://b.test'\n",
            "site.names",
        ),
        (
            "[[site]]\nnames = ['A.test']\norigin = 'https://b.test'\n",
            "lower case",
        ),
        (
            "[[site]]\nnames = ['a.test']\norigin = 'ftp://b.test'\n",
            "site.origin",
        ),
        (
            "[[site]]\nnames = ['a.test']\norigin = 'https://b.test/path'\n",
            "without a path",
        ),
        (&format!("{site}{site}"), "each name in one site only"),
        (
            &format!("[listen]\nprotocols = ['spdy/4']\n{site}"),
            "listen.protocols",
        ),
        (&format!("[listen]\ntls = []\n{site}"), "listen"),
        (
            &format!("[cache]\nmemory_mib = 1\nobject_mib = 2\n{site}"),
            "cache.object_mib",
        ),
        (
            &format!("former_secret_file = 'former'\n{site}"),
            "former_secret_file: expected secret_file to be set to the new secret",
        ),
        (
            &format!("[cache.shared]\nurls = ['redis://a.test:6379']\n{site}"),
            "secret_file to be set",
        ),
        (
            &format!("[cache.shared]\nurls = []\n{site}"),
            "cache.shared.urls",
        ),
        (
            &format!(
                "[cache.shared]\nurls = ['redis://u:word@a.test:6379', 'rediss://b.test:6379']\n{site}"
            ),
            "found \"redis://a.test:6379, rediss://b.test:6379\"",
        ),
        (
            &format!("[cache.shared]\nurls = ['redis://a.test:6379']\nttl_s = 0\n{site}"),
            "cache.shared.ttl_s",
        ),
        (
            &format!("[websocket]\nidle_timeout_s = 86401\n{site}"),
            "websocket.idle_timeout_s: expected 1 to 86400",
        ),
        (&format!("[websocket]\nopen = 0\n{site}"), "websocket.open"),
        (&format!("[tls]\ncertificate = 'a.pem'\n{site}"), "tls"),
        (
            &format!("[dns]\nlisten = ['127.0.0.1:53']\n{site}"),
            "dns.zone",
        ),
        (
            &format!("{site}[[site.rewrite.hosts]]\nhost = '10.0.0.1'\n"),
            "10.0.0.1",
        ),
        (&format!("{site}colour = 'red'\n"), "colour"),
        (
            &format!("[upstream]\nallow_addresses = ['10.0.0.0']\n{site}"),
            "upstream.allow_addresses: expected a range such as 10.0.0.0/8, found \"10.0.0.0\"",
        ),
        (
            &format!("[upstream]\ndeny_addresses = ['all']\n{site}"),
            "upstream.deny_addresses",
        ),
        (
            &format!("[upstream]\nnat64 = ['2001:db8::/97']\n{site}"),
            "upstream.nat64: expected a prefix of 32, 40, 48, 56, 64 or 96 bits (RFC 6052), found 2001:db8::/97",
        ),
    ] {
        let (code, message) = check(text);
        assert_eq!(code, 2, "{text}\n{message}");
        assert!(message.contains(key), "{text}\n{message}");
    }
    let (code, message) = {
        let output = output(&mut spdy(&["accelerate", "no-such.toml"]));
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains("no-such.toml"), "{message}");
}

#[test]
fn a_possible_origin_loop_is_warned_about() {
    for (site, expects_warning) in [
        ("names = ['a.test']\norigin = 'https://a.test'\n", true),
        (
            "names = ['a.test', 'b.test']\norigin = 'https://b.test'\nkeep_host = true\n",
            true,
        ),
        (
            "names = ['a.test']\norigin = 'https://a.test'\naddress = '192.0.2.1'\n",
            false,
        ),
        (
            "names = ['a.test']\norigin = 'https://a.test'\n[upstream.resolve]\n'A.test' = '192.0.2.1'\n",
            false,
        ),
        (
            "names = ['a.test']\norigin = 'https://b.test'\nkeep_host = true\n",
            false,
        ),
    ] {
        let (code, message) = check(&format!("[[site]]\n{site}"));
        assert_eq!(code, 0, "{site}\n{message}");
        assert!(message.contains("good: a.test"), "{site}\n{message}");
        assert_eq!(
            message.contains("site a.test: the hostname of its origin"),
            expects_warning,
            "{site}\n{message}"
        );
    }
}

#[test]
fn a_public_cdn_not_marked_shared_is_warned_about() {
    for (shared_line, expects_warning) in [("", true), ("shared = true", false)] {
        let (code, message) = check(&format!(
            "[[site]]\nnames = ['a.test']\norigin = 'https://b.test'\n\
             [[site.rewrite.hosts]]\nhost = 'cdnjs.cloudflare.com'\nkinds = ['script', 'style']\n{shared_line}\n"
        ));
        assert_eq!(code, 0, "{message}");
        let warning = "site a.test: cdnjs.cloudflare.com is a public CDN";
        assert_eq!(message.contains(warning), expects_warning, "{message}");
    }
}

#[test]
fn a_public_admin_listener_is_warned_about() {
    let token = tempfile::NamedTempFile::new().expect("create the file");
    std::fs::write(token.path(), TOKEN).expect("write the file");
    for (address, expects_warning) in [
        ("127.0.0.1:9180", false),
        ("[::1]:9180", false),
        ("[::ffff:127.0.0.1]:9180", false),
        ("0.0.0.0:9180", true),
        ("192.0.2.1:9180", true),
    ] {
        let (code, message) = check(&format!(
            "[admin]\naddress = '{address}'\ntoken_file = {:?}\n[[site]]\nnames = ['a.test']\norigin = 'https://b.test'\n",
            token.path()
        ));
        assert_eq!(code, 0, "{message}");
        let warning = format!("admin.address {address} is not on loopback");
        assert_eq!(message.contains(&warning), expects_warning, "{message}");
    }
}

/// Sends `request` to `to` and returns the response as text.
fn exchange(to: SocketAddr, request: &str) -> String {
    let mut io = with_read_timeout(TcpStream::connect(to).expect("connect"));
    io.write_all(request.as_bytes()).expect("write");
    let mut response = Vec::new();
    io.read_to_end(&mut response).expect("a complete response");
    String::from_utf8_lossy(&response).into_owned()
}

fn get(to: SocketAddr, host: &str, path: &str) -> String {
    exchange(
        to,
        &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"),
    )
}

fn purge(to: SocketAddr, token: &str, purge_request: &str) -> String {
    let len = purge_request.len();
    exchange(
        to,
        &format!(
            "POST /purge HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             Content-Length: {len}\r\n\r\n{purge_request}"
        ),
    )
}

/// Queries `to` for the address of `label` in `site.test`, and waits for the reply.
fn query_address(to: SocketAddr, label: &str) {
    let mut question = b"\x12\x34\0\0\0\x01\0\0\0\0\0\0".to_vec();
    for label in [label, "site", "test", ""] {
        question.push(u8::try_from(label.len()).expect("a short label"));
        question.extend(label.bytes());
    }
    question.extend([0, 1, 0, 1]); // A, IN
    let socket = UdpSocket::bind("127.0.0.1:0").expect("free ports on loopback");
    socket.connect(to).expect("an address");
    socket
        .set_read_timeout(Some(WAIT_LIMIT))
        .expect("set the timeout");
    socket.send(&question).expect("send the query");
    let mut response = [0; 512];
    let len = socket.recv(&mut response).expect("a response");
    assert!(len > question.len() && response[..2] == question[..2]);
}

/// The metrics in addition to those of `spdy serve` are the ones that `docs/reference/metrics.md` and `metrics-by-site.md` list.
fn assert_is_documented(metrics: &str) {
    // Certificate metrics exist only with ACME.
    let families = ["spdy_accelerator_", "spdy_cache_", "spdy_dns_"];
    let is_always_exported = |name: &&str| families.iter().any(|family| name.starts_with(family));
    let (_, page) = include_str!("../../../../../docs/reference/metrics.md")
        .split_once("`spdy accelerate` exports")
        .expect("a table of metrics");
    let by_site = include_str!("../../../../../docs/reference/metrics-by-site.md");
    let documented: BTreeSet<&str> = page
        .lines()
        .chain(by_site.lines())
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name.trim_end_matches("_total"))
        .filter(is_always_exported)
        .collect();
    let exported: BTreeSet<&str> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .map(|(name, _)| name)
        .filter(is_always_exported)
        .collect();
    assert_eq!(documented, exported);
}

/// Each sample belongs to the family before it, has quoted labels and a number, and occurs once (OpenMetrics 1.0).
fn assert_is_open_metrics(response: &str) {
    let (_, text) = response.split_once("\r\n\r\n").expect("a body");
    let samples = text.strip_suffix("# EOF\n").expect("an end");
    let (mut family, mut kind) = ("", "");
    let (mut families, mut series) = (BTreeSet::new(), BTreeSet::new());
    for line in samples.lines() {
        if let Some(described) = line.strip_prefix("# TYPE ") {
            (family, kind) = described.split_once(' ').expect("a name and a type");
            assert!(families.insert(family), "{family} is there twice");
            continue;
        }
        if line.starts_with("# ") {
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').expect("a value");
        assert!(value.parse::<f64>().is_ok(), "{line}");
        assert!(series.insert(sample), "{sample} is there twice");
        let (name, labels) = sample.split_once('{').unwrap_or((sample, "}"));
        let suffix = name.strip_prefix(family).unwrap_or("another family");
        let suffixes: &[&str] = match kind {
            "counter" => &["_total"],
            "gauge" => &[""],
            "histogram" => &["_bucket", "_count", "_sum"],
            kind => panic!("unexpected type {kind}"),
        };
        assert!(suffixes.contains(&suffix), "{line} after {family}");
        let labels = labels.strip_suffix('}').expect("an end of the labels");
        for label in labels.split(',').filter(|label| !label.is_empty()) {
            let (_, value) = label.split_once('=').expect("a value of the label");
            assert!(value.starts_with('"') && value.ends_with('"'), "{line}");
        }
    }
}

const TOKEN: &str = "a token of the operator";

#[cfg(unix)]
#[test]
fn an_operator_can_inspect_purge_and_reconfigure_at_run_time() {
    let folder = tempfile::tempdir().expect("create a folder");
    let site = folder.path().join("site");
    std::fs::create_dir(&site).expect("write the file");
    std::fs::write(site.join("a.txt"), "first").expect("write the file");
    let origin = ServeProcess::start(&site, &[]);
    let token = folder.path().join("token");
    std::fs::write(&token, format!("{TOKEN}\n")).expect("write the file");
    let secret = folder.path().join("secret");
    std::fs::write(&secret, [b's'; 32]).expect("write the file");
    let config = |names: &str| {
        format!(
            "secret_file = '{}'\n[cache]\ndisk = '{}'\n[cache.shared]\nurls = ['redis://127.0.0.1:1']\n\
             [listen]\nplain = ['127.0.0.1:0']\ntls = []\n[admin]\naddress = '127.0.0.1:0'\ntoken_file = '{}'\n\
             [timing]\ntoken_file = '{}'\n[dns]\nlisten = ['127.0.0.1:0']\n[[dns.zone]]\napex = 'site.test'\nname_servers = ['ns.site.test']\n\
             [[dns.zone.names]]\nname = 'ns'\naddresses = ['127.0.0.1']\n\
             [[site]]\nnames = [{names}]\norigin = 'http://{}'\n",
            secret.display(),
            folder.path().join("cache").display(),
            token.display(),
            token.display(),
            origin.plain
        )
    };
    let accelerator = Accelerator::start_json(&config("'www.site.test'"));
    let ready = accelerator.json_line(0);
    let address = |of: &Value| -> SocketAddr {
        let address = of.as_str().expect("an address");
        address.parse().expect("an address")
    };
    let (plain, admin) = (accelerator.plain(), address(&ready["admin"]));
    let dns = address(&ready["dns"][0]);
    assert_ne!(dns.port(), 0);
    for name in ["ns", "ns", "other"] {
        query_address(dns, name);
    }
    assert_eq!(ready["sites"][0], "www.site.test");

    // `spdy serve` sends the modification times of files, so responses are fresh for a while.
    assert!(get(plain, "www.site.test", "/a.txt").ends_with("first"));
    let log_entry = accelerator.json_line(1);
    assert_eq!(
        (
            &log_entry["uri"],
            &log_entry["status"],
            &log_entry["outcome"],
            &log_entry["protocol"]
        ),
        (
            &"http://www.site.test/a.txt".into(),
            &200.into(),
            &"miss".into(),
            &"http/1.1".into()
        )
    );
    assert_eq!(
        (&log_entry["bytes"], &log_entry["body_end"]),
        (&5.into(), &"complete".into())
    );
    let time = log_entry["time"].as_str().expect("the time of day");
    assert!(time.ends_with('Z') && time.as_bytes()[10] == b'T', "{time}");
    let status = log_entry["cache_status"].as_str().expect("a Cache-Status");
    assert!(status.starts_with("spdy; fwd=uri-miss;"), "{status}");
    assert!(get(plain, "other.test", "/a.txt").starts_with("HTTP/1.1 421 "));
    let log_entry = accelerator.json_line(2);
    assert_eq!(
        (&log_entry["outcome"], &log_entry["cache_status"]),
        (&"misdirected".into(), &Value::Null)
    );
    for (request, method) in [
        ("GET /b HTTP/1.1\r\n\r\n", "GET".into()),
        ("no request\r\n\r\n", Value::Null),
    ] {
        let response = PendingResponse::begin(plain, request.as_bytes()).end(usize::MAX);
        assert_eq!(response.status, 400, "{request:?}");
        let log_entry = accelerator.json_line(if method == Value::Null { 4 } else { 3 });
        let actual = ["status", "outcome", "method", "client"].map(|key| log_entry[key].clone());
        let expected = [400.into(), "malformed".into(), method, "127.0.0.1".into()];
        assert_eq!(actual, expected, "{request:?}");
    }

    let metrics = get(admin, "localhost", "/metrics");
    assert!(
        metrics.contains("spdy_accelerator_responses_total{outcome=\"miss\"} 1\n")
            && metrics.contains("spdy_accelerator_responses_total{outcome=\"misdirected\"} 1\n")
            && metrics.contains("spdy_accelerator_responses_total{outcome=\"malformed\"} 2\n")
            && metrics.contains(
                "spdy_accelerator_site_requests_total{site=\"www.site.test\",class=\"2xx\"} 1\n"
            )
            && metrics.contains(
                "spdy_accelerator_site_cache_lookups_total{site=\"www.site.test\",result=\"miss\"} 1\n"
            )
            && metrics.contains(
                "spdy_accelerator_site_response_bytes_total{site=\"www.site.test\"} 5\n"
            )
            && metrics.contains(
                "spdy_accelerator_site_response_seconds_count{site=\"www.site.test\"} 1\n"
            )
            && metrics.contains("spdy_accelerator_rejected_requests_total{reason=\"host\"} 1\n")
            && metrics
                .contains("spdy_accelerator_rejected_requests_total{reason=\"malformed\"} 1\n")
            && metrics.contains("spdy_cache_stored_objects{tier=\"memory\"} 1\n")
            && metrics.contains("spdy_dns_queries_total{outcome=\"noerror\"} 2\n")
            && metrics.contains("spdy_dns_queries_total{outcome=\"nxdomain\"} 1\n")
            && metrics.contains("spdy_dns_truncated_responses_total 0\n"),
        "{metrics}"
    );
    assert_is_documented(&metrics);
    assert_is_open_metrics(&metrics);
    let all = r#"{"site": "www.site.test", "wait": true}"#;
    for token in ["", "a token of the operatoR", "a token of the operator."] {
        let response = purge(admin, token, all);
        assert!(
            response.starts_with("HTTP/1.1 401 "),
            "{token:?}: {response}"
        );
    }
    let purged = purge(admin, TOKEN, all);
    assert!(
        purged.ends_with(r#"{"purged":1,"soft":false,"removed_from_disk":true,"published":false}"#),
        "{purged}"
    );
    let response = purge(admin, TOKEN, r#"{"colour": "red"}"#);
    assert!(
        response.starts_with("HTTP/1.1 400 ") && response.contains("colour"),
        "{response}"
    );
    let with = |to, host: &str, path: &str, field: &str| {
        let head =
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{field}\r\n\r\n");
        exchange(to, &head)
    };
    let authorization = format!("Authorization: Bearer {TOKEN}");
    assert!(get(admin, "localhost", "/purge").starts_with("HTTP/1.1 405 "));
    // A request that does not wait gets the URL of the purge's status.
    let accepted = purge(admin, TOKEN, r#"{"site": "www.site.test"}"#);
    assert!(accepted.starts_with("HTTP/1.1 202 "), "{accepted}");
    assert!(
        accepted.contains("\r\nlocation: /purge/2\r\n"),
        "{accepted}"
    );
    assert!(accepted.ends_with(r#"{"id":2,"state":"running"}"#));
    assert!(get(admin, "localhost", "/purge/2").starts_with("HTTP/1.1 401 "));
    let job = || with(admin, "localhost", "/purge/2", &authorization);
    let done = r#"{"id":2,"state":"done","purged":0,"soft":false,"removed_from_disk":true,"published":false}"#;
    until("the purge is over", || job().ends_with(done));
    let response = with(admin, "localhost", "/purge/7", &authorization);
    assert!(response.starts_with("HTTP/1.1 404 "), "{response}");
    assert!(get(admin, "localhost", "/pages").starts_with("HTTP/1.1 401 "));
    let pages = with(admin, "localhost", "/pages", &authorization);
    assert!(pages.ends_with(r#"{"pages":[]}"#), "{pages}");
    let response = get(plain, "www.site.test", "/a.txt");
    assert!(
        !response.to_lowercase().contains("server-timing"),
        "{response}"
    );
    let response = with(
        plain,
        "www.site.test",
        "/a.txt",
        &format!("Spdy-Timing: {TOKEN}"),
    );
    assert!(
        response
            .to_lowercase()
            .contains("server-timing: cache;desc="),
        "{response}"
    );
    assert!(get(admin, "localhost", "/other").starts_with("HTTP/1.1 404 "));

    // Adds another name; no connection or process ends.
    accelerator.write(&config("'www.site.test', 'new.site.test'"));
    assert!(get(plain, "new.site.test", "/a.txt").starts_with("HTTP/1.1 421 "));
    accelerator.reload_unchanged();
    until("the new name is served", || {
        get(plain, "new.site.test", "/a.txt").starts_with("HTTP/1.1 200 ")
    });
    // An invalid configuration changes nothing.
    accelerator.reload(&config("'Not.A.Name'"));
    assert!(get(plain, "new.site.test", "/a.txt").starts_with("HTTP/1.1 200 "));
    assert!(get(plain, "www.site.test", "/a.txt").starts_with("HTTP/1.1 200 "));
}
