//! Compares virtual time with real time of the kernel, through namespaces and TUN devices.
//!
//! A time measurement needs a free core at the right moment, so these tests are a separate program, which Cargo runs when no other
//! test runs, and they run one after the other. The programs on both ends are not optimised here: two cores can carry one link at a
//! time. `on_time/tally.rs` states how many attempts are valid, and how many of those must be right.
//!
//! These tests fail with a message on a machine without namespaces; `SPDY_SKIP_NAMESPACES=1` skips them.

#[path = "on_time/experiment.rs"]
mod experiment;
#[path = "on_time/har.rs"]
mod har;
#[path = "e2e/support/json_output.rs"]
mod json_output;
#[path = "on_time/lab.rs"]
mod lab;
#[path = "on_time/pause.rs"]
mod pause;
#[path = "on_time/servers.rs"]
mod servers;
#[path = "on_time/tally.rs"]
mod tally;
#[path = "e2e/support/unprivileged.rs"]
mod unprivileged;

use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use json_output::check_json_output;
use serde_json::Value;
use spdy_testkit::wait::output_within;
use tally::{Attempt, Tally};
use unprivileged::unprivileged;

/// Maximum time of one calibration on a machine that is always late: each run is repeated up to ten times.
const MAX_CALIBRATION_TIME: Duration = Duration::from_secs(600);

