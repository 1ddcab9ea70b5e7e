//! `spdy lab browse --visit`: pages in one tab of Chromium, one after the other.
//!
//! The test with a browser fails with a message on a machine without namespaces; `SPDY_SKIP_NAMESPACES=1` skips it.

use std::fs;

use serde_json::{Value, json};
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};
use spdy_page::{archive, builtin, head};

use crate::support::origins::pictures::png;
use crate::support::peers::{is_installed, peers_enabled, require};
use crate::support::program::{output, run_expecting, spdy};

/// The host of the files that all pages share, of another site than the pages.
const SHARED: &str = "http://static.shared.test";

/// A page of 2013 on `own` with an image of its own, and an image and a script that all pages share, which were fresh for an hour.
fn page(own: &str, name: &str) -> Replica {
    let resource = |url: String, kind, media: &str, body: Vec<u8>, cache_control| {
        let mut exchange = Exchange::synthetic(url.parse().expect("a URL"), kind, media, body);
        for (field, value) in [
            ("Cache-Control", cache_control),
            ("Date", "Tue, 04 Jun 2013 10:00:00 GMT"),
        ] {
            exchange.response_head = head::with_field(&exchange.response_head, field, Some(value));
        }
        exchange
    };
    let html = format!(
        "<!DOCTYPE html><title>{name}</title><link rel=icon href=data:,>\
         <img src={SHARED}/shared.png><img src=/{name}.png><script src={SHARED}/shared.js></script>"
    );
    let url = format!("{own}/{name}");
    let mut document = resource(url, Kind::Document, "text/html", html.into(), "no-store");
    document.initiator = Initiator::Navigation;
    let image = |url: String, colour| {
        let body = png(8, 8, colour);
        resource(url, Kind::Image, "image/png", body, "max-age=3600")
    };
    let script_url = format!("{SHARED}/shared.js");
    let script = b"document.title += '!';".to_vec();
    let media = "text/javascript";
    Replica {
        name: name.to_owned(),
        start: 0,
        exchanges: vec![
            document,
            image(format!("{SHARED}/shared.png"), [200, 30, 30]),
            image(format!("{own}/{name}.png"), [30, 30, 200]),
            resource(script_url, Kind::Script, media, script, "max-age=3600"),
        ],
        recorded: "2013-06-04T10:00:00Z".parse().ok(),
        failures: Vec::new(),
        ..builtin::flags()
    }
}

/// Visits `pages` with Chromium over h2, and returns the cell of the report.
fn visit(pages: &[Replica]) -> Value {
    require("Chromium", is_installed("chromium"));
    let folder = tempfile::tempdir().expect("create a folder");
    let file = folder.path().join("visit.warc");
    let files = pages.iter().flat_map(|page| archive::encode(page, false));
    fs::write(&file, files.collect::<Vec<_>>()).expect("write the file");
    let mut browse = spdy(&["lab", "browse", "--visit=1s", "--network", "lte"]);
    browse.args(["--runs", "1", "--repeats", "0", "--protocols", "h2"]);
    // The exit code may be 0 or 1: it depends on whether the link was on time, which is not tested here.
    let output = output(browse.args(["--json", "-q"]).arg(&file));
    let stderr = String::from_utf8_lossy(&output.stderr);
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"));
    let names: Vec<_> = pages.iter().map(|page| &page.name).collect();
    assert_eq!(report["replicas"], json!(names));
    assert_eq!(report["pause_ms"], json!(1_000.0));
    let cell = &report["cells"][0];
    assert_eq!(cell["visits"][0]["failed_requests"], json!([]), "{cell}");
    assert_eq!(cell.get("virtual_failure"), None, "{cell}");
    cell.clone()
}

fn has_no_namespaces() -> bool {
    std::env::var_os("SPDY_SKIP_NAMESPACES").is_some() || !peers_enabled()
}

#[test]
fn the_second_page_requests_only_what_the_first_did_not_leave() {
    if has_no_namespaces() {
        return;
    }
    let pages = ["home", "article"].map(|name| page("http://www.visited.test", name));
    let cell = visit(&pages);
    let visit = &cell["visits"][0];
    let [first, second] = [0, 1].map(|number| &visit["pages"][number]);
    for page in [first, second] {
        assert!(page["load_ms"].as_f64() > Some(0.0), "{visit}");
        assert!(page["fcp_ms"].as_f64() > Some(0.0), "{visit}");
    }
    for number in [0, 1] {
        let alone = &cell["pages"][number]["alone"]["loads"][0];
        assert_eq!(alone["exchanges"], json!(4), "{alone}");
    }
    assert_eq!(first["requests"], json!(4), "{visit}");
    assert_eq!(second["requests"], json!(2), "{visit}");
    assert!(first["connections"].as_u64() >= Some(1), "{visit}");
    assert_eq!(second["connections"], json!(0), "{visit}");
    assert_eq!(first["pause_ms"], Value::Null);
    let pause_ms = second["pause_ms"].as_f64();
    assert!(pause_ms >= Some(1_000.0), "{visit}");
    for load in virtual_loads(&cell, 1) {
        assert_eq!(load["requests"], json!(2), "{load}");
        assert_eq!(load["connections"], json!(0), "{load}");
    }
}

/// Our loads of the page with this index. There are none if the link of a load alone was late.
fn virtual_loads(cell: &Value, page: usize) -> &[Value] {
    let loads = cell["pages"][page]["virtual_loads"].as_array();
    loads.expect("a list")
}

#[test]
fn a_page_of_another_site_requests_everything_again() {
    if has_no_namespaces() {
        return;
    }
    let sites = ["http://www.one.test", "http://www.two.test"];
    let pages = [page(sites[0], "home"), page(sites[1], "article")];
    let cell = visit(&pages);
    let visit = &cell["visits"][0];
    let second = &visit["pages"][1];
    assert_eq!(second["requests"], json!(4), "{visit}");
    assert!(second["connections"].as_u64() >= Some(2), "{visit}");
    for load in virtual_loads(&cell, 1) {
        assert_eq!(load["requests"], json!(4), "{load}");
        assert!(load["connections"].as_u64() >= Some(2), "{load}");
    }
}

#[test]
fn a_visit_that_cannot_be_is_a_usage_error() {
    for (options, expected) in [
        (
            &["portal", "flags"][..],
            "2 pages: expected one, or --visit to load them one after the other",
        ),
        (
            &["portal", "flags", "--visit=no"],
            "2 pages: expected one, or --visit",
        ),
        (
            &["portal", "flags", "--visit=1h"],
            "expected no, or a pause",
        ),
        (
            &["portal", "flags", "--visit", "--keep", "x.warc"],
            "cannot be used with",
        ),
        (
            &["portal", "flags", "--visit", "--keep-runs", "x"],
            "cannot be used with",
        ),
        (
            &[
                "portal",
                "--visit",
                "--browser",
                "x/chromium-49",
                "-p",
                "h2",
            ],
            "--visit: Chromium 49 loads single pages",
        ),
    ] {
        let words = [&["lab", "browse"], options].concat();
        let output = run_expecting(2, &mut spdy(&words));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(expected), "{stderr}");
    }
}
