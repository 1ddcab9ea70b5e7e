//! Virtual time against the kernel's own, through namespaces and TUN devices.
//!
//! Whoever measures time needs a core when it is due, so these tests stand in a program of their own, which Cargo runs
//! when no other does, and take turns. Ours on both ends are not optimised here: one link at a time is what two cores
//! carry. What a run needs in order to count is the program's own judgement, and each load or download may count in
//! any of a few attempts; one that counts and is too far off in all of them fails.
//!
//! A machine that gives no namespaces fails these tests, and says so; `SPDY_SKIP_NAMESPACES=1` leaves them out.

#[path = "e2e/support/unprivileged.rs"]
mod unprivileged;

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use spdy_testkit::patience::output_within;
use unprivileged::unprivileged;

/// What a calibration may take on a machine that is late all the time: each run is repeated up to ten times.
const LONGEST: Duration = Duration::from_secs(600);
/// Of the short ones, of links alone.
const SHORT_ATTEMPTS: usize = 10;
/// Calibrations of which one must have met a free moment.
const ATTEMPTS: usize = 4;

/// One test's turn to measure; `None` if they are left out.
fn turn() -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    let left_out = std::env::var_os("SPDY_SKIP_NAMESPACES").is_some();
    (!left_out).then(|| TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// What `spdy lab calibrate` found, one link at a time.
fn calibrated(arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spdy"));
    command.args(["lab", "calibrate", "--lanes", "1", "--json", "-q"]);
    said_by(command.args(arguments).env_remove("SPDY_LOG"))
}

/// The JSON that `command` prints.
fn said_by(command: &mut Command) -> Value {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("spdy starts");
    let output = output_within(LONGEST, child);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn virtual_time_is_near_the_kernels_own() {
    let Some(_turn) = turn() else { return };
    let mut said = Vec::new();
    for _ in 0..ATTEMPTS {
        let found = calibrated(&["--cells", "small", "--runs", "1", "--lossy-runs", "4"]);
        let summary = &found["summary"];
        // Ratios within one run do not care how busy the machine is.
        let pairs = summary["pairs"].as_array().expect("pairs").len();
        assert_eq!(summary["pairs_that_agree"], pairs, "{found}");
        let errors = &summary["loss_free"];
        let (cells, mean) = (errors["cells"].as_u64(), errors["mean"].as_f64());
        let lossy = summary["lossy"]["mean"].as_f64();
        // Eight were asked for, and two with loss: one or two may have met nothing but late moments.
        let loss_free = cells >= Some(6) && mean.is_some_and(|mean| mean <= 0.01);
        if loss_free && lossy.is_some_and(|mean| mean <= 0.08) {
            return;
        }
        said.push(summary.clone());
    }
    panic!("too far from Linux {ATTEMPTS} times: {said:#?}");
}

/// Whole page loads by the client and the server that ship.
#[test]
fn a_page_load_takes_as_long_behind_a_real_link_as_in_virtual_time() {
    let Some(_turn) = turn() else { return };
    let loads = SLOW_LINKS.map(|network| PROTOCOLS.map(|protocol| (network, protocol)));
    let mut left = loads.as_flattened().to_vec();
    let mut far = Vec::new();
    let mut uncounted = Vec::new();
    for _ in 0..ATTEMPTS {
        far.clear();
        uncounted.clear();
        left.retain(|(network, protocol)| match distance(network, protocol) {
            Ok(distance) if distance.abs() <= 0.03 => false,
            Ok(distance) => {
                far.push(format!("{protocol} over {network}: {distance:+.4}"));
                true
            }
            Err(why) => {
                uncounted.push(format!("{protocol} over {network}: {why}"));
                true
            }
        });
        if left.is_empty() {
            return;
        }
    }
    assert!(far.is_empty(), "not within 3 % of Linux: {far:#?}");
    // As above: two of eight may have met nothing but late moments.
    assert!(uncounted.len() <= 2, "no run counts: {uncounted:#?}");
}

/// What a receiver gets, and how long an echo takes: the program repeats what its own limits do not let count, and so do we.
#[test]
fn a_link_of_an_unprivileged_user_has_the_rate_and_the_round_trip_that_it_was_given() {
    let Some(_turn) = turn() else { return };
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (mut well, mut said) = (BTreeSet::new(), Vec::new());
    for _ in 0..SHORT_ATTEMPTS {
        let arguments = ["lab", "calibrate", "--link=short", "--json", "-q"];
        let found = said_by(&mut unprivileged(folder.path(), &arguments));
        let number = |it: &Value, name: &str| it[name].as_f64().expect("a number");
        let all = |list: &str| found[list].as_array().expect("a list").clone();
        for rate in all("rates") {
            let (asked, error) = (number(&rate, "asked_bps"), number(&rate, "error"));
            if rate["faults"] == serde_json::json!([]) && error.abs() <= 0.005 {
                well.insert(format!("{asked} bps"));
            }
        }
        for trip in all("round_trips") {
            let (asked, error) = (number(&trip, "asked_ms"), number(&trip, "error_ms"));
            assert!(error > -0.001, "faster than its link: {trip}");
            // Threads at its ends may wait for a core while the link is on time.
            if trip["faults"] == serde_json::json!([]) && error <= 2.0 {
                well.insert(format!("{asked} ms"));
            }
        }
        if well.len() == 4 {
            return;
        }
        said.push(found);
    }
    panic!("of {SHORT_ATTEMPTS} attempts only {well:?} were well: {said:#?}");
}

/// Slow enough that ours, which are not optimised here, keep up with them: what a run may wait for a core is a hundredth
/// of its time.
const SLOW_LINKS: [&str; 2] = [
    "down=500kbit,up=250kbit,rtt=200ms",
    "down=400kbit,up=200kbit,rtt=400ms",
];
const PROTOCOLS: [&str; 4] = ["http", "spdy", "h2", "h3"];

/// Virtual over real of a load, less 1; or why no run of it counts.
fn distance(network: &str, protocol: &str) -> Result<f64, String> {
    let mut asked = vec!["--pages", "portal", "--runs", "1", "--network", network];
    asked.extend(["--protocols", protocol]);
    let found = calibrated(&asked);
    let load = &found["loads"][0];
    let of = |clock: &str| load[clock][0].as_f64();
    let virtual_ms = of("virtual_ms").unwrap_or_else(|| panic!("no load: {found}"));
    let real_ms = of("real_ms").ok_or_else(|| load["short_of_runs"].to_string())?;
    Ok(virtual_ms / real_ms - 1.0)
}