/// Waits until no other test measures; `None` if these tests are skipped.
fn turn() -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    let is_skipped = std::env::var_os("SPDY_SKIP_NAMESPACES").is_some();
    (!is_skipped).then(|| TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The result of `spdy lab calibrate`, one link at a time.
fn run_calibration(arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spdy"));
    command.args(["lab", "calibrate", "--lanes", "1", "--json", "-q"]);
    json_of(command.args(arguments).env_remove("SPDY_LOG"))
}

/// The JSON that `command` prints.
fn json_of(command: &mut Command) -> Value {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start `spdy`");
    let output = output_within(MAX_CALIBRATION_TIME, child);
    check_json_output(command, &output);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// An attempt with the relative or absolute error `error`, whose limit is `bound`.
fn attempt_within(error: f64, bound: f64) -> Attempt {
    match error.abs() <= bound {
        true => Attempt::Right,
        false => Attempt::Wrong(format!("{error:+.4}, at most {bound}")),
    }
}

/// An attempt without a valid run, for `reason`. Only lateness and starvation are caused by the machine.
fn invalid_attempt(reason: &Value) -> Attempt {
    let reason = reason.to_string();
    match reason.contains(" late") || reason.contains("for a core") {
        true => Attempt::Invalid(reason),
        false => Attempt::Wrong(reason),
    }
}

/// `right_or_wrong`, unless there are `faults`. A wrong rate or a packet that a device dropped is the program's fault.
fn unless_late(faults: &Value, right_or_wrong: Attempt) -> Attempt {
    let faults = faults.as_array().expect("a list");
    let is_caused_by_machine = |fault: &&Value| {
        let reason = fault["reason"].as_str().unwrap_or_default();
        reason.starts_with("late_") || reason == "starved"
    };
    match (faults.iter().find(is_caused_by_machine), faults.first()) {
        (Some(lateness), _) => Attempt::Invalid(lateness.to_string()),
        (None, Some(fault)) => Attempt::Wrong(fault.to_string()),
        (None, None) => right_or_wrong,
    }
}

const LOSS_FREE: &str = "downloads without loss";
const LOSSY: &str = "downloads with loss";
/// Minimum number of cells of the small calibration without loss: one or two of eight may have too few valid runs.
const MIN_CELLS: u64 = 6;

#[test]
fn virtual_time_is_close_to_kernel_time() {
    let Some(_turn) = turn() else { return };
    let mut tally = Tally::new([LOSS_FREE, LOSSY]);
    while tally.has_open_quantities() {
        let report = run_calibration(&["--cells", "small", "--runs", "1", "--lossy-runs", "4"]);
        let summary = &report["summary"];
        // Ratios within one run do not depend on how busy the machine is.
        let pairs = summary["pairs"].as_array().expect("pairs").len();
        assert_eq!(summary["pairs_that_agree"], pairs, "{report}");
        let cells = report["cells"].as_array().expect("a list").iter();
        let mut short = cells
            .filter_map(|cell| Some(&cell["incomplete_reason"]).filter(|cell| cell.is_string()));
        let reason = short.next().cloned().unwrap_or_default();
        let errors = &summary["loss_free"];
        let has_enough_cells = errors["cells"].as_u64() >= Some(MIN_CELLS);
        tally.record(
            LOSS_FREE,
            match errors["mean"].as_f64().filter(|_| has_enough_cells) {
                Some(mean) => attempt_within(mean, 0.01),
                None => invalid_attempt(&reason),
            },
        );
        tally.record(
            LOSSY,
            match summary["lossy"]["mean"].as_f64() {
                Some(mean) => attempt_within(mean, 0.08),
                None => invalid_attempt(&reason),
            },
        );
    }
    tally.judge();
}

/// Complete page loads with the shipped client and server.
#[test]
fn a_page_load_takes_as_long_behind_a_real_link_as_in_virtual_time() {
    let Some(_turn) = turn() else { return };
    let folder = tempfile::tempdir().expect("create a folder");
    let pause = pause::write_page(folder.path());
    let loads = LOADS.map(|load| PROTOCOLS.map(|protocol| (load, protocol)));
    let mut loads = loads.as_flattened().to_vec();
    loads.push(((&pause, "down=2mbit,up=1mbit,rtt=400ms"), "https"));
    let name = |((page, network), protocol): (PageOverLink<'_>, &str)| {
        format!("{page} by {protocol} over {network}")
    };
    let mut tally = Tally::new(loads.iter().map(|load| name(*load)));
    while tally.has_open_quantities() {
        for &(page_over_link, protocol) in &loads {
            let name = name((page_over_link, protocol));
            if tally.is_open(&name) {
                tally.record(&name, load(page_over_link, protocol, 0.03));
            }
        }
    }
    tally.judge();
}

/// A link whose capacity changes all the time.
///
/// A packet that misses one of its deliveries by microseconds waits 15 to 60 ms for the next. The uplink is fast enough that no
/// small packet arrives just before a delivery: at 250 kbit/s, a round trip of 200.5 instead of 200 ms makes the virtual load
/// 2.6 % shorter, and so does a client that starts 1 ms late. At 1 Mbit/s, 199 to 204 ms give the same load.
#[test]
fn a_page_load_over_a_trace_takes_as_long_in_both_clocks() {
    let Some(_turn) = turn() else { return };
    let folder = tempfile::tempdir().expect("create a folder");
    let file = folder.path().join("uneven.down");
    std::fs::write(&file, uneven_trace()).expect("write the trace");
    let network = format!("down=trace:{},up=1mbit,rtt=200ms", file.display());
    let protocols = ["http", "spdy"];
    let mut tally = Tally::new(protocols);
    while tally.has_open_quantities() {
        for protocol in protocols {
            if tally.is_open(protocol) {
                tally.record(protocol, load(("portal", &network), protocol, 0.02));
            }
        }
    }
    tally.judge();
}

/// 20 s of 200 to 800 kbit/s, which change every 250 ms.
fn uneven_trace() -> String {
    let mut trace = String::new();
    let mut at_ms = 0;
    for gap_ms in [15, 60, 30, 20].into_iter().cycle().take(80) {
        let end_ms = at_ms / 250 * 250 + 250;
        while at_ms + gap_ms <= end_ms {
            at_ms += gap_ms;
            trace += &format!("{at_ms}\n");
        }
        at_ms = end_ms;
    }
    trace + "20000\n"
}

/// The received rate, and the time of an echo.
#[test]
fn an_unprivileged_link_has_its_configured_rate_and_round_trip() {
    let Some(_turn) = turn() else { return };
    let folder = tempfile::tempdir().expect("create a folder");
    let mut tally = Tally::new(["1000000 bps", "10000000 bps", "10 ms", "100 ms"]);
    while tally.has_open_quantities() {
        let arguments = ["lab", "calibrate", "--link=short", "--json", "-q"];
        let report = json_of(&mut unprivileged(folder.path(), &arguments));
        let number = |value: &Value, name: &str| value[name].as_f64().expect("a number");
        let all = |list: &str| report[list].as_array().expect("a list").clone();
        for rate in all("rates") {
            let (configured, error) = (number(&rate, "configured_bps"), number(&rate, "error"));
            let attempt = unless_late(&rate["faults"], attempt_within(error, 0.005));
            tally.record(&format!("{configured} bps"), attempt);
        }
        for trip in all("round_trips") {
            let (configured, error) = (number(&trip, "configured_ms"), number(&trip, "error_ms"));
            assert!(error > -0.001, "faster than its link: {trip}");
            let attempt = unless_late(&trip["faults"], attempt_within(error, 2.0));
            tally.record(&format!("{configured} ms"), attempt);
        }
    }
    tally.judge();
}

/// A page and a network.
type PageOverLink<'a> = (&'a str, &'a str);

/// Links slow enough for programs without optimisation: a run may wait for a core for 1 % of its time. The small page has the
/// slower link, so that its loads take 3 s and those of `portal` 7 s.
const LOADS: [PageOverLink<'_>; 2] = [
    ("portal", "down=500kbit,up=250kbit,rtt=200ms"),
    ("lulic-bing", "down=400kbit,up=200kbit,rtt=400ms"),
];
const PROTOCOLS: [&str; 4] = ["http", "spdy", "h2", "h3"];

/// A load of a page: the ratio of virtual to real time may differ from 1 by `bound`.
fn load((page, network): PageOverLink<'_>, protocol: &str, bound: f64) -> Attempt {
    let mut arguments = vec!["--pages", page, "--runs", "1", "--network", network];
    arguments.extend(["--protocols", protocol]);
    let report = run_calibration(&arguments);
    let load = &report["loads"][0];
    let of = |clock: &str| load[clock][0].as_f64();
    let virtual_ms = of("virtual_ms").unwrap_or_else(|| panic!("no load: {report}"));
    match of("real_ms") {
        Some(real_ms) => attempt_within(virtual_ms / real_ms - 1.0, bound),
        None => invalid_attempt(&load["incomplete_reason"]),
    }
}
