//! `spdy bench` against `spdy serve`: what it counts, and its exit codes.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;
use spdy::server::PushForm;
use spdy_testkit::closed_port::ClosedPort;
use spdy_testkit::wait::{ended, with_read_timeout};

use crate::support::program::{ServeProcess, run_expecting, spdy};
use crate::support::site::Site;

/// Size of the requested file.
const FILE_BYTES: u64 = 128;

/// A folder with one file, and a server for it.
fn start_server(options: &[&str]) -> (tempfile::TempDir, ServeProcess) {
    let folder = tempfile::tempdir().expect("create a folder");
    fs::write(folder.path().join("file"), [b'x'; FILE_BYTES as usize]).expect("write the file");
    let server = ServeProcess::start(folder.path(), options);
    (folder, server)
}

/// The JSON of a run that exits with `code`.
fn result(code: i32, arguments: &[&str]) -> Value {
    let output = run_expecting(code, spdy(&["bench", "--json", "--quiet"]).args(arguments));
    serde_json::from_slice(&output.stdout).expect("one line of JSON")
}

#[test]
fn every_protocol_completes_the_requested_number_of_requests() {
    let (_folder, server) = start_server(&[]);
    for protocol in ["spdy/3.1", "spdy/3", "spdy/2", "h2", "http/1.1"] {
        for secure in [false, true] {
            let url = format!("{}/file", server.origin(secure));
            let json = result(
                0,
                &[
                    "--protocol",
                    protocol,
                    "--requests",
                    "997",
                    "--sessions",
                    "3",
                    "--streams",
                    "7",
                    "--expect-bytes",
                    "128",
                    "--insecure",
                    &url,
                    &url,
                ],
            );
            let what = format!("{protocol}, tls {secure}: {json}");
            assert_eq!(json["protocol"], protocol, "{what}");
            assert_eq!(json["tls"], secure, "{what}");
            assert_eq!(
                (&json["sessions"], &json["streams"]),
                (&3.into(), &7.into()),
                "{what}"
            );
            assert_eq!(json["requests"], 997, "{what}");
            assert_eq!(json["statuses"]["200"], 997, "{what}");
            assert_eq!(json["bytes"]["bodies"], 997 * FILE_BYTES, "{what}");
            assert_eq!(json["errors"], serde_json::json!({}), "{what}");
            assert_eq!(json["right"], true, "{what}");
            for bytes in ["sent_headers", "received_headers"] {
                assert!(json["bytes"][bytes].as_u64() > Some(997), "{bytes}: {what}");
            }
            let ms = |name: &str| json["latency_ms"][name].as_f64().expect("a number");
            let rising = ["p50", "p90", "p99", "p99.9", "max"].map(ms);
            assert!(rising.is_sorted() && rising[0] > 0.0, "{what}");
        }
    }
}

#[test]
fn without_a_protocol_alpn_chooses_and_plain_is_http_1() {
    let (_folder, server) = start_server(&["--protocols", "h2,http/1.1"]);
    for (secure, expected) in [(false, "http/1.1"), (true, "h2")] {
        let url = format!("{}/file", server.origin(secure));
        let json = result(0, &["--requests", "10", "--insecure", &url]);
        assert_eq!(json["protocol"], expected);
    }
}

#[test]
fn a_rate_starts_that_many_requests() {
    let (_folder, server) = start_server(&[]);
    let url = format!("{}/file", server.origin(false));
    let json = result(
        0,
        &[
            "--protocol",
            "spdy/3.1",
            "--rate",
            "2000",
            "--requests",
            "400",
            "--sessions",
            "2",
            &url,
        ],
    );
    assert_eq!(json["requests"], 400);
    // The last request starts 399 / 2000 s after the first, however fast the responses are.
    assert!(json["seconds"].as_f64() >= Some(0.199), "{json}");
}

