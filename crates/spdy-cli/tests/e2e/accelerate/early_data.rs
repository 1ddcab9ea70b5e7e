//! `spdy accelerate` with a client that sends requests in early data (0-RTT): aioquic, which `scripts/setup-peers` installs.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::accelerator::program::Accelerator;
use crate::support::origins::echo::EchoOrigin;
use crate::support::peers::{peers_enabled, require};
use crate::support::program::output;

/// The client sends nothing more until it has the first response, so the handshake is not complete before.
#[test]
fn a_cached_response_needs_one_round_trip_and_other_requests_wait() {
    if !peers_enabled() {
        return;
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = workspace.join("target/aioquic/bin/python");
    require("aioquic", python.is_file());
    let origin = EchoOrigin::start("max-age=600", Duration::ZERO);
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
        .args(["GET:/cached", "GET:/cached", "GET:/missing", "POST:/form"]);
    let output = output(&mut client);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let expected = json!({
        "accepted": true,
        "before": { "GET:/cached": [200, "GET /cached of localhost, 0 bytes"] },
        "after": {
            "GET:/missing": [200, "GET /missing of localhost, 0 bytes"],
            "POST:/form": [200, "POST /form of localhost, 7 bytes"],
        },
    });
    assert_eq!(report, expected);
    let requests = origin.requests();
    let mut targets: Vec<_> = requests.iter().map(|request| request.target()).collect();
    targets.sort();
    assert_eq!(targets, ["/cached", "/form", "/missing"]);
    for request in requests {
        assert!(request.values("early-data").is_empty());
    }
}
