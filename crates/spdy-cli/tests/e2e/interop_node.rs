//! Both roles against node-spdy.

use crate::interop;
use crate::support::peers::Peer;

const PLAIN: bool = false;
const TLS: bool = true;

#[test]
fn its_client_gets_every_file_from_serve() {
    interop::serve_answers_with_every_file(Peer::Node, PLAIN);
}

#[test]
fn its_client_gets_every_file_from_serve_over_tls() {
    interop::serve_answers_with_every_file(Peer::Node, TLS);
}

#[test]
fn its_client_gets_a_hundred_at_once_from_serve() {
    interop::serve_answers_a_crowd(Peer::Node, PLAIN);
}

#[test]
fn its_client_gets_a_hundred_at_once_from_serve_over_tls() {
    interop::serve_answers_a_crowd(Peer::Node, TLS);
}

#[test]
fn fetch_gets_every_file_from_its_server() {
    interop::fetch_gets_every_file(Peer::Node, PLAIN);
}

#[test]
fn fetch_gets_every_file_from_its_server_over_tls() {
    interop::fetch_gets_every_file(Peer::Node, TLS);
}

#[test]
fn fetch_gets_a_hundred_at_once_from_its_server() {
    interop::fetch_gets_a_crowd(Peer::Node, PLAIN);
}

#[test]
fn fetch_gets_a_hundred_at_once_from_its_server_over_tls() {
    interop::fetch_gets_a_crowd(Peer::Node, TLS);
}
