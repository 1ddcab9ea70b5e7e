//! `spdy inspect` on connections between `spdy fetch` and `spdy serve`, with and without TLS.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use spdy_testkit::wait::ended;

use crate::support::clients::capture::Relay;
use crate::support::files::FILES;
use crate::support::program::{ServeProcess, run_expecting, spdy, stdout_of};

/// The path of a test vector.
fn vector(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/spec/live");
    path.join(name).display().to_string()
}

/// Captures a fetch of 1 MB. Returns the capture and its key log.
fn capture_fetch(folder: &Path, secure: bool) -> (PathBuf, PathBuf) {
    let server = ServeProcess::start(&FILES.folder, &[]);
    let relay = Relay::to(if secure { server.tls } else { server.plain });
    let scheme = if secure { "https" } else { "http" };
    let url = format!("{scheme}://{}/1m", relay.address);
    let (pcap, keys) = (folder.join("fetch.pcap"), folder.join("keys.txt"));
    let mut fetch = spdy(&[
        "fetch",
        "--insecure",
        "--protocol",
        "spdy/3.1",
        "--output-dir",
    ]);
    fetch.env("SSLKEYLOGFILE", &keys);
    run_expecting(0, fetch.arg(folder).arg(&url));
    relay.write_pcap(&pcap);
    (pcap, keys)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

#[test]
fn a_plain_fetch_is_read_from_its_capture() {
    let folder = tempfile::tempdir().expect("create a folder");
    let (pcap, _) = capture_fetch(folder.path(), false);
    let stdout = stdout_of(0, &["inspect", text(&pcap)]);
    for expected in [
        "SPDY/3.1, by its first bytes",
        "> [1] SYN_STREAM stream 1, priority",
        "                 :path: /1m",
        "< [1] SYN_REPLY stream 1",
        "                 :status: 200",
        "1048576 bytes of DATA",
        "-> 200",
    ] {
        assert!(stdout.contains(expected), "no {expected:?} in {stdout}");
    }
    // Without an option only the summary is shown; the timeline has the frames.
    let summary = stdout_of(0, &["inspect", text(&pcap), "--summary"]);
    assert!(
        !summary.contains("SYN_STREAM") && summary.contains("client fin"),
        "{summary}"
    );
}

#[test]
fn a_fetch_over_tls_is_read_with_its_key_log_and_not_without() {
    let folder = tempfile::tempdir().expect("create a folder");
    let (pcap, keys) = capture_fetch(folder.path(), true);
    let stdout = stdout_of(
        0,
        &["inspect", text(&pcap), "--keylog", text(&keys), "--json"],
    );
    let lines: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect();
    let session = lines.last().expect("a session");
    assert_eq!(session["event"], "session", "{session}");
    assert_eq!(session["version"], "SPDY/3.1");
    assert_eq!(
        (&session["found_by"], &session["tls"]),
        (&"ALPN".into(), &true.into())
    );
    assert_eq!(session["bytes_to_client"], 1_048_576);
    assert_eq!(session["missing_bytes"], serde_json::json!([0, 0]));
    let frames = |kind: &str| lines.iter().filter(|line| line["type"] == kind).count();
    assert_eq!((frames("SYN_STREAM"), frames("SYN_REPLY")), (1, 1));
    let data: u64 = lines
        .iter()
        .filter(|line| line["type"] == "DATA")
        .map(|line| line["len_bytes"].as_u64().expect("a length"))
        .sum();
    assert_eq!(data, 1_048_576);

    let output = run_expecting(1, &mut spdy(&["inspect", text(&pcap)]));
    let (out, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(out.contains("offering spdy/3.1"), "{out}");
    assert!(stderr.contains("see --keylog"), "{stderr}");
}

#[test]
fn raw_streams_of_a_kubernetes_exec_are_shown_with_their_data() {
    let stdout = stdout_of(
        0,
        &[
            "inspect",
            "--client",
            &vector("live_kubernetes_exec_upgrade.c2s.bin"),
            "--server",
            &vector("live_kubernetes_exec_upgrade.s2c.bin"),
            "--data",
        ],
    );
    insta::assert_snapshot!("inspect_kubernetes", stdout);
}

/// spdy-transport writes the byte 0x60: 1 in the two bits of SPDY/2, 3 in the three bits of SPDY/3.
#[test]
fn priorities_are_shown_as_the_numbers_on_the_wire() {
    for (recording, priority) in [
        ("live_v2_spdytransport_nodespdy", 1),
        ("live_v3_spdytransport_netty3", 3),
    ] {
        let (client, server) = (
            vector(&format!("{recording}.c2s.bin")),
            vector(&format!("{recording}.s2c.bin")),
        );
        let streams = ["inspect", "--client", &client, "--server", &server];
        let text = stdout_of(0, &streams);
        let expected = format!("SYN_STREAM stream 1, priority {priority}");
        assert!(text.contains(&expected), "no {expected:?} in {text}");
        let json = stdout_of(0, &[&streams[..], &["--json"]].concat());
        let syn_stream = json
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("a line is JSON"))
            .find(|line| line["type"] == "SYN_STREAM")
            .expect("a stream");
        assert_eq!(syn_stream["priority"], priority, "{syn_stream}");
    }
}

#[test]
fn a_damaged_capture_fails_with_its_offset() {
    let folder = tempfile::tempdir().expect("create a folder");
    let file = folder.path().join("cut.pcap");
    let head = [
        0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0,
    ];
    std::fs::write(&file, [&head[..], &[0; 5]].concat()).expect("write the file");
    let output = run_expecting(1, &mut spdy(&["inspect", text(&file)]));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("5 bytes into the record at byte 24"),
        "{stderr}"
    );
    run_expecting(2, &mut spdy(&["inspect"]));
    run_expecting(2, &mut spdy(&["inspect", "--client", "c2s.bin"]));
}

