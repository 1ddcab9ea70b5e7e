//! Both roles against node-spdy, which speaks all three versions.

use crate::interop::peer_test::{PeerTest, peer_tests};
use crate::support::peers::Peer;

// Its pushes say `https`, whatever they come by: only over TLS are they of their page's origin.
peer_tests! {
    spdy_31 = PeerTest::plain(Peer::Node, "spdy/3.1"),
    spdy_3 = PeerTest::plain(Peer::Node, "spdy/3"),
    spdy_2 = PeerTest::plain(Peer::Node, "spdy/2") => {
        every_peer
        its_client_takes_our_pushes
        its_client_takes_what_serve_pushes
        its_client_is_lost_at_our_pushes_in_two_blocks
        its_pushes_are_of_another_origin
    };
    spdy_31_over_tls = PeerTest::tls(Peer::Node, "spdy/3.1"),
    spdy_3_over_tls = PeerTest::tls(Peer::Node, "spdy/3"),
    spdy_2_over_tls = PeerTest::tls(Peer::Node, "spdy/2") => {
        every_peer
        its_client_takes_our_pushes
        its_client_takes_what_serve_pushes
        its_client_is_lost_at_our_pushes_in_two_blocks
        its_pushes_come
        its_pushes_satisfy_requests
    };
}
