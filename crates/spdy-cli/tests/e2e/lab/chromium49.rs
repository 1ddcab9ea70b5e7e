//! `spdy lab browse --browser chromium-49`: a browser with SPDY/3.1, HTTP/2 and HTTP/1.1 behind a link.
//!
//! These tests fail with a message on a machine without namespaces; `SPDY_SKIP_NAMESPACES=1` skips them. The browser has only x86-64
//! code: on other machines no test starts it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use spdy_page::head;

use crate::support::peers::{peers_enabled, require};
use crate::support::program::{output, run_expecting, spdy};

/// The program, if these tests are not skipped.
fn chromium49() -> Option<PathBuf> {
    let has_namespaces = std::env::var_os("SPDY_SKIP_NAMESPACES").is_none();
    if !cfg!(target_arch = "x86_64") || !has_namespaces || !peers_enabled() {
        return None;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/chromium49");
    require("Chromium 49", folder.join("target/qt").is_dir());
    Some(folder.join("chromium-49"))
}

/// The requested targets in a HAR, each with its protocol.
fn har_versions(path: &Path) -> BTreeMap<String, String> {
    let har: Value = serde_json::from_slice(&fs::read(path).expect("read the file"))
        .expect("a HAR is valid JSON");
    let entries = har["log"]["entries"].as_array().expect("a list");
    let versions = entries.iter().map(|entry| {
        let url = entry["request"]["url"].as_str().expect("a URL");
        let url = url::Url::parse(url).expect("a URL");
        let version = entry["response"]["httpVersion"].as_str().expect("a text");
        (head::target(&url), version.to_owned())
    });
    versions.collect()
}

/// Whether the link was on time is not tested here.
#[test]
fn every_request_of_a_page_uses_the_requested_protocol() {
    let Some(program) = chromium49() else {
        return;
    };
    let folder = tempfile::tempdir().expect("create a folder");
    let mut browse = spdy(&["lab", "browse", "portal", "--network", "lte", "--runs", "1"]);
    browse.args([
        "--repeats",
        "0",
        "--protocols",
        "https,spdy,h2",
        "--json",
        "-q",
    ]);
    browse.arg("--browser").arg(program);
    browse.arg("--keep-runs").arg(folder.path());
    let output = output(&mut browse);
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let page = spdy_page::builtin::portal();
    let targets = page.exchanges.iter().map(|it| head::target(&it.url));
    let targets: BTreeSet<_> = targets.collect();
    let expected = [
        ("https", "HTTP/1.1"),
        ("spdy", "SPDY/3.1"),
        ("h2", "HTTP/2"),
    ];
    for (number, (protocol, version)) in expected.into_iter().enumerate() {
        let cell = &report["cells"][number];
        assert_eq!(cell["protocol"], protocol);
        let visit = &cell["loads"][0];
        assert_eq!(visit["failed_requests"], serde_json::json!([]), "{visit}");
        assert!(visit["load_ms"].as_f64() > Some(0.0), "{visit}");
        assert!(cell["virtual_failure"].is_null(), "{cell}");

        let file = |ending| {
            folder
                .path()
                .join(format!("portal-{protocol}-lte-1.{ending}"))
        };
        let mut versions = har_versions(&file("har"));
        // The browser requests the icon of the tab by itself.
        versions.remove("/favicon.ico");
        let requested: BTreeSet<_> = versions.keys().cloned().collect();
        assert_eq!(requested, targets, "{protocol}");
        let used: BTreeSet<_> = versions.values().map(String::as_str).collect();
        assert_eq!(used, [version].into());
        assert!(file("png").is_file(), "{protocol}");
    }
    // The capture has the secrets, and the frames of a browser.
    let capture = folder.path().join("portal-spdy-lte-1.pcapng");
    let inspected = run_expecting(0, spdy(&["inspect"]).arg(&capture));
    let frames = String::from_utf8_lossy(&inspected.stdout);
    assert!(frames.contains("SYN_STREAM"), "{frames}");
}

#[test]
fn spdy_with_a_browser_of_today_is_refused_with_the_browser_that_has_it() {
    let refused = run_expecting(
        2,
        &mut spdy(&["lab", "browse", "portal", "--protocols", "h2,spdy"]),
    );
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(stderr.contains("--browser chromium-49"), "{stderr}");
}
