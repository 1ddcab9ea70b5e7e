//! The access log in a file: what other programs read of it, rotation by logrotate, reloads, and the end of the program.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use spdy_testkit::wait::until;

use crate::support::accelerator::program::Accelerator;
use crate::support::clients::raw_client::PendingResponse;
use crate::support::peers::{is_installed, peers_enabled, require};
use crate::support::program::{ServeProcess, run_expecting};

fn serve() -> ServeProcess {
    let folder = tempfile::tempdir().expect("create a folder");
    std::fs::write(folder.path().join("a"), "four").expect("write the file");
    ServeProcess::start(folder.path(), &[])
}

fn config(origin: &ServeProcess, log: Option<(&Path, &str)>) -> String {
    let log = log.map(|(file, format)| {
        let file = file.display().to_string();
        format!("[access_log]\nfile = {file:?}\nformat = '{format}'\n")
    });
    format!(
        "[listen]\ntls = []\nplain = ['127.0.0.1:0']\ntrusted = ['127.0.0.1']\n{}\
         [[site]]\nnames = ['www.site.test']\norigin = 'http://{}'\n",
        log.unwrap_or_default(),
        origin.plain
    )
}

fn get(accelerator: &Accelerator, target: &[u8], fields: &[u8]) -> u16 {
    let head: [&[u8]; 5] = [
        b"GET ",
        target,
        b" HTTP/1.1\r\nHost: www.site.test\r\nConnection: close\r\n",
        fields,
        b"\r\n\r\n",
    ];
    PendingResponse::begin(accelerator.plain(), &head.concat())
        .end(usize::MAX)
        .status
}

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn log_in(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("access.log")
}

#[test]
fn a_combined_line_has_the_client_and_escaped_fields() {
    let folder = tempfile::tempdir().expect("create a folder");
    let (path, origin) = (log_in(&folder), serve());
    let accelerator = Accelerator::start(&config(&origin, Some((&path, "combined"))));
    let fields = b"X-Forwarded-For: 192.0.2.7\r\nReferer: https://a.test/\"x\r\n\
        User-Agent: \" 200 1 \"-\" \"fake\"\t\\\xff";
    assert_eq!(get(&accelerator, b"/a?b=1", fields), 200);
    // Not a request: neither its method nor its target could be read.
    get(&accelerator, b"/\x01", b"X-Forwarded-For: 192.0.2.8");
    until("both lines are written", || lines(&path).len() == 2);
    let (first, second) = (lines(&path).remove(0), lines(&path).remove(1));
    let (start, rest) = first.split_once(" - - [").expect("the client");
    assert_eq!(start, "192.0.2.7", "{first}");
    let (_, rest) = rest.split_once("] ").expect("the time");
    assert_eq!(
        rest,
        r#""GET /a?b=1 HTTP/1.1" 200 4 "https://a.test/\x22x" "\x22 200 1 \x22-\x22 \x22fake\x22\x09\x5C\xFF""#
    );
    let end = "\"-\" 400 ";
    assert!(second.contains(end), "{second}");
}

#[test]
fn goaccess_reads_the_combined_format() {
    if !peers_enabled() {
        return;
    }
    require("goaccess", is_installed("goaccess"));
    let folder = tempfile::tempdir().expect("create a folder");
    let (path, origin) = (log_in(&folder), serve());
    let accelerator = Accelerator::start(&config(&origin, Some((&path, "combined"))));
    for target in [&b"/a?q=\"x\""[..], b"/a", b"/missing"] {
        get(
            &accelerator,
            target,
            b"X-Forwarded-For: 192.0.2.7\r\nReferer: https://\"r.test/\r\nUser-Agent: \"Mozilla/5.0\" \\",
        );
    }
    until("the lines are written", || lines(&path).len() == 3);
    let mut goaccess = Command::new("goaccess");
    goaccess
        .arg(&path)
        .args(["--log-format=COMBINED", "--no-global-config", "-o", "json"])
        .stdin(Stdio::null());
    let output = run_expecting(0, &mut goaccess);
    let report: Value = serde_json::from_slice(&output.stdout).expect("valid JSON");
    let of = |key: &str| report["general"][key].as_u64();
    assert_eq!(
        (of("valid_requests"), of("failed_requests")),
        (Some(3), Some(0))
    );
    assert_eq!(of("unique_not_found"), Some(1), "{report}");
    assert_eq!(report["hosts"]["data"][0]["data"], "192.0.2.7");
}

