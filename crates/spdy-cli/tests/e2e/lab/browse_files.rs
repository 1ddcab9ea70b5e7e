//! The files that `spdy lab browse --keep-runs` stores of a browser's loads, checked with the programs that read such files.
//!
//! These tests fail with a message on a machine without namespaces; `SPDY_SKIP_NAMESPACES=1` skips them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use flate2::read::ZlibDecoder;
use serde_json::Value;
use spdy_page::head;
use spdy_page::open::{ImportOptions, read};

use crate::support::peers::{is_installed, peers_enabled, require};
use crate::support::program::{output, run_expecting, spdy};

/// Whether these tests are skipped.
fn skips() -> bool {
    std::env::var_os("SPDY_SKIP_NAMESPACES").is_some() || !peers_enabled()
}

/// Loads the portal once by `protocol`. The files of the load are stored in `folder`. Returns its cell.
fn browse(protocol: &str, folder: &Path) -> Value {
    require("Chromium", is_installed("chromium"));
    let mut browse = spdy(&["lab", "browse", "portal", "--network", "lte", "--runs", "1"]);
    browse.args(["--repeats", "0", "--protocols", protocol, "--json", "-q"]);
    // The exit code may be 0 or 1: it depends on whether the link was on time, which is not tested here.
    let output = output(browse.arg("--keep-runs").arg(folder));
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    report["cells"][0].clone()
}

