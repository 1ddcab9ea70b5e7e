//! Replicas: import, check, summary and export.

use std::fs;

use serde_json::Value;

use crate::support::program::{stderr_of, stdout_of};

/// A recording of a page with one image, whose body is missing, and one failed request.
const HAR: &str = r#"{"log":{"version":"1.2","creator":{"name":"hand","version":"1"},"pages":[
  {"id":"p1","startedDateTime":"2013-06-04T10:00:00.000Z","title":"t","pageTimings":{"onContentLoad":90,"onLoad":120}}],
 "entries":[
  {"pageref":"p1","startedDateTime":"2013-06-04T10:00:00.000Z","time":50,"serverIPAddress":"192.0.2.1","cache":{},
   "request":{"method":"GET","url":"http://a.test/","httpVersion":"HTTP/1.1","headers":[{"name":"Host","value":"a.test"}],
    "cookies":[],"queryString":[],"headersSize":-1,"bodySize":0},
   "response":{"status":200,"statusText":"OK","httpVersion":"HTTP/1.1","headers":[{"name":"Content-Type","value":"text/html"}],
    "cookies":[],"redirectURL":"","headersSize":-1,"bodySize":39,
    "content":{"size":39,"mimeType":"text/html","text":"<html><img src=\"http://b.test/i.png\"> "}},
   "timings":{"blocked":0,"dns":-1,"connect":-1,"send":0,"wait":40,"receive":10}},
  {"pageref":"p1","startedDateTime":"2013-06-04T10:00:00.060Z","time":30,"serverIPAddress":"192.0.2.2","cache":{},
   "request":{"method":"GET","url":"http://b.test/i.png","httpVersion":"HTTP/1.1","headers":[{"name":"Host","value":"b.test"}],
    "cookies":[],"queryString":[],"headersSize":-1,"bodySize":0},
   "response":{"status":200,"statusText":"OK","httpVersion":"HTTP/1.1","headers":[{"name":"Content-Type","value":"image/png"}],
    "cookies":[],"redirectURL":"","headersSize":-1,"bodySize":1234,"content":{"size":1234,"mimeType":"image/png"}},
   "timings":{"blocked":0,"dns":-1,"connect":-1,"send":0,"wait":20,"receive":10}}]}}"#;

#[test]
fn a_recording_becomes_a_replica_that_shows_checks_and_races() {
    let folder = tempfile::tempdir().expect("create a folder");
    let path = |name: &str| {
        folder
            .path()
            .join(name)
            .to_str()
            .expect("the path is UTF-8")
            .to_owned()
    };
    fs::write(path("page.har"), HAR).expect("write the file");

    let imported = stdout_of(
        0,
        &[
            "replica",
            "import",
            &path("page.har"),
            "-o",
            &path("page.replica"),
            "--json",
        ],
    );
    let imported: Value = serde_json::from_str(&imported).expect("JSON");
    assert_eq!(
        (&imported["exchanges"], &imported["filler_bodies"]),
        (&2.into(), &1.into()),
        "{imported}"
    );

    let summary: Value = serde_json::from_str(&stdout_of(
        0,
        &["replica", "show", &path("page.replica"), "--json"],
    ))
    .expect("JSON");
    assert_eq!(
        summary["hosts"].as_array().map(Vec::len),
        Some(2),
        "{summary}"
    );
    let text = stdout_of(
        0,
        &["replica", "show", &path("page.replica"), "--resources"],
    );
    assert!(
        text.contains("a.test") && text.contains("http://b.test/i.png"),
        "{text}"
    );

    let findings = stdout_of(0, &["replica", "check", &path("page.har"), "--json"]);
    assert!(findings.contains("1 of 2 bodies"), "{findings}");

    for file in ["page.har", "page.replica"] {
        let line = stdout_of(
            0,
            &[
                "race",
                &path(file),
                "-n",
                "dsl",
                "-p",
                "spdy",
                "--json",
                "--quiet",
            ],
        );
        let load: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(load["requests"], 2, "{load}");
    }
}

#[test]
fn a_valid_replica_passes_its_check() {
    for name in ["flags", "portal"] {
        stdout_of(0, &["replica", "check", name]);
    }
}

#[test]
fn an_unknown_format_is_reported_with_its_first_bytes() {
    let folder = tempfile::tempdir().expect("create a folder");
    let file = folder.path().join("photo.har");
    fs::write(&file, b"\x89PNG....").expect("write the file");
    let path = file.to_str().expect("the path is UTF-8");
    let stderr = stderr_of(1, &["replica", "import", path, "-o", "nothing.replica"]);
    assert!(stderr.contains("PNG") && stderr.contains("HAR"), "{stderr}");
}

#[test]
fn a_replica_is_exported_as_har_to_stdout_or_a_file_and_read_again() {
    let folder = tempfile::tempdir().expect("create a folder");
    let file = folder.path().join("portal.har");
    let file = file.to_str().expect("the path is UTF-8");
    let text = stdout_of(0, &["replica", "export", "har", "portal"]);
    stdout_of(0, &["replica", "export", "har", "portal", "-o", file]);
    assert_eq!(fs::read_to_string(file).expect("the file exists"), text);
    let stdout = stdout_of(0, &["replica", "show", file]);
    assert!(stdout.contains("44 exchanges with 7 hosts"), "{stdout}");
}
