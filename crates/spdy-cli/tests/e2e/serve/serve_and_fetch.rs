//! `spdy serve` and `spdy fetch` against each other over loopback, as users run them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use sha2::{Digest, Sha256};
use spdy_testkit::wait::{WAIT_LIMIT, ended, output_within};

use crate::support::json_output::check_json_lines;
use crate::support::program;

const PROGRAM: &str = env!("CARGO_BIN_EXE_spdy");

/// A running server and its addresses.
struct ServeProcess {
    child: Child,
    plain: u16,
    tls: u16,
    metrics: Option<String>,
    ca: String,
    folder: tempfile::TempDir,
}

impl ServeProcess {
    fn start(source: impl Fn(&Path) -> String, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The variable must have no effect on a server.
        let key_log = folder.path().join("server.keys");
        let ca = folder.path().join("ca.pem").to_str().unwrap().to_owned();
        let source = source(folder.path());
        let mut command = Command::new(PROGRAM);
        command
            .args(["--quiet", "serve", &source, "--json", "--write-ca", &ca])
            .args(["--plain", "127.0.0.1:0", "--tls", "127.0.0.1:0"])
            .args(options)
            .env("SSLKEYLOGFILE", key_log)
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        check_json_lines(&command, [line.trim_end()]);
        let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
        let port = |tls: bool| {
            let all = ready["listening"].as_array().unwrap();
            let listener = all
                .iter()
                .find(|listener| listener["tls"] == tls && listener["host"].is_null())
                .unwrap();
            listener["address"]
                .as_str()
                .unwrap()
                .rsplit(':')
                .next()
                .unwrap()
                .parse()
                .unwrap()
        };
        Self {
            plain: port(false),
            tls: port(true),
            metrics: ready["metrics"].as_str().map(str::to_owned),
            child,
            ca,
            folder,
        }
    }

    /// Serves a folder with a page and a file of a million bytes.
    fn folder(options: &[&str]) -> Self {
        let write = |folder: &Path| {
            let site = folder.join("site");
            std::fs::create_dir_all(site.join("sub")).unwrap();
            std::fs::write(site.join("index.html"), "home").unwrap();
            std::fs::write(site.join("sub/index.html"), "below").unwrap();
            std::fs::write(site.join("big"), big()).unwrap();
            site.to_str().unwrap().to_owned()
        };
        Self::start(write, options)
    }

    fn http(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.plain)
    }

    fn https(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.tls)
    }

    fn fetch(&self, args: &[&str]) -> Output {
        let mut fetch = Command::new(PROGRAM);
        fetch.args(["fetch", "--color", "never", "--cacert", &self.ca]);
        output(fetch.args(args).current_dir(self.folder.path()))
    }
}

/// The output of `command`.
fn output(command: &mut Command) -> Output {
    program::output_within(WAIT_LIMIT, command)
}

