//! Experiments in real time whose pages come from other servers.
//!
//! These tests do not judge times, so a run that does not count is as good as another one.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use rusqlite::types::Value;
use spdy_testkit::wait;

use super::har;
use super::lab::{Lab, number, rows, text};
use super::turn;

/// Slow enough that most runs count on a busy machine: limits grow with the time of a run.
const NETWORK: &str = "network = 'down=400kbit,up=200kbit,rtt=400ms'";

/// A folder with an experiment, its page, and our programs for other servers.
fn lab(protocol: &str, servers: &str) -> Lab {
    let lab = Lab::new(&format!(
        "name = 'servers'\npages = ['page.har']\nprotocols = ['{protocol}']\n[factors]\n{NETWORK}\nclock = 'real'\nserver = {servers}\n"
    ));
    fs::write(lab.path("page.har"), page()).expect("write the page");
    let interop = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop");
    symlink(interop, lab.path("interop")).expect("create a link");
    lab
}

/// A page of two hosts: repeated headers, a target that is no URI by RFC 3986, a missing resource, and a body of several windows.
fn page() -> String {
    let document = "<link rel=stylesheet href=//b.test/style.css?a=1|2><img src=/large.png><img src=/missing.png>";
    let style = format!("/*{}*/", "x".repeat(3_000));
    let headers = [
        ("Set-Cookie", "a=1"),
        ("Set-Cookie", "b=2"),
        ("Server", "recorded"),
    ];
    let entry = |url, status, content| har::entry(url, status, &headers, &content);
    har::page(&[
        entry("http://a.test/", 200, har::text("text/html", document)),
        entry(
            "http://b.test/style.css?a=1|2",
            200,
            har::text("text/css", &style),
        ),
        entry("http://a.test/large.png", 200, har::image(80_000)),
        entry("http://a.test/missing.png", 404, har::image(0)),
    ])
}

/// Command lines of processes that name a file in the folder of `lab`, as other servers do.
fn processes_of(lab: &Lab) -> Vec<String> {
    let folder = lab.path("spdy-gateway-");
    let folder = folder.to_str().expect("the path is UTF-8");
    let processes = fs::read_dir("/proc").expect("Linux").flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    let lines = lines.map(|line| text(&line).replace('\0', " "));
    lines.filter(|line| line.contains(folder)).collect()
}

/// Runs the experiment of [`lab`]: each load must be whole and have the same headers as by the other servers, and no process and no file of
/// another server may be left.
fn loads_are_whole(protocol: &str, servers: &[&str]) {
    let lab = lab(protocol, &format!("{servers:?}"));
    let run = lab.run(&["run", "small.toml", "--store", "a.db"]);
    let rows = rows(&lab, "a.db");
    assert_eq!(rows.len(), servers.len(), "{}", text(&run.stderr));
    for ((key, _), row) in &rows {
        assert_eq!(row["failures"], Value::Null, "{key}");
        assert_eq!(number(&row["requests"]), 4.0, "{key}");
        // A server may add a few headers.
        let bytes = number(&row["response_header_bytes"]);
        let least = rows
            .values()
            .map(|row| number(&row["response_header_bytes"]));
        let least = least.fold(f64::INFINITY, f64::min);
        assert!(bytes < least + 4.0 * 100.0, "{key}: {bytes} of {least}");
        assert!(number(&row["computed_ms"]) > 0.0, "{key}");
    }
    assert_eq!(processes_of(&lab), Vec::<String>::new());
    let files = fs::read_dir(lab.path("")).expect("a folder").flatten();
    let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    let left: Vec<_> = names.filter(|name| name.starts_with("spdy-")).collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn nginx_and_node_spdy_serve_the_same_page_as_our_server_over_h2() {
    let Some(_turn) = turn() else { return };
    loads_are_whole("h2", &["ours", "nginx", "node-spdy"]);
}

#[test]
fn node_spdy_and_netty_serve_the_whole_page_over_spdy() {
    let Some(_turn) = turn() else { return };
    loads_are_whole("spdy", &["node-spdy", "netty"]);
}

#[test]
fn jetty_serves_the_whole_page_over_spdy_3() {
    let Some(_turn) = turn() else { return };
    loads_are_whole("spdy3", &["jetty"]);
}

#[test]
fn a_killed_run_leaves_no_server() {
    let Some(_turn) = turn() else { return };
    let lab = lab("http", "'nginx'");
    let mut command = lab.command(&["run", "small.toml", "--store", "a.db"]);
    let mut run = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("start `spdy`");
    wait::until("nginx runs", || !processes_of(&lab).is_empty());
    run.kill().expect("it runs");
    wait::ended(&mut run);
    wait::until("nginx has ended", || processes_of(&lab).is_empty());
}

#[test]
fn a_server_that_is_not_installed_is_an_error_before_the_first_load() {
    let Some(_turn) = turn() else { return };
    let lab = lab("spdy", "['ours', 'node-spdy']");
    fs::remove_file(lab.path("interop")).expect("remove the link");
    let run = lab.run_expecting(1, &["run", "small.toml", "--store", "a.db"]);
    let stderr = text(&run.stderr);
    let expected = "server=node-spdy: interop/node-spdy/node_modules/spdy was not found: run scripts/setup-peers";
    assert!(stderr.contains(expected), "{stderr}");
    assert!(!lab.path("a.db").exists());
}

#[test]
fn a_server_is_refused_in_virtual_time_and_by_other_protocols() {
    for (factors, expected) in [
        (
            "server = 'nginx'",
            "server=nginx serves through the kernel: expected clock=real",
        ),
        (
            "server = 'nginx'\nclock = 'real'",
            "server=nginx does not speak spdy: expected http, https or h2",
        ),
        (
            "server = 'apache'",
            "unknown server \"apache\": expected ours, nginx",
        ),
    ] {
        let head =
            "name = 'a'\npages = ['portal']\nprotocols = ['spdy']\n[factors]\nnetwork = 'dsl'";
        let lab = Lab::new(&format!("{head}\n{factors}\n"));
        let output = lab.run(&["cells", "small.toml"]);
        let stderr = text(&output.stderr);
        assert!(
            !output.status.success() && stderr.contains(expected),
            "{stderr}"
        );
    }
}
