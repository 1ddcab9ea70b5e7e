//! Clients of every version over plain TCP, where our server must detect SPDY/3 or 3.1
//! (`spdy-session/src/session/detect_version.rs`), with the defaults of `spdy serve`.

use crate::interop::peer_test::{PeerTest, peer_tests};
use crate::support::peers::Peer;

peer_tests! {
    node_31 = PeerTest::with_detection(Peer::Node, "spdy/3.1"),
    node_3 = PeerTest::with_detection(Peer::Node, "spdy/3"),
    netty = PeerTest::with_detection(Peer::Netty, "spdy/3.1"),
    moby = PeerTest::with_detection(Peer::Moby, "spdy/3.1"),
    okhttp = PeerTest::with_detection(Peer::OkHttp, "spdy/3.1"),
    jetty_3 = PeerTest::with_detection(Peer::Jetty, "spdy/3"),
    undertow = PeerTest::with_detection(Peer::Undertow, "spdy/3.1") => {
        its_client_gets_every_file
        its_client_gets_a_hundred_at_once
        its_client_gets_a_long_post_back
    };
    node_2 = PeerTest::with_detection(Peer::Node, "spdy/2"),
    jetty_2 = PeerTest::with_detection(Peer::Jetty, "spdy/2") => {
        its_client_gets_every_file
        its_client_gets_a_long_post_back
    };
}