/// The values of `field` that tshark finds in the packets of `capture` that match `filter`.
fn tshark_values(capture: &Path, filter: &str, field: &str) -> Vec<String> {
    require("tshark", is_installed("tshark"));
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(capture);
    tshark.args(["-Y", filter, "-T", "fields", "-e", field]);
    let stdout = run_expecting(0, &mut tshark).stdout;
    let stdout = String::from_utf8(stdout).expect("text is UTF-8");
    stdout
        .split(['\n', ','])
        .filter(|value| !value.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The request targets of the page.
fn paths() -> BTreeSet<String> {
    let page = spdy_page::builtin::portal();
    page.exchanges
        .iter()
        .map(|exchange| head::target(&exchange.url))
        .collect()
}

#[test]
fn an_http_2_load_is_stored_as_har_capture_with_keys_and_screenshot() {
    if skips() {
        return;
    }
    let folder = tempfile::tempdir().expect("create a folder");
    let cell = browse("h2", folder.path());
    let names: BTreeSet<_> = fs::read_dir(folder.path())
        .expect("read the folder")
        .map(|entry| entry.expect("read the file").file_name())
        .collect();
    let name = |ending: &str| format!("portal-h2-lte-1.{ending}");
    assert_eq!(
        names,
        ["filmstrip.svg", "har", "pcapng", "png", "replica.gz"]
            .map(|extension| name(extension).into())
            .into()
    );

    let har = fs::read(folder.path().join(name("har"))).expect("read the file");
    check_har(&har, "HTTP/2");

    // The recording repeats the load in virtual time.
    let mut race = spdy(&["race", "--network", "lte", "--protocols", "h2", "--json"]);
    for option in ["scheduler=chromium", "ml_kem=yes", "ip_pooling=yes"] {
        race.args(["--set", option]);
    }
    let raced = run_expecting(0, race.arg(folder.path().join(name("replica.gz"))));
    let raced: Value = serde_json::from_slice(&raced.stdout).expect("one object");
    assert!(raced["load_ms"].is_f64(), "{raced}");
    // A load over a late link does not count, and is not simulated.
    let was_late = cell["loads"][0]["faults"] != serde_json::json!([]);
    let simulated = &cell["virtual_ms"][0];
    assert!(
        was_late || raced["load_ms"] == *simulated,
        "{raced}: {cell}"
    );

    let capture = folder.path().join(name("pcapng"));
    let captured_paths = tshark_values(&capture, "http2.headers.path", "http2.headers.path");
    let missing: Vec<_> = paths()
        .into_iter()
        .filter(|path| !captured_paths.contains(path))
        .collect();
    assert!(
        missing.is_empty(),
        "not decrypted: {missing:?} of {captured_paths:?}"
    );
    // The capture has every packet that the link counted, once.
    let count_packets = |filter: &str| tshark_values(&capture, filter, "frame.number").len() as u64;
    let link_count = |way: &str, what: &str| {
        cell["loads"][0]["link"][way][what]
            .as_u64()
            .unwrap_or_default()
    };
    // The link's counters are read shortly before the capture ends.
    let (up, down) = (
        count_packets("ip.src == 198.19.0.1"),
        count_packets("ip.dst == 198.19.0.1"),
    );
    assert!(
        up >= link_count("up", "offered") && up > 100,
        "{up} up: {cell}"
    );
    assert!(
        down >= link_count("down", "packets") && down > 100,
        "{down} down: {cell}"
    );
    let lost = link_count("down", "queue_drops") + link_count("down", "lost");
    assert!(
        count_packets("frame.interface_name == \"taken\"") >= lost,
        "{cell}"
    );
    // Our own reader also decrypts the connections, and finds no SPDY in them.
    let inspected = run_expecting(1, spdy(&["inspect"]).arg(&capture));
    let stderr = String::from_utf8_lossy(&inspected.stderr);
    assert!(stderr.contains("no SPDY session found"), "{stderr}");

    let png = fs::read(folder.path().join(name("png"))).expect("read the file");
    let rows = different_rows(&png);
    assert!(
        rows > 50,
        "a picture of {rows} different rows shows no page"
    );

    let visit = &cell["loads"][0];
    let [first, index] = ["fcp_ms", "speed_index_ms"].map(|field| visit[field].as_f64());
    let (first, index) = first.zip(index).expect("both are measured");
    // The window is empty until the first paint; a screenshot is displayed up to some frames later.
    assert!(index > first - 100.0, "{visit}");
    let svg = fs::read_to_string(folder.path().join(name("filmstrip.svg"))).expect("read the file");
    assert!(svg.contains("data:image/jpeg;base64,"), "{svg}");
}

#[test]
fn an_http_3_load_uses_only_quic_and_its_capture_has_the_keys() {
    if skips() {
        return;
    }
    let folder = tempfile::tempdir().expect("create a folder");
    let cell = browse("h3", folder.path());
    let visit = &cell["loads"][0];
    assert_eq!(visit["failed_requests"], serde_json::json!([]));
    assert!(visit["connections"].as_u64() >= Some(7), "{visit}");
    assert!(cell["virtual_failure"].is_null(), "{cell}");

    let file = |ending: &str| folder.path().join(format!("portal-h3-lte-1.{ending}"));
    check_har(&fs::read(file("har")).expect("read the file"), "HTTP/3");

    let capture = file("pcapng");
    // HEADERS of every request, and of every response (RFC 9114 §7.2.2).
    let frames = tshark_values(&capture, "http3.frame_type", "http3.frame_type");
    let headers = frames.iter().filter(|kind| *kind == "1").count();
    assert!(headers >= 2 * paths().len(), "{headers} HEADERS");
    let tcp_packets = tshark_values(&capture, "tcp", "frame.number");
    assert_eq!(tcp_packets, [""; 0], "expected only QUIC");
}

/// Checks a HAR of the portal with our importer, and for the fields that HAR 1.2 requires in every log, page and entry.
fn check_har(har: &[u8], version: &str) {
    let log: Value = serde_json::from_slice(har).expect("a HAR is valid JSON");
    let log = &log["log"];
    let has = |of: &Value, names: &str| {
        for name in names.split(' ') {
            assert!(!of[name].is_null(), "no {name} in {of}");
        }
    };
    has(log, "version creator entries");
    has(&log["creator"], "name version");
    has(&log["pages"][0], "startedDateTime id title pageTimings");
    let entries = log["entries"].as_array().expect("a list");
    for entry in entries {
        has(
            entry,
            "pageref startedDateTime time request response cache timings serverIPAddress",
        );
        has(
            &entry["request"],
            "method url httpVersion cookies headers queryString headersSize bodySize",
        );
        let response = &entry["response"];
        has(
            response,
            "status statusText httpVersion cookies headers content redirectURL headersSize bodySize",
        );
        has(&response["content"], "size mimeType");
        has(&entry["timings"], "send wait receive");
        assert_eq!(
            response["httpVersion"], version,
            "{}",
            entry["request"]["url"]
        );
    }
    let import = read(har.to_vec().into(), "x.har", &ImportOptions::default());
    let replica = import.expect("the importer accepts it").replica;
    // 44 of the page, and the icon that Chromium requests by itself.
    assert_eq!(replica.exchanges.len(), 45);
    assert!(
        replica.load > replica.dom_content_loaded,
        "{:?}",
        replica.load
    );
    let imported_paths: BTreeSet<_> = replica
        .exchanges
        .iter()
        .map(|exchange| head::target(&exchange.url))
        .collect();
    assert!(paths().is_subset(&imported_paths), "{imported_paths:?}");
}

/// Number of different pixel rows of a PNG, with their filters applied. An image of a single colour has one or two.
fn different_rows(png: &[u8]) -> usize {
    let mut rest = png
        .strip_prefix(b"\x89PNG\r\n\x1a\n")
        .expect("a PNG signature");
    let (mut packed, mut height) = (Vec::new(), 0);
    while let Some((len, tail)) = rest.split_first_chunk::<4>() {
        let (kind, tail) = tail.split_at(4);
        let (data, tail) = tail.split_at(u32::from_be_bytes(*len) as usize);
        match kind {
            b"IHDR" => {
                let four = data[4..].first_chunk().expect("a height");
                height = u32::from_be_bytes(*four) as usize;
            }
            b"IDAT" => packed.extend(data),
            _ => {}
        }
        rest = &tail[4..];
    }
    let mut rows = Vec::new();
    std::io::copy(&mut ZlibDecoder::new(&packed[..]), &mut rows).expect("compressed pixels");
    let rows: BTreeSet<_> = rows.chunks(rows.len() / height).collect();
    rows.len()
}