impl Drop for ServeProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn big() -> Vec<u8> {
    (0..1_000_000_u32).map(|at| (at % 241) as u8).collect()
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_protocol_fetches_the_same_bytes_and_reports_them() {
    let server = ServeProcess::folder(&[]);
    for protocol in ["spdy/3.1", "spdy/3", "spdy/2", "h2", "http/1.1"] {
        for url in [server.http("/big"), server.https("/big")] {
            let output = server.fetch(&["--json", "--protocol", protocol, &url, &url]);
            assert!(
                output.status.success(),
                "{protocol} {url}: {}",
                text(&output.stderr)
            );
            let lines: Vec<serde_json::Value> = text(&output.stdout)
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            assert_eq!(lines.len(), 2);
            for line in lines {
                assert_eq!(line["sha256"], hex(&big()), "{protocol} {url}");
                assert_eq!(
                    (&line["status"], &line["bytes"]),
                    (&200.into(), &1_000_000.into())
                );
                assert_eq!(line["protocol"], protocol);
                assert_eq!(line["error"], serde_json::Value::Null);
                assert_eq!(line["tls"].is_null(), url.starts_with("http:"));
                assert!(line["timings_ms"]["total"].as_f64().unwrap() > 0.0);
            }
        }
    }
}

#[test]
fn without_a_protocol_tls_uses_alpn_and_plain_http1() {
    let server = ServeProcess::folder(&[]);
    for (url, expected) in [
        (server.http("/"), "http/1.1"),
        (server.https("/"), "spdy/3.1"),
    ] {
        let output = server.fetch(&["--json", &url]);
        let line: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(line["protocol"], expected, "{url}");
    }
}

#[test]
fn bodies_come_in_the_order_of_the_arguments() {
    let server = ServeProcess::folder(&[]);
    let (big_url, home) = (server.https("/big"), server.https("/"));
    let output = server.fetch(&[&big_url, &home, &server.https("/sub/")]);
    assert_eq!(output.stdout, [&big()[..], b"home", b"below"].concat());
    let dir = server.folder.path().join("out");
    let output = server.fetch(&[
        "--output-dir",
        dir.to_str().unwrap(),
        &home,
        &big_url,
        &big_url,
    ]);
    assert!(output.status.success() && output.stdout.is_empty());
    for (name, expected) in [
        ("index.html", &b"home"[..]),
        ("big", &big()),
        ("big.1", &big()),
    ] {
        assert!(std::fs::read(dir.join(name)).unwrap() == expected, "{name}");
    }
}

#[test]
fn exit_codes_match_the_outcome() {
    let server = ServeProcess::folder(&[]);
    let nix = server.http("/nix");
    let code = |args: &[&str]| server.fetch(args).status.code().unwrap();
    assert_eq!(code(&[&nix]), 0, "404 is a response");
    assert_eq!(code(&["--fail", &nix]), 1);
    assert_eq!(code(&["--fail", &server.http("/"), &nix]), 1);
    assert_eq!(code(&["http://127.0.0.1:1/"]), 1);
    assert_eq!(code(&["ftp://127.0.0.1/"]), 2);
    assert_eq!(code(&["-o", "x", &nix, &nix]), 2);
    assert_eq!(code(&["--protocol", "gopher", &nix]), 2);
    assert_eq!(code(&[]), 2);
}

#[test]
fn frames_are_shown_in_both_directions() {
    let server = ServeProcess::folder(&[]);
    for (protocol, expected_lines) in [
        (
            "spdy/3.1",
            &[
                "uses spdy/3.1",
                "> SYN_STREAM stream 1, priority 0, fin",
                ":path: /",
                "< SYN_REPLY stream 1",
                ":status: 200",
                "< DATA stream 1, 4 bytes, fin",
            ][..],
        ),
        (
            "h2",
            &[
                "uses h2",
                "> HEADERS stream 1",
                ":path: /",
                "< HEADERS stream 1",
                ":status: 200",
                "< DATA stream 1, 4 bytes, fin",
            ],
        ),
        (
            "http/1.1",
            &[
                "uses http/1.1",
                "> GET / HTTP/1.1",
                "< HTTP/1.1 200 OK",
                "content-length: 4",
                "< body 4 bytes",
            ],
        ),
    ] {
        let output = server.fetch(&["-v", "-p", protocol, &server.http("/")]);
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(stdout, "home");
        for expected in expected_lines {
            assert!(
                stderr.contains(expected),
                "{protocol}: no {expected:?} in\n{stderr}"
            );
        }
        assert!(stderr.contains("1 request over 1 connection"), "{stderr}");
    }
}

#[test]
fn an_error_cause_is_printed_once() {
    let nix = "https://localhost:1/";
    let output = output(Command::new(PROGRAM).args(["fetch", "--cacert", "nix.pem", nix]));
    assert_eq!(
        text(&output.stderr),
        "error: cannot read nix.pem: No such file or directory (os error 2)\n"
    );
}

#[test]
fn only_the_client_writes_tls_secrets_and_for_its_user_alone() {
    let server = ServeProcess::folder(&[]);
    let keys = server.folder.path().join("client.keys");
    let mut fetch = Command::new(PROGRAM);
    fetch.args(["fetch", "--cacert", &server.ca, &server.https("/")]);
    assert!(output(fetch.env("SSLKEYLOGFILE", &keys)).status.success());
    let secrets = std::fs::read_to_string(&keys).unwrap();
    assert!(secrets.contains("SERVER_TRAFFIC_SECRET_0 "), "{secrets}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&keys).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert!(!server.folder.path().join("server.keys").exists());
}

#[test]
fn redirects_are_followed_only_on_request_and_up_to_a_limit() {
    let server = ServeProcess::folder(&[]);
    let sub = server.http("/sub");
    assert_eq!(
        text(&server.fetch(&[&sub]).stdout),
        "301 Moved Permanently\n"
    );
    assert_eq!(text(&server.fetch(&["-L", &sub]).stdout), "below");
    assert_eq!(
        server
            .fetch(&["-L", "--max-redirects", "0", &sub])
            .status
            .code(),
        Some(0)
    );
}

/// An origin that sends each of `responses` on its own connection. The thread returns the received request heads.
fn origin(responses: Vec<String>) -> (u16, std::thread::JoinHandle<Vec<String>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = move |response: String| {
        let mut stream = listener.accept().unwrap().0;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        stream.write_all(response.as_bytes()).unwrap();
        text(&head).to_ascii_lowercase()
    };
    let thread = std::thread::spawn(move || responses.into_iter().map(serve).collect());
    (port, thread)
}

#[test]
fn a_redirect_to_another_origin_carries_no_credentials() {
    let end = "Content-Length: 0\r\nConnection: close\r\n\r\n";
    let (other_port, other_origin) = origin(vec![format!("HTTP/1.1 200 OK\r\n{end}")]);
    let redirect_to_same = format!("HTTP/1.1 302 Found\r\nLocation: /next\r\n{end}");
    let other_url = format!("http://127.0.0.1:{other_port}/there");
    let redirect_to_other = format!("HTTP/1.1 302 Found\r\nLocation: {other_url}\r\n{end}");
    let (first_port, first) = origin(vec![redirect_to_same, redirect_to_other]);
    let secrets = [
        "authorization: basic secret",
        "proxy-authorization: basic secret",
        "cookie: secret=1",
        "cookie2: secret",
        "x-api-key: secret",
        "x-auth-token: secret",
        "private-token: secret",
        "referer: http://127.0.0.1/?secret",
        "if-none-match: \"secret\"",
    ];
    let harmless = [
        "accept: text/html",
        "accept-language: en",
        "range: bytes=0-9",
    ];
    let mut fetch = Command::new(PROGRAM);
    fetch.args(["fetch", "-L", "-p", "http/1.1"]);
    for header in secrets.iter().chain(&harmless) {
        fetch.args(["-H", header]);
    }
    let output = output(fetch.arg(format!("http://127.0.0.1:{first_port}/")));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (first, other_requests) = (first.join().unwrap(), other_origin.join().unwrap());
    for head in &first {
        for secret in secrets {
            assert!(
                head.contains(secret),
                "the same origin gets {secret}: {head}"
            );
        }
    }
    assert!(
        !other_requests[0].contains("secret"),
        "{}",
        other_requests[0]
    );
    for header in harmless.iter().chain(&["user-agent: spdy/"]) {
        assert!(
            other_requests[0].contains(header),
            "{header}: {}",
            other_requests[0]
        );
    }
}

#[test]
fn untrusted_certificates_are_refused() {
    let server = ServeProcess::folder(&[]);
    let home = server.https("/");
    let without_ca = |args: &[&str]| output(Command::new(PROGRAM).arg("fetch").args(args));
    assert_eq!(without_ca(&[&home]).status.code(), Some(1));
    assert_eq!(text(&without_ca(&["--insecure", &home]).stdout), "home");
    let wrong_pin = format!("sha256//{}=", "A".repeat(43));
    let output = without_ca(&["--insecure", "--pin", &wrong_pin, &home]);
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("is sha256//") && stderr.contains("not pinned"),
        "{stderr}"
    );
    let (_, pins) = stderr.split_once(" is sha256//").unwrap();
    let pin = &format!("sha256//{}", pins.split(',').next().unwrap());
    assert_eq!(
        text(&without_ca(&["--insecure", "--pin", pin, &home]).stdout),
        "home"
    );
}

#[test]
fn requests_follow_the_options() {
    let server = ServeProcess::folder(&[]);
    let output = server.fetch(&["-H", "Range: bytes=1-2", &server.http("/")]);
    assert_eq!(text(&output.stdout), "om");
    let output = server.fetch(&["--data", "x=1", &server.http("/")]);
    assert_eq!(text(&output.stdout), "405 Method Not Allowed\n");
    let head = text(&server.fetch(&["-I", &server.http("/big")]).stdout);
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("content-length: 1000000\r\n"),
        "{head}"
    );
    let resolve = format!("other.name:{}:127.0.0.1", server.plain);
    let url = format!("http://other.name:{}/", server.plain);
    assert_eq!(
        text(&server.fetch(&["--resolve", &resolve, &url]).stdout),
        "home"
    );
}

