//! `spdy doctor`: its findings, and how certain they are.

use serde_json::Value;

use crate::support::program::{stderr_of, stdout_of};

#[test]
fn the_doctor_warns_of_randomness_if_there_are_few_runs() {
    let warning = "a saving may be random too";
    let examine = |network: &str, runs: &str| {
        let doctor = ["doctor", "lulic-bing", "--network", network, "--runs", runs];
        stderr_of(0, &doctor)
    };
    let lossy = "down=5mbit,up=1mbit,rtt=20ms,loss=0.5%";
    assert!(examine(lossy, "1").contains(warning), "one run");
    assert!(!examine(lossy, "6").contains(warning), "six runs");
    assert!(!examine("cable", "1").contains(warning), "no randomness");
    let default = ["doctor", "lulic-bing", "--network", lossy];
    assert!(!stderr_of(0, &default).contains(warning), "default runs");
}

/// With a single seed, 1 % loss is randomly faster than no loss on some pages.
#[test]
fn the_doctor_reports_no_difference_within_chance() {
    let loss = |options: &[&str]| {
        let arguments = ["doctor", "flags", "--network", "cable", "--json"];
        let json = stdout_of(0, &[&arguments[..], options].concat());
        let examination: Value = serde_json::from_str(&json).expect("JSON");
        let findings = examination["findings"].as_array().expect("a list");
        let loss = findings.iter().find(|finding| finding["change"] == "loss");
        loss.expect("loss is tried").clone()
    };
    let several = loss(&[]);
    assert_eq!(several["runs"], 9, "{several}");
    let saved_load = &several["saved_load"];
    let ms = |name: &str| saved_load[name].as_f64().expect("a number");
    assert!(ms("low_ms") < ms("high_ms"), "{several}");
    let includes_zero = ms("low_ms") <= 0.0 && ms("high_ms") >= 0.0;
    assert_eq!(saved_load["is_certain"], !includes_zero, "{several}");
    let single_run = loss(&["--runs", "1"]);
    assert_eq!(
        (&single_run["runs"], &single_run["saved_load"]["is_certain"]),
        (&1.into(), &false.into())
    );
    let text = stdout_of(0, &["doctor", "flags", "--network", "cable", "--runs", "1"]);
    let row = text
        .lines()
        .find(|line| line.ends_with("1 % of packets lost"));
    assert!(row.is_some_and(|row| row.contains("–")), "{text}");
}

#[test]
fn the_doctor_is_deterministic() {
    let stdout = stdout_of(0, &["doctor", "portal", "--network", "cable"]);
    let first = stdout.lines().next().expect("a line");
    assert!(
        first.starts_with("portal over cable by spdy: load "),
        "{first}"
    );
    assert!(stdout.contains("fold all 6 other hosts ("), "{stdout}");
    assert!(stdout.contains("twice the round-trip time"), "{stdout}");
    let arguments = ["doctor", "portal", "--network", "cable", "--json"];
    let json = stdout_of(0, &arguments);
    assert_eq!(json, stdout_of(0, &arguments));
    let examination: Value = serde_json::from_str(&json).expect("JSON");
    let findings = examination["findings"].as_array().expect("findings");
    let fold = &findings[0];
    assert_eq!(fold["remedy"], "fold");
    let ms = |value: &Value| value.as_f64().expect("milliseconds");
    let saved_ms = ms(&examination["now"]["load_ms"]) - ms(&fold["load_ms"]);
    assert!(
        (saved_ms - ms(&fold["saved_load"]["median_ms"])).abs() < 1e-6 && saved_ms > 0.0,
        "{fold}"
    );
    assert_eq!(
        (&fold["runs"], &fold["saved_load"]["is_certain"]),
        (&1.into(), &true.into())
    );
}
