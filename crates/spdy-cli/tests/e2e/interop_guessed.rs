//! Clients of every version over plain TCP, where nothing tells our server which of SPDY/3 and 3.1 is meant
//! (`spdy-session/src/undecided.rs`), and the defaults of `spdy serve` hold.

use crate::interop::{PeerTest, meetings};
use crate::support::peers::Peer;

meetings! {
    node_31 = PeerTest::guessed(Peer::Node, "spdy/3.1"),
    node_3 = PeerTest::guessed(Peer::Node, "spdy/3"),
    netty = PeerTest::guessed(Peer::Netty, "spdy/3.1"),
    moby = PeerTest::guessed(Peer::Moby, "spdy/3.1"),
    okhttp = PeerTest::guessed(Peer::OkHttp, "spdy/3.1"),
    jetty_3 = PeerTest::guessed(Peer::Jetty, "spdy/3"),
    undertow = PeerTest::guessed(Peer::Undertow, "spdy/3.1") => {
        its_client_gets_every_file
        its_client_gets_a_hundred_at_once
        its_client_gets_a_long_post_back
    };
    node_2 = PeerTest::guessed(Peer::Node, "spdy/2"),
    jetty_2 = PeerTest::guessed(Peer::Jetty, "spdy/2") => {
        its_client_gets_every_file
        its_client_gets_a_long_post_back
    };
}
