//! Both roles against moby/spdystream, the SPDY library of Kubernetes, which has no flow control.

use crate::interop::peer_test::{PeerTest, peer_tests};
use crate::support::files::FILES;
use crate::support::peers::{Peer, peers_enabled};
use crate::support::program::ServeProcess;

peer_tests! {
    plain = PeerTest::plain(Peer::Moby, "spdy/3.1"),
    tls = PeerTest::tls(Peer::Moby, "spdy/3.1") => {
        every_peer
        its_client_accepts_our_pushes
        its_client_accepts_pushes_of_serve
        its_client_accepts_our_pushes_in_one_block
        its_client_accepts_our_pushes_with_the_version_twice
        its_pushes_are_accepted
        its_pushes_satisfy_requests
    };
}

/// It never sends WINDOW_UPDATE, so a peer with flow control stops at the initial 64 KiB.
#[test]
fn with_flow_control_moby_gets_one_window_only() {
    if !peers_enabled() {
        return;
    }
    let server = ServeProcess::start(&FILES.folder, &["--protocols", "spdy/3.1"]);
    let url = format!("{}/1m", server.origin(false));
    let result = Peer::Moby.fetch("spdy/3.1", &[url], &["--seconds".into(), "2".into()]);
    assert_eq!(result.errors, ["not done after 2 s"]);
}
