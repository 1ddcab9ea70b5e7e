//! `spdy accelerate` with third-party test suites. `scripts/setup-peers` installs them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use crate::support::accelerator::program::Accelerator;
use crate::support::origins::echo::EchoOrigin;
use crate::support::peers::{is_installed, peers_enabled, require};
use crate::support::program::{ReadyOn, RunningProgram, output};

fn interop(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../interop")
        .join(folder)
}

/// The result of one test, as `interop/cache-tests/run.js` prints it.
#[derive(Debug, Deserialize)]
struct TestOutcome {
    id: String,
    kind: String,
    corrected: bool,
    ours: bool,
    passed: bool,
    reason: Option<String>,
}

#[derive(Deserialize)]
struct PortMessage {
    port: u16,
}

/// Maximum number of required tests of http-cache-tests 0.4.5 that may fail on purpose.
const MAX_EXCEPTIONS: usize = 5;
/// Minimum number of its 86 optimal tests that pass.
const MIN_OPTIMAL_PASSED: usize = 77;

/// Every required test passes, and every one of our own in `more.js`, except those in `exceptions.json`, which must fail.
///
/// Clients may revalidate here (`cache.obey_reload`), because the suite tests `no-cache` in requests.
#[test]
fn the_cache_passes_the_required_http_cache_tests() {
    if !peers_enabled() {
        return;
    }
    let folder = interop("cache-tests");
    let is_present = folder.join("node_modules/http-cache-tests").is_dir();
    require("http-cache-tests", is_present && is_installed("node"));
    let mut origin = Command::new("node");
    origin.arg(folder.join("origin.js"));
    let (_origin, port) = RunningProgram::start(origin, ReadyOn::Stdout, |line| {
        let listening = serde_json::from_str::<PortMessage>(line).ok()?;
        Some(listening.port)
    });
    let accelerator = Accelerator::start(&format!(
        r#"
        [listen]
        tls = []
        plain = ["127.0.0.1:0"]
        [[site]]
        names = ["127.0.0.1"]
        origin = "http://127.0.0.1:{port}"
        [cache]
        obey_reload = true
        [upstream]
        # The origin closes connections on purpose, which must cause no backoff.
        failures = 0
        "#
    ));
    let run = |options: &[&str]| -> Vec<TestOutcome> {
        let mut node = Command::new("node");
        node.arg(folder.join("run.js"))
            .arg(format!("http://{}", accelerator.plain()))
            .args(options);
        let output = output(&mut node);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .map(|line| serde_json::from_str(line).expect("a line of run.js"))
            .collect()
    };
    let mut outcomes = run(&[]);
    // The PUT that configures the origin is lost if another test has just ended its connection. The program does not retry it,
    // because it may have arrived. This is no failure of the cache.
    for outcome in &mut outcomes {
        let reason = outcome.reason.as_deref().unwrap_or_default();
        if reason.starts_with("Setup: PUT config") {
            let repeated = run(&[&outcome.id]).into_iter().next();
            *outcome = repeated.expect("the test's outcome");
        }
    }

    let exceptions = std::fs::read(folder.join("exceptions.json")).expect("read the file");
    let exceptions: BTreeMap<String, String> =
        serde_json::from_slice(&exceptions).expect("a reason for each test");
    assert!(exceptions.len() <= MAX_EXCEPTIONS, "{exceptions:#?}");

    let count_passed = |kind: &str| {
        let selected = outcomes
            .iter()
            .filter(|outcome| outcome.kind == kind && !outcome.ours);
        let passed_count = selected.clone().filter(|outcome| outcome.passed).count();
        (passed_count, selected.count())
    };
    let required = count_passed("required");
    let corrected = outcomes.iter().filter(|outcome| outcome.corrected).count();
    let optimal = count_passed("optimal");
    let failed = outcomes
        .iter()
        .filter(|outcome| outcome.kind == "required" && !outcome.passed);
    let failed: BTreeMap<&str, &str> = failed
        .map(|outcome| {
            let reason = outcome.reason.as_deref().unwrap_or_default();
            (outcome.id.as_str(), reason)
        })
        .collect();
    let (failing, excepted): (BTreeSet<&str>, BTreeSet<&str>) = (
        failed.keys().copied().collect(),
        exceptions.keys().map(String::as_str).collect(),
    );
    assert_eq!(failing, excepted, "failed tests: {failed:#?}");
    assert_eq!(
        (required.1, corrected),
        (157, 13),
        "a different number of tests"
    );
    assert!(outcomes.iter().any(|outcome| outcome.ours));
    assert!(
        optimal.0 >= MIN_OPTIMAL_PASSED,
        "{optimal:?} of the optimal tests"
    );
}

