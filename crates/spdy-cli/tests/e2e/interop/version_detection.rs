//! Clients of every version over plain TCP, where nothing tells our server which of SPDY/3 and 3.1 is meant
//! (`spdy-session/src/session/detect_version.rs`), and the defaults of `spdy serve` hold.

use crate::interop::peer_test::{PeerTest, peer_tests};
use crate::support::peers::Peer;

peer_tests! {
    node_31 = PeerTest::sniffed(Peer::Node, "spdy/3.1"),
    node_3 = PeerTest::sniffed(Peer::Node, "spdy/3"),
    netty = PeerTest::sniffed(Peer::Netty, "spdy/3.1"),
    moby = PeerTest::sniffed(Peer::Moby, "spdy/3.1"),
    okhttp = PeerTest::sniffed(Peer::OkHttp, "spdy/3.1"),
    jetty_3 = PeerTest::sniffed(Peer::Jetty, "spdy/3"),
    undertow = PeerTest::sniffed(Peer::Undertow, "spdy/3.1") => {
        its_client_gets_every_file
        its_client_gets_a_hundred_at_once
        its_client_gets_a_long_post_back
    };
    node_2 = PeerTest::sniffed(Peer::Node, "spdy/2"),
    jetty_2 = PeerTest::sniffed(Peer::Jetty, "spdy/2") => {
        its_client_gets_every_file
        its_client_gets_a_long_post_back
    };
}