/// The example file for logrotate, with another path and its command replaced by `kill`.
fn logrotate_config(path: &Path, process: u32) -> String {
    let example = include_str!("../../../../../deploy/logrotate");
    let signal = "systemctl kill --kill-whom=main --signal=USR1 spdy-accelerate";
    assert!(example.contains(signal), "{example}");
    example
        .replace("/var/log/spdy/access.log", &path.display().to_string())
        .replace(signal, &format!("kill -USR1 {process}"))
}

#[test]
fn logrotate_rotates_the_file_without_a_lost_line() {
    if !peers_enabled() {
        return;
    }
    let program = Path::new("/usr/sbin/logrotate");
    require("logrotate", program.is_file());
    let folder = tempfile::tempdir().expect("create a folder");
    let (path, origin) = (log_in(&folder), serve());
    let accelerator = Accelerator::start(&config(&origin, Some((&path, "json"))));
    get(&accelerator, b"/a?before", b"X-A: b");
    until("the line is written", || lines(&path).len() == 1);
    let rules = folder.path().join("rules");
    let text = logrotate_config(&path, accelerator.id());
    std::fs::write(&rules, text).expect("write the file");
    let mut logrotate = Command::new(program);
    logrotate.arg("--force").arg("--state");
    logrotate.arg(folder.path().join("state")).arg(&rules);
    run_expecting(0, &mut logrotate);
    until("the file is created again", || path.exists());
    get(&accelerator, b"/a?after", b"X-A: b");
    accelerator.end();
    let targets = |path: &Path| -> Vec<String> {
        let parse = |line: &String| -> Value { serde_json::from_str(line).expect("valid JSON") };
        let values = lines(path);
        let values = values.iter().map(parse);
        values.map(|line| line["uri"].to_string()).collect()
    };
    let rotated = path.with_extension("log.1");
    assert_eq!(targets(&rotated), ["\"http://www.site.test/a?before\""]);
    assert_eq!(targets(&path), ["\"http://www.site.test/a?after\""]);
}

#[test]
fn a_reload_changes_the_file_and_ends_it() {
    let folder = tempfile::tempdir().expect("create a folder");
    let (path, origin) = (log_in(&folder), serve());
    let accelerator = Accelerator::start(&config(&origin, None));
    get(&accelerator, b"/a?none", b"X-A: b");
    accelerator.reload(&config(&origin, Some((&path, "json"))));
    until("the file is created", || path.exists());
    get(&accelerator, b"/a?one", b"X-A: b");
    let other = folder.path().join("other.log");
    accelerator.reload(&config(&origin, Some((&other, "combined"))));
    until("the other file is created", || other.exists());
    get(&accelerator, b"/a?two", b"X-A: b");
    until("the other file has a line", || lines(&other).len() == 1);
    assert_eq!(lines(&path).len(), 1);
    accelerator.reload(&config(&origin, None));
    until("the reload is reported", || {
        accelerator.count_lines_with("reloaded the configuration") == 3
    });
    get(&accelerator, b"/a?three", b"X-A: b");
    accelerator.end();
    assert_eq!((lines(&path).len(), lines(&other).len()), (1, 1));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_stops_no_request_and_is_counted() {
    let folder = tempfile::tempdir().expect("create a folder");
    let token = folder.path().join("token");
    let mut file = std::fs::File::create(&token).expect("create the file");
    file.write_all(b"0123456789abcdef").expect("write the file");
    let origin = serve();
    let config = config(&origin, Some((Path::new("/dev/full"), "combined")));
    let admin = format!(
        "[admin]\naddress = '127.0.0.1:0'\ntoken_file = {:?}\n",
        token.display().to_string()
    );
    let accelerator = Accelerator::start(&format!("{admin}{config}"));
    assert_eq!(get(&accelerator, b"/a", b"X-A: b"), 200);
    let line = accelerator.line_with("cannot write the access log /dev/full");
    assert!(line.contains("No space left on device"), "{line}");
    until("another attempt has failed", || {
        accelerator.metric("spdy_access_log_errors_total ") >= Some(2)
    });
    assert_eq!(get(&accelerator, b"/a", b"X-A: b"), 200);
    assert_eq!(
        accelerator.count_lines_with("cannot write the access log"),
        1
    );
    let written = accelerator.metric("spdy_access_log_lines_total{outcome=\"written\"} ");
    assert_eq!(written, Some(0));
    accelerator.end();
}
