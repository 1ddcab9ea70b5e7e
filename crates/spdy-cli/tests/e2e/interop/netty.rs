//! Both roles against Netty.

use crate::interop::peer_test::{PeerTest, peer_tests};
use crate::support::peers::Peer;

// Netty's client needs the version again in the HEADERS of a push, and resets a push that has it only once. This needs a separate
// push form, because a repeated name is an error (SPDY/3.1 §2.6.7).
peer_tests! {
    spdy_31 = PeerTest::plain(Peer::Netty, "spdy/3.1"),
    spdy_31_over_tls = PeerTest::tls(Peer::Netty, "spdy/3.1") => {
        every_peer
        its_client_accepts_our_pushes
        its_client_accepts_pushes_of_serve
        its_client_gets_the_page_with_pushes_in_another_form
        its_pushes_are_accepted
        its_pushes_satisfy_requests
    };
}
