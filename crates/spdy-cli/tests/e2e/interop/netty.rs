//! Both roles against Netty.

use crate::interop::peer_test::{PeerTest, meetings};
use crate::support::peers::Peer;

// Its client wants the version again in the HEADERS of a push, and resets what has it but once: a form of its
// own, since a name given before is an error (SPDY/3.1 §2.6.7).
meetings! {
    spdy_31 = PeerTest::plain(Peer::Netty, "spdy/3.1"),
    spdy_31_over_tls = PeerTest::tls(Peer::Netty, "spdy/3.1") => {
        its_client_gets_every_file
        its_client_gets_a_hundred_at_once
        its_client_gets_its_posts_back
        its_client_takes_our_pushes
        its_client_gets_pages_beside_pushes_in_the_default_form
        its_client_takes_what_serve_pushes
        its_client_gets_the_page_beside_pushes_in_another_form
        fetch_gets_every_file
        fetch_gets_a_hundred_at_once
        fetch_gets_its_posts_back
        its_pushes_come
        its_pushes_satisfy_requests
    };
}