#[test]
fn a_capture_from_stdin_is_shown_while_it_grows() {
    let folder = tempfile::tempdir().expect("create a folder");
    let (pcap, _) = capture_fetch(folder.path(), false);
    let capture = std::fs::read(&pcap).expect("read the capture");
    let mut inspect = spdy(&["inspect", "-"]);
    inspect.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut inspect = inspect.spawn().expect("start the program");
    let mut stdin = inspect.stdin.take().expect("piped");
    let mut lines = BufReader::new(inspect.stdout.take().expect("piped")).lines();
    let mut until = |expected: &str| {
        let line = lines.find(|line| line.as_ref().expect("text").contains(expected));
        assert!(line.is_some(), "no {expected:?}");
    };
    // Without the last packets: the session is still open, and its beginning is shown.
    let (first_part, rest) = capture.split_at(capture.len() - 1000);
    stdin.write_all(first_part).expect("write to the program");
    until("SYN_STREAM stream 1");
    until("SYN_REPLY stream 1");
    stdin.write_all(rest).expect("write to the program");
    drop(stdin);
    until("1048576 bytes of DATA");
    assert!(ended(&mut inspect).success());
}

#[test]
fn spdy_inside_a_websocket_is_read_and_other_protocols_are_named() {
    let recorded = |name: &str, side: &str| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/kubernetes");
        folder
            .join(format!("{name}.{side}.bin"))
            .display()
            .to_string()
    };
    let arguments = |name: &str| {
        [
            "inspect",
            "--client",
            &recorded(name, "c2s"),
            "--server",
            &recorded(name, "s2c"),
        ]
        .map(str::to_owned)
    };
    let forward = arguments("ws_portforward");
    let stdout = stdout_of(0, &forward.each_ref().map(String::as_str));
    for expected in [
        "SPDY/3.1, by WebSocket",
        "streamtype: data",
        "2000 bytes of DATA",
    ] {
        assert!(stdout.contains(expected), "no {expected:?} in {stdout}");
    }
    let exec = arguments("ws_exec");
    let output = run_expecting(1, &mut spdy(&exec.each_ref().map(String::as_str)));
    let stdout = String::from_utf8_lossy(&output.stdout);
    let expected = "GET /ws/exec?cmd=cat is a WebSocket of v5.channel.k8s.io: streams without SPDY";
    assert!(stdout.contains(expected), "{stdout}");
    // The error is printed even with --quiet.
    let mut quiet = spdy(&exec.each_ref().map(String::as_str));
    let output = run_expecting(1, quiet.arg("--quiet"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("error: no SPDY session found"), "{stderr}");
}