#[test]
fn wrong_responses_are_counted_and_exit_1() {
    let (_folder, server) = start_server(&[]);
    let origin = server.origin(false);
    let (file, missing) = (format!("{origin}/file"), format!("{origin}/missing"));
    for protocol in ["spdy/3.1", "h2", "http/1.1"] {
        let run = |options: &[&str]| {
            let mut arguments = vec!["--protocol", protocol, "--requests", "20"];
            arguments.extend(options);
            result(1, &arguments)
        };
        let json = run(&[&file, &missing]);
        assert_eq!(
            json["statuses"],
            serde_json::json!({"200": 10, "404": 10}),
            "{json}"
        );
        assert_eq!(
            (&json["wrong_status"], &json["right"]),
            (&10.into(), &false.into()),
            "{json}"
        );
        let json = run(&["--expect-status", "404", &file, &missing]);
        assert_eq!(json["wrong_status"], 10, "{json}");
        let json = run(&["--expect-bytes", "127", &file]);
        assert_eq!(
            (&json["wrong_length"], &json["requests"]),
            (&20.into(), &20.into()),
            "{json}"
        );
    }
}

#[test]
fn a_body_is_sent_with_each_request() {
    let folder = tempfile::tempdir().expect("create a folder");
    let form = folder.path().join("form");
    fs::write(&form, [b'y'; 100_000]).expect("write the file");
    let data = format!("@{}", form.display());
    for protocol in ["spdy/3.1", "spdy/3", "spdy/2", "h2", "http/1.1"] {
        let site = Site::start(
            vec![protocol.parse().expect("a protocol")],
            false,
            true,
            PushForm::default(),
        );
        let url = format!("http://{}/", site.address);
        let json = result(
            0,
            &[
                "--protocol",
                protocol,
                "-n",
                "30",
                "--expect-bytes",
                "100000",
                "--data",
                &data,
                &url,
            ],
        );
        assert_eq!(json["requests"], 30, "{protocol}: {json}");
        assert!(
            json["bytes"]["sent"].as_u64() > Some(30 * 100_000),
            "{protocol}: {json}"
        );
        assert!(
            json["bytes"]["sent_headers"].as_u64() > Some(100),
            "{protocol}: {json}"
        );
    }
}

#[test]
fn a_refused_connection_exits_1_and_a_usage_error_2() {
    let url = format!("http://{}/", ClosedPort::leak());
    let output = run_expecting(1, &mut spdy(&["bench", "--requests", "1", &url]));
    let stderr = String::from_utf8(output.stderr).expect("text is UTF-8");
    assert!(
        stderr.contains("cannot connect to 127.0.0.1:") && stderr.contains("refused"),
        "{stderr}"
    );
    for arguments in [
        &["http://a.test/", "http://b.test/"][..],
        &["ftp://a.test/"],
        &["--requests", "0", "http://a.test/"],
        &["--rate", "0", "http://a.test/"],
        &["--requests", "1", "--duration", "1", "http://a.test/"],
    ] {
        run_expecting(2, spdy(&["bench"]).args(arguments));
    }
    run_expecting(
        1,
        &mut spdy(&["bench", "--process", "no such process", &url]),
    );
}

#[test]
fn cpu_and_memory_of_a_process_tree_are_reported() {
    let (_folder, server) = start_server(&[]);
    let url = format!("{}/file", server.origin(false));
    let test = std::process::id().to_string();
    let json = result(
        0,
        &[
            "--protocol",
            "h2",
            "--requests",
            "500",
            "--pid",
            &test,
            &url,
        ],
    );
    let server = &json["server"];
    // This test, the server it started, and `spdy bench` itself.
    assert!(server["processes"].as_u64() >= Some(3), "{json}");
    assert!(
        server["resident_bytes"].as_u64() > Some(1_000_000),
        "{json}"
    );
    assert!(server["cpu_seconds_per_100000"].is_number(), "{json}");
}

/// A listener that accepts connections and sends no response.
fn silent_listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port on loopback");
    let url = format!("http://{}/", listener.local_addr().expect("a bound socket"));
    (listener, url)
}

