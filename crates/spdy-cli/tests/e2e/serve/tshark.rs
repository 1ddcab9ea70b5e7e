//! tshark, an independent implementation, decodes the frames between `spdy fetch` and `spdy serve`.

use std::process::Command;

use crate::support::clients::capture::Relay;
use crate::support::files::FILES;
use crate::support::peers::{is_installed, peers_enabled, require};
use crate::support::program::{ServeProcess, run_expecting, spdy};

#[test]
fn tshark_names_the_frames_of_a_fetch() {
    if !peers_enabled() {
        return;
    }
    require("tshark", is_installed("tshark"));
    let server = ServeProcess::start(&FILES.folder, &[]);
    let relay = Relay::to(server.plain);
    let port = relay.address.port();
    let urls = ["0", "128", "10k", "1m"].map(|name| format!("http://{}/{name}", relay.address));
    let folder = tempfile::tempdir().expect("create a folder");
    let mut fetch = spdy(&["fetch", "--protocol", "spdy/3.1", "--output-dir"]);
    run_expecting(0, fetch.arg(folder.path()).args(&urls));

    let pcap = folder.path().join("fetch.pcap");
    relay.write_pcap(&pcap);
    let mut tshark = Command::new("tshark");
    tshark
        .arg("-r")
        .arg(&pcap)
        .args(["-d", &format!("tcp.port=={port},spdy"), "-Y", "spdy", "-V"]);
    let output = run_expecting(0, &mut tshark);
    let text = String::from_utf8_lossy(&output.stdout);

    let count = |name: &str| text.matches(name).count();
    let frames = |kind: &str| {
        text.lines()
            .filter(|line| line.starts_with("SPDY: ") && line.contains(kind))
            .count()
    };
    assert_eq!(frames("SYN_STREAM"), urls.len(), "{text}");
    assert_eq!(frames("SYN_REPLY"), urls.len(), "{text}");
    assert!(frames("SETTINGS") >= 1, "no SETTINGS in {text}");
    assert!(
        frames("WINDOW_UPDATE") >= 1,
        "1 MB took no WINDOW_UPDATE in {text}"
    );
    assert!(frames("DATA") >= 4, "too little DATA in {text}");
    // It inflated our header blocks with its own zlib.
    for path in ["/0", "/128", "/10k", "/1m"] {
        assert!(
            text.contains(&format!(":path: {path}\n")),
            "no :path {path} in {text}"
        );
    }
    assert_eq!(count(":status: 200"), urls.len(), "{text}");
    assert!(!text.contains("Malformed"), "{text}");
}
