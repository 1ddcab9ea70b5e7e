//! Both roles against Netty.

use crate::interop::peer_test::{PeerTest, peer_tests};
use crate::support::peers::Peer;

// Its client wants the version again in the HEADERS of a push, and resets what has it but once: a form of its
// own, since a name given before is an error (SPDY/3.1 §2.6.7).
peer_tests! {
    spdy_31 = PeerTest::plain(Peer::Netty, "spdy/3.1"),
    spdy_31_over_tls = PeerTest::tls(Peer::Netty, "spdy/3.1") => {
        every_peer
        its_client_takes_our_pushes
        its_client_takes_what_serve_pushes
        its_client_gets_the_page_beside_pushes_in_another_form
        its_pushes_come
        its_pushes_satisfy_requests
    };
}
