//! Programs behind a link in real time: the kernel's TCP through namespaces and TUN devices.
//!
//! These tests fail with a message on a machine without namespaces; `SPDY_SKIP_NAMESPACES=1` skips them.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use spdy_testkit::wait::{ended, until};

use crate::support::peers::{is_installed, peers_enabled, require};
use crate::support::program::{output, run_expecting, spdy};
use crate::support::unprivileged::{UNPRIVILEGED_ID, unprivileged};

/// Maximum number of runs; on a busy machine, some may be late.
const ATTEMPTS: usize = 10;

/// Whether these tests are skipped.
fn skips() -> bool {
    std::env::var_os("SPDY_SKIP_NAMESPACES").is_some()
}

/// The measurements of the link: the last line on stderr.
fn link_stats(output: &Output) -> Value {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last = stderr.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {stderr}"))
}

#[test]
fn a_program_behind_a_link_gets_the_configured_rate() {
    if skips() {
        return;
    }
    let folder = tempfile::tempdir().expect("create a folder");
    let body: Vec<u8> = (0..300_000u32).map(|at| (at % 251) as u8).collect();
    std::fs::write(folder.path().join("file"), &body).expect("write the file");
    let (program, folder) = (env!("CARGO_BIN_EXE_spdy"), folder.path().display());
    let server = format!("{program} serve {folder} --plain 0.0.0.0:80");
    let mut faults = Vec::new();
    for _ in 0..ATTEMPTS {
        let mut command = spdy(&["lab", "shape", "--json", "--server", &server]);
        command.args(["--network", "down=2mbit,up=384kbit,rtt=30ms", "--"]);
        command.args([program, "fetch", "-q", "http://203.0.113.9/file"]);
        let output = run_expecting(0, &mut command);
        assert!(
            output.stdout == body,
            "{} bytes arrived",
            output.stdout.len()
        );
        let run = link_stats(&output);
        if run["faults"] != serde_json::json!([]) {
            faults.push(run["faults"].clone());
            continue;
        }
        assert_eq!(run["network"], "down=2mbit,up=384kbit,rtt=30ms", "{run}");
        let number = |way: &str, field: &str| run[way][field].as_f64().expect("a number");
        // At least 208 segments of 1,448 bytes, none of them larger than the link's packets.
        assert!(number("down", "packets") >= 208.0, "{run}");
        assert!(number("down", "busy_seconds") > 1.0, "{run}");
        let rate = number("down", "busy_bps") / 2e6;
        assert!((0.995..=1.005).contains(&rate), "{run}");
        return;
    }
    panic!("no valid run in {ATTEMPTS} attempts: {faults:#?}");
}

