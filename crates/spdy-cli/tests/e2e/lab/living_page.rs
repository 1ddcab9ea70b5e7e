//! `spdy lab browse` of a page that requests other URLs at each load, and whose server took its time.
//!
//! These tests fail with a message on a machine without namespaces; `SPDY_SKIP_NAMESPACES=1` skips them.

use std::time::Duration;

use serde_json::{Value, json};
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};
use spdy_page::{archive, builtin};

use crate::support::origins::pictures::png;
use crate::support::peers::{is_installed, peers_enabled, require};
use crate::support::program::{output, spdy};

/// A page whose script requests an image with a random number. The document's server computed for 700 ms.
fn page() -> Replica {
    let resource = |path: &str, kind, media: &str, body: &[u8], wait| {
        let url = format!("http://www.living.test{path}")
            .parse()
            .expect("a URL");
        let mut exchange = Exchange::synthetic(url, kind, media, body.to_vec());
        exchange.wait = Some(Duration::from_millis(wait));
        exchange
    };
    let html = "<!DOCTYPE html><title>Living</title><body><script>\
                new Image().src = '/pixel.png?size=1&r=' + Math.random();\
                new WebSocket('wss://' + location.host + '/socket');</script>";
    let mut document = resource("/", Kind::Document, "text/html", html.as_bytes(), 730);
    document.initiator = Initiator::Navigation;
    let picture = png(8, 8, [200, 30, 30]);
    let image = |path| resource(path, Kind::Image, "image/png", &picture, 30);
    Replica {
        name: "living".to_owned(),
        exchanges: vec![
            document,
            image("/pixel.png?size=2&r=0.5"),
            image("/pixel.png?size=1&r=0.25"),
        ],
        ..builtin::flags()
    }
}

#[test]
fn requests_with_random_queries_get_their_recording_and_servers_think() {
    if std::env::var_os("SPDY_SKIP_NAMESPACES").is_some() || !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let folder = tempfile::tempdir().expect("create a folder");
    let file = folder.path().join("living.replica");
    std::fs::write(&file, archive::encode(&page(), false)).expect("write the replica");
    let mut browse = spdy(&["lab", "browse"]);
    browse
        .arg(&file)
        .args(["--network", "lte", "--runs", "2", "--repeats", "0"]);
    browse.args(["--protocols", "h2", "--json"]);
    // The exit code may be 0 or 1: it depends on whether the link was on time, which is not tested here.
    let output = output(&mut browse);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"));
    let visits = report["cells"][0]["loads"].as_array().expect("an array");
    assert_eq!(visits.len(), 2, "{report}");
    for visit in visits {
        assert_eq!(visit["failed_requests"], json!([]));
        assert_eq!(visit["omitted"], json!({"WebSockets": 1}));
        let similar = visit["similar_requests"].as_array().expect("an array");
        let [request] = &similar[..] else {
            panic!("{visit}");
        };
        let request = request.as_str().expect("text");
        assert!(
            request.starts_with("GET https://www.living.test/pixel.png?size=1&r=0."),
            "{request}"
        );
        assert!(
            request.ends_with("(recorded: /pixel.png?size=1&r=0.25)"),
            "{request}"
        );
        assert!(visit["load_ms"].as_f64() > Some(700.0), "{visit}");
    }
    assert_eq!(visits[0]["fingerprint"], visits[1]["fingerprint"]);
    let virtual_ms = report["cells"][0]["virtual_ms"]
        .as_array()
        .expect("an array");
    for load_ms in virtual_ms {
        assert!(load_ms.as_f64() > Some(700.0), "{report}");
    }
}
