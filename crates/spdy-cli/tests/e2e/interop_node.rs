//! Both roles against node-spdy.

use crate::interop::{a_hundred, every_file, fetch_gets, serve_answers};
use crate::support::peers::Peer;

const PLAIN: bool = false;
const TLS: bool = true;

#[test]
fn its_client_gets_every_file_from_serve() {
    serve_answers(Peer::Node, PLAIN, every_file);
}

#[test]
fn its_client_gets_every_file_from_serve_over_tls() {
    serve_answers(Peer::Node, TLS, every_file);
}

#[test]
fn its_client_gets_a_hundred_at_once_from_serve() {
    serve_answers(Peer::Node, PLAIN, a_hundred);
}

#[test]
fn its_client_gets_a_hundred_at_once_from_serve_over_tls() {
    serve_answers(Peer::Node, TLS, a_hundred);
}

#[test]
fn fetch_gets_every_file_from_its_server() {
    fetch_gets(Peer::Node, PLAIN, every_file);
}

#[test]
fn fetch_gets_every_file_from_its_server_over_tls() {
    fetch_gets(Peer::Node, TLS, every_file);
}

#[test]
fn fetch_gets_a_hundred_at_once_from_its_server() {
    fetch_gets(Peer::Node, PLAIN, a_hundred);
}

#[test]
fn fetch_gets_a_hundred_at_once_from_its_server_over_tls() {
    fetch_gets(Peer::Node, TLS, a_hundred);
}
