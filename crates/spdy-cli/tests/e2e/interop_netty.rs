//! Both roles against Netty.

use crate::interop;
use crate::support::peers::Peer;

const PLAIN: bool = false;
const TLS: bool = true;

#[test]
fn its_client_gets_every_file_from_serve() {
    interop::serve_answers_with_every_file(Peer::Netty, PLAIN);
}

#[test]
fn its_client_gets_every_file_from_serve_over_tls() {
    interop::serve_answers_with_every_file(Peer::Netty, TLS);
}

#[test]
fn its_client_gets_a_hundred_at_once_from_serve() {
    interop::serve_answers_a_crowd(Peer::Netty, PLAIN);
}

#[test]
fn its_client_gets_a_hundred_at_once_from_serve_over_tls() {
    interop::serve_answers_a_crowd(Peer::Netty, TLS);
}

#[test]
fn fetch_gets_every_file_from_its_server() {
    interop::fetch_gets_every_file(Peer::Netty, PLAIN);
}

#[test]
fn fetch_gets_every_file_from_its_server_over_tls() {
    interop::fetch_gets_every_file(Peer::Netty, TLS);
}

#[test]
fn fetch_gets_a_hundred_at_once_from_its_server() {
    interop::fetch_gets_a_crowd(Peer::Netty, PLAIN);
}

#[test]
fn fetch_gets_a_hundred_at_once_from_its_server_over_tls() {
    interop::fetch_gets_a_crowd(Peer::Netty, TLS);
}