/// Root creates its namespaces directly, other users inside a user namespace. The command keeps its user and group there.
#[test]
fn an_unprivileged_user_keeps_its_identity_behind_the_link() {
    if skips() {
        return;
    }
    let folder = tempfile::tempdir().expect("create a folder");
    let shape = |words: &[&str]| {
        let arguments = ["lab", "shape", "-q", "--network", "dsl", "--"];
        let mut command = unprivileged(folder.path(), &arguments);
        let output = run_expecting(0, command.args(words));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let of = |option: &str| {
        let output = Command::new("id").arg(option).output().expect("a user ID");
        match String::from_utf8_lossy(&output.stdout).trim() {
            "0" => UNPRIVILEGED_ID.to_string(),
            number => number.to_owned(),
        }
    };
    let ids = [of("-u"), of("-g")];
    let shown = shape(&[
        "sh",
        "-c",
        "id -u; id -g; readlink /proc/self/ns/user; grep CapEff /proc/self/status",
    ]);
    let shown: Vec<&str> = shown.lines().collect();
    assert_eq!(shown[..2], ids);
    let own_namespace = std::fs::read_link("/proc/self/ns/user").expect("Linux");
    assert_ne!(
        shown[2],
        own_namespace.to_string_lossy(),
        "no user namespace"
    );
    assert_eq!(
        shown[3], "CapEff:\t0000000000000000",
        "expected no privileges over the link"
    );
    // The link carries the data of a server of this user.
    let site_folder = folder.path().join("served");
    std::fs::create_dir(&site_folder).expect("create a folder");
    std::fs::write(site_folder.join("file"), "behind the link").expect("write the file");
    let program = folder.path().join("spdy");
    let (program, site_folder) = (program.display(), site_folder.display());
    let server = format!("{program} serve {site_folder} --plain 0.0.0.0:80");
    let arguments = [
        "lab",
        "shape",
        "-q",
        "--network",
        "dsl",
        "--server",
        &server,
        "--",
    ];
    let mut command = unprivileged(folder.path(), &arguments);
    command.args([
        &program.to_string(),
        "fetch",
        "-q",
        "http://203.0.113.9/file",
    ]);
    assert_eq!(run_expecting(0, &mut command).stdout, b"behind the link");
}

#[test]
fn the_exit_code_is_the_commands() {
    if skips() {
        return;
    }
    let ends = |code: i32, words: &[&str]| {
        let mut command = spdy(&["lab", "shape", "--network", "dsl", "--"]);
        run_expecting(code, command.args(words));
    };
    ends(0, &["true"]);
    ends(7, &["sh", "-c", "exit 7"]);
    ends(143, &["sh", "-c", "kill -TERM $$"]);
    ends(127, &["no-such-program"]);
}

#[test]
fn impossible_settings_are_reported_with_a_reason() {
    if skips() {
        return;
    }
    let shape = |code: i32, words: &[&str]| {
        let output = run_expecting(code, spdy(&["lab", "shape"]).args(words));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let rate = shape(2, &["--network", "down=2,up=1mbit,rtt=1ms", "--", "true"]);
    assert!(
        rate.contains("down=2") && rate.contains("as 2mbit"),
        "{rate}"
    );
    let no_network = shape(2, &["--", "true"]);
    assert!(
        no_network.contains("no network: give a name") && no_network.contains("rtt="),
        "{no_network}"
    );
    let congestion = shape(1, &["-n", "dsl", "--congestion", "nosuch", "--", "true"]);
    assert!(
        congestion.contains("\"nosuch\"") && congestion.contains("reno"),
        "{congestion}"
    );
    let server = shape(1, &["-n", "dsl", "--server", "exit 3", "--", "true"]);
    assert!(
        server.contains("ended with 3 before it listened"),
        "{server}"
    );
}

/// Every child that inherited our pipe holds it open: end of file means that the last child has ended.
#[test]
fn killing_the_shaper_kills_every_child() {
    if skips() {
        return;
    }
    let mut child = spdy(&["lab", "shape", "-q", "--network", "dsl", "--"])
        .args([
            "sh",
            "-c",
            "setsid sleep 1000 & sleep 1000 & echo ready; wait",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("start `spdy`");
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("text");
    assert_eq!(line, "ready\n");
    child.kill().expect("a running process");
    child.wait().expect("the process was killed");
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).expect("text");
    assert_eq!(rest, "");
}

/// Every process that inherited our pipe holds it open: end of file means that the last process has ended.
#[test]
fn ctrl_c_ends_a_calibration_and_all_its_processes() {
    if skips() {
        return;
    }
    // A test run in the background may inherit an ignored SIGINT, unlike a terminal, so it is reset.
    let calibrate = spdy(&["lab", "calibrate", "--link", "--json", "-q"]);
    let mut child = Command::new("env")
        .arg("--default-signal=INT")
        .arg(calibrate.get_program())
        .args(calibrate.get_args())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("start `spdy`");
    let children = format!("/proc/{id}/task/{id}/children", id = child.id());
    until("a child process exists", || {
        !std::fs::read_to_string(&children).is_ok_and(|inner| inner.is_empty())
    });
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.expect("run `kill`").success());
    let mut text = String::new();
    let mut stdout = child.stdout.take().expect("a pipe");
    stdout.read_to_string(&mut text).expect("text");
    assert_eq!(text, "", "the command ran to its end");
    let status = ended(&mut child);
    assert_eq!(status.signal(), Some(2), "{status}");
}

/// Regression: a calibration showed nothing until its first load in real time ended.
#[test]
fn a_calibration_draws_its_progress_before_the_first_load_ends() {
    if skips() {
        return;
    }
    let calibrate = spdy(&["lab", "calibrate", "--pages", "lulic-bing"]);
    let program = calibrate.get_program().to_string_lossy();
    let arguments: Vec<_> = calibrate
        .get_args()
        .map(|it| it.to_string_lossy())
        .collect();
    let options = "--network lte --protocols http --runs 1";
    let typed = format!("{program} {} {options}", arguments.join(" "));
    // `script` gives it a terminal.
    let mut script = Command::new("script");
    script.args(["--quiet", "--command", &typed, "/dev/null"]);
    let output = output(script.env("TERM", "xterm"));
    let drawn = String::from_utf8_lossy(&output.stdout);
    for early in [
        "loading in virtual time",
        " 0/1 ",
        "loading in real time, about ",
        " 0 % ",
    ] {
        assert!(drawn.contains(early), "no {early:?} in {drawn}");
    }
}

/// The report of `spdy lab browse` for the page in `replica` over a fast network.
fn browse(replica: &str, protocols: &str) -> Value {
    let mut browse = spdy(&["lab", "browse", replica, "--network", "lte", "--runs", "1"]);
    browse.args(["--repeats", "0", "--protocols", protocols, "--json", "-q"]);
    let output = output(&mut browse);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Whether the link was on time is not tested here.
#[test]
fn chromium_behind_a_link_loads_a_complete_recorded_page() {
    if skips() || !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let report = browse("portal", "http,h2");
    let cells = report["cells"].as_array().expect("a list");
    assert_eq!(cells.len(), 2, "{report}");
    for (cell, min_connections) in cells.iter().zip([8, 7]) {
        let visit = &cell["loads"][0];
        // 44 of the page, and the icon that Chromium requests by itself.
        assert_eq!(visit["exchanges"], 45, "{visit}");
        assert_eq!(visit["failed_requests"], serde_json::json!([]));
        assert!(
            visit["connections"].as_u64() >= Some(min_connections),
            "{visit}"
        );
        assert!(
            visit["link"]["down"]["bytes"].as_u64() > Some(300_000),
            "{visit}"
        );
        let (ready, loaded) = (
            visit["dom_content_loaded_ms"].as_f64(),
            visit["load_ms"].as_f64(),
        );
        assert!(ready > Some(0.0) && ready < loaded, "{visit}");
        let (first, largest) = (visit["fcp_ms"].as_f64(), visit["lcp_ms"].as_f64());
        assert!(first > Some(0.0) && first <= largest, "{visit}");
        assert!(visit["cls"].is_f64() && visit["tbt_ms"].is_f64(), "{visit}");
        // Only loads with files have screenshots.
        assert!(visit["speed_index_ms"].is_null(), "{visit}");
        let valid = cell["virtual_ms"].as_array().map(Vec::len);
        assert_eq!(cell["virtual_fcp_ms"].as_array().map(Vec::len), valid);
    }
}

#[test]
fn a_load_that_requests_unrecorded_resources_does_not_count() {
    if skips() || !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let mut page = spdy_page::builtin::portal();
    let is_image =
        |exchange: &spdy_page::replica::Exchange| exchange.kind == spdy_page::replica::Kind::Image;
    let image = page
        .exchanges
        .iter_mut()
        .find(|exchange| is_image(exchange));
    let image = image.expect("a page with images");
    let removed_url = image.url.clone();
    image.url.set_path("/not-requested.png");
    let folder = tempfile::tempdir().expect("create a folder");
    let file = folder.path().join("page.warc.gz");
    std::fs::write(&file, spdy_page::archive::encode(&page, true)).expect("write the file");
    let report = browse(&file.to_string_lossy(), "http");
    let cell = &report["cells"][0];
    let failed_request = cell["loads"][0]["failed_requests"][0]
        .as_str()
        .unwrap_or_default();
    assert!(
        failed_request.contains(removed_url.path()) && failed_request.contains("(404)"),
        "{report}"
    );
    assert_eq!(
        cell["virtual_ms"],
        serde_json::json!([]),
        "expected no average"
    );
}

/// A page with a script on an unresolvable host (its URL differs each time) and an image without a response.
fn page_with_failures() -> spdy_page::replica::Replica {
    use spdy_page::replica::{Exchange, Kind};
    let html = "<!doctype html><title>x</title><img src=/refused.png>\
        <script>document.write('<script src=\"http://dead.test/x.js?' + Math.random() + '\"></' + 'script>')</script>";
    let url = "http://www.portal.test/".parse().expect("a URL");
    let document = Exchange::synthetic(url, Kind::Document, "text/html", html);
    let failure = |url: &str, error: &str| spdy_page::observation::Failure {
        method: "GET".to_owned(),
        url: url.to_owned(),
        error: error.to_owned(),
        started: None,
    };
    spdy_page::replica::Replica {
        start: 0,
        exchanges: vec![document],
        failures: vec![
            failure("http://dead.test/x.js?0.5", "net::ERR_NAME_NOT_RESOLVED"),
            failure(
                "http://www.portal.test/refused.png",
                "net::ERR_EMPTY_RESPONSE",
            ),
        ],
        ..spdy_page::builtin::portal()
    }
}

#[test]
fn a_failure_that_the_replica_records_does_not_disqualify_a_load() {
    if skips() || !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let folder = tempfile::tempdir().expect("create a folder");
    let file = folder.path().join("page.warc.gz");
    let mut page = page_with_failures();
    for is_recorded in [true, false] {
        std::fs::write(&file, spdy_page::archive::encode(&page, true)).expect("write the file");
        for cell in browse(&file.to_string_lossy(), "http,h2")["cells"]
            .as_array()
            .expect("a list")
        {
            let failed_requests = &cell["loads"][0]["failed_requests"];
            let failed_requests = failed_requests.as_array().expect("a list");
            let expected = if is_recorded { 0 } else { 2 };
            assert_eq!(failed_requests.len(), expected, "{cell}");
        }
        page.failures.clear();
    }
}