#[test]
fn requests_without_a_response_time_out() {
    let (listener, url) = silent_listener();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || drain(stream));
        }
    });
    for protocol in ["spdy/3.1", "h2", "http/1.1"] {
        let json = result(
            1,
            &[
                "--protocol",
                protocol,
                "--requests",
                "2",
                "--streams",
                "2",
                "--timeout",
                "0.05",
                &url,
            ],
        );
        let errors = &json["errors"];
        // In HTTP/1.1 the loss of a connection's first request also loses the one after it.
        let lost = errors["connection lost"]["count"].as_u64().unwrap_or(0);
        let timed_out = errors["timeout"]["count"].as_u64().unwrap_or(0);
        assert_eq!(
            (lost + timed_out, timed_out > 0),
            (2, true),
            "{protocol}: {json}"
        );
        assert_eq!(json["requests"], 0, "{protocol}: {json}");
    }
}

fn drain(mut stream: TcpStream) {
    let _ = std::io::copy(&mut stream, &mut std::io::sink());
}

#[test]
fn closed_connections_are_reopened_without_lost_requests() {
    let (listener, url) = silent_listener();
    // Each connection gets two responses; later requests are dropped.
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || two_responses(stream));
        }
    });
    let json = result(
        0,
        &[
            "--protocol",
            "http/1.1",
            "--requests",
            "10",
            "--expect-bytes",
            "2",
            &url,
        ],
    );
    assert_eq!(json["requests"], 10, "{json}");
    assert_eq!(json["reconnects"], 4, "{json}");
    let json = result(
        0,
        &[
            "--protocol",
            "http/1.1",
            "--requests",
            "10",
            "--streams",
            "2",
            "--expect-bytes",
            "2",
            &url,
        ],
    );
    assert_eq!(json["requests"], 10, "{json}");
}

fn two_responses(stream: TcpStream) {
    let mut lines = BufReader::new(stream.try_clone().expect("a second handle")).lines();
    let mut stream = stream;
    for last in [false, true] {
        if !lines.any(|line| line.is_ok_and(|line| line.is_empty())) {
            return;
        }
        let close = if last { "connection: close\r\n" } else { "" };
        let chunked = "transfer-encoding: chunked\r\n\r\n1;x=y\r\na\r\n1\r\nb\r\n0\r\nt: u\r\n\r\n";
        let _ = write!(stream, "HTTP/1.1 200 OK\r\n{close}{chunked}");
    }
    let _ = stream.shutdown(std::net::Shutdown::Write);
    lines.by_ref().map_while(Result::ok).for_each(drop);
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_run_with_partial_results() {
    let (listener, url) = silent_listener();
    let mut child = spdy(&[
        "bench",
        "--json",
        "--duration",
        "600",
        "-p",
        "http/1.1",
        &url,
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::null())
    .spawn()
    .expect("start the program");
    // The first request got its response, so it measures.
    let (stream, _) = listener.accept().expect("a connection");
    let mut stream = with_read_timeout(stream);
    let mut request = [0; 1024];
    for _ in 0..2 {
        let _ = stream.read(&mut request).expect("a request");
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            .expect("write the response");
    }
    let _ = stream
        .read(&mut request)
        .expect("a third request after two responses");
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.expect("run `kill`").success());
    let mut line = String::new();
    let mut stdout = child.stdout.take().expect("a pipe");
    stdout.read_to_string(&mut line).expect("text is UTF-8");
    let json: Value = serde_json::from_str(&line).expect("one line of JSON");
    assert_eq!(
        (&json["stopped"], &json["requests"]),
        (&true.into(), &2.into()),
        "{json}"
    );
    assert_eq!(json["unfinished"], 1, "{json}");
    assert!(ended(&mut child).success());
}

#[test]
fn text_output_has_the_same_results_as_json() {
    let (_folder, server) = start_server(&[]);
    let url = format!("{}/file", server.origin(false));
    let arguments = ["bench", "-q", "-n", "10", "-m", "3", "-p", "spdy/3.1", &url];
    let output = run_expecting(0, &mut spdy(&arguments));
    let stdout = String::from_utf8(output.stdout).expect("text is UTF-8");
    assert!(
        stdout.starts_with("load        spdy/3.1, 1 sessions of 3 streams, "),
        "{stdout}"
    );
    for words in [
        "10 in total, 10 x 200",
        "latency     p50 ",
        "headers ",
        "set-up ",
    ] {
        assert!(stdout.contains(words), "no {words:?} in {stdout}");
    }
}
