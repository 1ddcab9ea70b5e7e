//! `spdy accelerate` with a client that sends requests in early data (0-RTT): aioquic, which `scripts/setup-peers` installs.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::accelerator::program::Accelerator;
use crate::support::origins::echo::{EchoOrigin, ReceivedRequest};
use crate::support::peers::{peers_enabled, require};
use crate::support::program::output;

/// The client sends nothing more until it has the cached response, so the handshake is not complete before.
#[test]
fn a_cached_response_needs_one_round_trip_and_other_requests_wait() {
    if !peers_enabled() {
        return;
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = workspace.join("target/aioquic/bin/python");
    require("aioquic", python.is_file());
    let origin = EchoOrigin::start("max-age=600", Duration::ZERO);
    let host = format!(" of {},", origin.address);
    let accelerator = Accelerator::start(&format!(
        "[listen]\ntls = ['127.0.0.1:0']\nprotocols = ['h3', 'h2', 'http/1.1']\n\
         [[site]]\nnames = ['localhost']\norigin = 'http://{}'\n",
        origin.address
    ));
    let mut client = Command::new(python);
    client
        .arg(workspace.join("interop/aioquic/early_data.py"))
        .arg(accelerator.tls().port().to_string())
        .arg(accelerator.authority())
        .args(["GET:/cached", "GET:/missing", "POST:/form", "GET:/cached"]);
    let output = output(&mut client);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let response = |text: &str| json!([200, format!("{text} bytes").replace(',', &host)]);
    let expected = json!({
        "accepted": true,
        "before": { "GET:/cached": response("GET /cached, 0") },
        "after": {
            "GET:/missing": response("GET /missing, 0"),
            "POST:/form": response("POST /form, 7"),
        },
    });
    assert_eq!(report, expected);
    let requests = origin.requests();
    let mut targets: Vec<_> = requests.iter().map(ReceivedRequest::target).collect();
    targets.sort();
    assert_eq!(targets, ["/cached", "/form", "/missing"]);
    for request in requests {
        assert!(request.values("early-data").is_empty());
    }
}