#[test]
fn a_recorded_page_is_served_by_host_and_by_address() {
    let server = ServeProcess::start(|_| "portal".to_owned(), &["--per-host"]);
    let json = |output: Output| -> serde_json::Value {
        serde_json::from_str(text(&output.stdout).lines().next().unwrap()).unwrap()
    };
    let page = json(server.fetch(&["--json", &server.http("/")]));
    assert_eq!(
        page["status"], 200,
        "expected the page's host for an IP address: {page}"
    );
    let unknown_host = format!("unknown.test:{}:127.0.0.1", server.plain);
    let url = format!("http://unknown.test:{}/", server.plain);
    assert_eq!(
        json(server.fetch(&["--json", "--resolve", &unknown_host, &url]))["status"],
        421
    );
    // The second host has its own address.
    let url = format!("http://127.0.0.2:{}/", server.plain);
    assert_eq!(json(server.fetch(&["--json", &url]))["status"], 200);
}

#[test]
fn a_closed_stdout_is_no_error() {
    let server = ServeProcess::folder(&[]);
    let mut child = Command::new(PROGRAM)
        .args(["fetch", &server.http("/big")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = output_within(WAIT_LIMIT, child);
    assert_eq!(
        (output.status.code(), text(&output.stderr)),
        (Some(0), String::new())
    );
}

#[cfg(unix)]
#[test]
fn a_stopped_server_exits_0() {
    let mut server = ServeProcess::folder(&[]);
    let status = Command::new("kill")
        .args(["-TERM", &server.child.id().to_string()])
        .status();
    assert!(status.unwrap().success());
    assert_eq!(ended(&mut server.child).code(), Some(0));
}

#[test]
fn one_address_has_at_most_sixteen_metrics_connections() {
    let server = ServeProcess::folder(&["--metrics", "127.0.0.1:0"]);
    let metrics = server.metrics.as_ref().unwrap();
    let mut connections: Vec<_> = (0..17)
        .map(|_| TcpStream::connect(metrics).unwrap())
        .collect();
    // All connections stay open until all requests are sent: a closed one would free a slot for a waiting one.
    let have_response = connections.iter_mut().map(|connection| {
        let result = connection.write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let mut first = [0; 1];
        result.is_ok() && connection.read(&mut first).is_ok_and(|len| len == 1)
    });
    let have_response: Vec<_> = have_response.collect();
    assert_eq!(
        have_response.iter().filter(|is| **is).count(),
        16,
        "{have_response:?}"
    );
}

/// A page whose host name resolves to loopback (DNS rebinding) sends its own name as the host.
#[test]
fn metrics_are_not_served_to_the_host_of_a_web_page() {
    let server = ServeProcess::folder(&["--metrics", "127.0.0.1:0"]);
    let metrics = server.metrics.as_ref().unwrap();
    for (host, expected) in [
        (metrics.as_str(), "200 OK"),
        ("localhost", "200 OK"),
        ("evil.test", "421 Misdirected Request"),
    ] {
        let mut connection = TcpStream::connect(metrics).unwrap();
        let head = format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        connection.write_all(head.as_bytes()).unwrap();
        let mut response = String::new();
        connection.read_to_string(&mut response).unwrap();
        assert!(
            response.starts_with(&format!("HTTP/1.1 {expected}")),
            "{host}: {response}"
        );
        assert_eq!(
            response.contains("spdy_"),
            expected == "200 OK",
            "{host}: {response}"
        );
    }
}

#[test]
fn session_counters_are_exported_to_prometheus() {
    let server = ServeProcess::folder(&["--metrics", "127.0.0.1:0", "--keepalive", "60"]);
    for url in [server.https("/"), server.http("/nothing")] {
        let protocol = ["--protocol", "spdy/3.1"];
        server.fetch(&[&protocol[..], &[&url, "--quiet"]].concat());
    }
    server.fetch(&["--protocol", "h2", &server.https("/"), "--quiet"]);
    let metrics = server.metrics.as_ref().unwrap();
    let output = server.fetch(&[
        "--protocol",
        "http/1.1",
        &format!("http://{metrics}/metrics"),
    ]);
    let metrics_text = text(&output.stdout);
    for line in [
        "# TYPE spdy_sessions counter",
        "spdy_sessions_total{role=\"server\",version=\"3.1\"} 1",
        // A session without TLS counts as version 3 until the client grants session-level credit.
        "spdy_sessions_total{role=\"server\",version=\"3\"} 1",
        "spdy_requests_total{role=\"server\"} 2",
        "spdy_responses_total{role=\"server\",class=\"2xx\"} 1",
        "spdy_responses_total{role=\"server\",class=\"4xx\"} 1",
        "spdy_frames_total{role=\"server\",direction=\"received\",type=\"SYN_STREAM\"} 2",
        "spdy_limit_hits_total{role=\"server\",limit=\"max_concurrent_streams\"} 0",
        "spdy_ping_round_trip_seconds_bucket{le=\"+Inf\",role=\"server\"} 0",
        "# EOF",
    ] {
        assert!(
            metrics_text
                .lines()
                .any(|metrics_line| metrics_line == line),
            "{line}\nin\n{metrics_text}"
        );
    }
    assert!(
        !metrics_text.contains("role=\"client\""),
        "unexpected client metrics:\n{metrics_text}"
    );
    let (sessions, _) = include_str!("../../../../../docs/reference/metrics.md")
        .split_once("`spdy accelerate` exports")
        .expect("the accelerator's metrics follow");
    let documented = sessions
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name.trim_end_matches("_total"));
    let families = metrics_text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .map(|(name, _)| name);
    assert_eq!(
        documented.collect::<std::collections::BTreeSet<_>>(),
        families.collect(),
        "docs/reference/metrics.md and the exported metrics"
    );
    let output = server.fetch(&["--protocol", "http/1.1", &format!("http://{metrics}/")]);
    assert_eq!(text(&output.stdout), "expected /metrics\n");
}
