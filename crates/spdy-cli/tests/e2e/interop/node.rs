//! Both roles against node-spdy, which implements all three versions.

use crate::interop::peer_test::{PeerTest, peer_tests};
use crate::support::peers::Peer;

// Its pushes always have the scheme `https`, so without TLS their origin is not that of the page.
peer_tests! {
    spdy_31 = PeerTest::plain(Peer::Node, "spdy/3.1"),
    spdy_3 = PeerTest::plain(Peer::Node, "spdy/3"),
    spdy_2 = PeerTest::plain(Peer::Node, "spdy/2") => {
        every_peer
        its_client_accepts_our_pushes
        its_client_accepts_pushes_of_serve
        its_client_ends_the_session_at_our_pushes_in_two_blocks
        its_pushes_are_of_another_origin
    };
    spdy_31_over_tls = PeerTest::tls(Peer::Node, "spdy/3.1"),
    spdy_3_over_tls = PeerTest::tls(Peer::Node, "spdy/3"),
    spdy_2_over_tls = PeerTest::tls(Peer::Node, "spdy/2") => {
        every_peer
        its_client_accepts_our_pushes
        its_client_accepts_pushes_of_serve
        its_client_ends_the_session_at_our_pushes_in_two_blocks
        its_pushes_are_accepted
        its_pushes_satisfy_requests
    };
}