/// Starts an accelerator whose origin responds more slowly than h2spec sends its next frame. Several of its tests violate a rule in
/// the second frame, and fail if the response to the first arrives before.
fn start_for_h2spec(listen: &str) -> Accelerator {
    start_accelerator(
        &EchoOrigin::start("no-store", Duration::from_millis(100)),
        listen,
    )
}

fn start_accelerator(origin: &EchoOrigin, listen: &str) -> Accelerator {
    let port = origin.address.port();
    Accelerator::start(&format!(
        r#"
        [listen]
        {listen}
        [[site]]
        names = ["localhost", "127.0.0.1"]
        origin = "http://127.0.0.1:{port}"
        "#
    ))
}

/// Runs h2spec with its strict tests. Returns its report if a test failed.
fn h2spec(port: u16, options: &[&str]) -> Result<(), String> {
    let program = interop("h2spec/target/h2spec");
    require("h2spec", program.is_file());
    let mut command = Command::new(program);
    command
        .args(["--strict", "--host", "localhost", "--path", "/page"])
        .args(["--timeout", "10", "--port", &port.to_string()])
        .args(options);
    let output = output(&mut command);
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() && stdout.contains("146 tests, 146 passed, 0 skipped, 0 failed") {
        true => Ok(()),
        false => Err(stdout),
    }
}

#[test]
fn h2spec_finds_nothing_over_tls() {
    if !peers_enabled() {
        return;
    }
    let accelerator = start_for_h2spec(r#"tls = ["127.0.0.1:0"]"#);
    h2spec(accelerator.tls().port(), &["--tls", "--insecure"])
        .unwrap_or_else(|output| panic!("{output}"));
}

/// A listener for HTTP/2 only. If HTTP/1.1 is also enabled, an invalid HTTP/2 preface correctly gets a 400 and not a closed
/// connection.
#[test]
fn h2spec_finds_nothing_without_tls() {
    if !peers_enabled() {
        return;
    }
    let listen = r#"
        tls = []
        plain = ["127.0.0.1:0"]
        protocols = ["h2"]
        "#;
    let accelerator = start_for_h2spec(listen);
    h2spec(accelerator.plain().port(), &[]).unwrap_or_else(|output| panic!("{output}"));
}

/// With default settings, and the accelerator's own CA as a trusted root.
#[test]
fn sslyze_accepts_tls_by_mozillas_profile() {
    if !peers_enabled() {
        return;
    }
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/sslyze/bin/sslyze");
    require("sslyze", program.is_file());
    let origin = EchoOrigin::start("no-store", Duration::ZERO);
    let accelerator = start_accelerator(&origin, r#"tls = ["127.0.0.1:0"]"#);
    let mut sslyze = Command::new(program);
    sslyze
        .arg("--mozilla_config=intermediate")
        .arg("--certinfo_ca_file")
        .arg(accelerator.authority())
        .arg(format!("localhost:{}", accelerator.tls().port()));
    let output = output(&mut sslyze);
    let stdout = String::from_utf8_lossy(&output.stdout);
    let begin = stdout.find("COMPLIANCE AGAINST").unwrap_or_default();
    let is_compliant = output.status.success() && stdout.contains("OK - Compliant.");
    assert!(is_compliant, "{}", &stdout[begin..]);
}
