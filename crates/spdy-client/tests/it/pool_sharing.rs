//! Origins at one address share a session.

use spdy_client::origin::Origin;
use spdy_client::pool::Pool;
use spdy_net::protocol::Protocol;

use crate::support::pool::{IDLE, SPDY, T0, actions, enqueue, origin, secure};

/// `b.test` is at the address of `a.test`, which is connected, and waits for a connection.
fn with_a_waiting_origin(protocol: Protocol) -> (Pool, Origin) {
    let mut pool = Pool::new(&[SPDY, Protocol::Http1], 6, IDLE);
    enqueue(&mut pool, &secure(), 0..1);
    pool.connected(T0, 0, protocol, 100);
    let second_origin = origin("https://b.test/");
    enqueue(&mut pool, &second_origin, 1..3);
    assert_eq!(actions(&mut pool), ["+0", "0>0", "+1"]);
    (pool, second_origin)
}

#[test]
fn an_origin_joins_an_open_session_and_shares_it_to_its_end() {
    let (mut pool, second_origin) = with_a_waiting_origin(SPDY);
    assert_eq!(pool.joinable(&second_origin).collect::<Vec<_>>(), [0]);
    assert!(pool.joined(T0, 1, 0));
    assert_eq!(actions(&mut pool), ["1>0", "2>0"]);
    enqueue(&mut pool, &second_origin, 3..4);
    assert_eq!(actions(&mut pool), ["3>0"]);
    pool.closing(T0, 0);
    enqueue(&mut pool, &second_origin, 4..5);
    enqueue(&mut pool, &secure(), 5..6);
    assert_eq!(actions(&mut pool), ["+2", "+3"]);
    pool.closed(T0, 0);
    assert_eq!(pool.connections_of(&second_origin).collect::<Vec<_>>(), [2]);
}

#[test]
fn a_rejected_origin_uses_its_own_connection() {
    let (mut pool, second_origin) = with_a_waiting_origin(SPDY);
    assert!(pool.joined(T0, 1, 0));
    actions(&mut pool);
    pool.part(T0, 0, &second_origin);
    enqueue(&mut pool, &second_origin, 3..4);
    assert_eq!(actions(&mut pool), ["+2"]);
    assert_eq!(pool.joinable(&second_origin).count(), 0);
    assert!(!pool.joined(T0, 2, 0));
    pool.connected(T0, 2, SPDY, 100);
    assert_eq!(actions(&mut pool), ["3>2"]);
    pool.ended(T0, 0);
    enqueue(&mut pool, &secure(), 4..5);
    assert_eq!(
        actions(&mut pool),
        ["4>0"],
        "the connection of the host itself stays"
    );
}

#[test]
fn only_open_multiplexed_tls_connections_on_the_port_are_shared() {
    let (pool, second_origin) = with_a_waiting_origin(Protocol::Http1);
    assert_eq!(pool.joinable(&second_origin).count(), 0);
    let (mut pool, second_origin) = with_a_waiting_origin(SPDY);
    for url in ["http://c.test/", "https://c.test:8443/"] {
        enqueue(&mut pool, &origin(url), 5..6);
        assert_eq!(pool.joinable(&origin(url)).count(), 0, "{url}");
    }
    let mut without_credentials = origin("https://c.test/");
    enqueue(&mut pool, &without_credentials, 6..7);
    assert_eq!(pool.joinable(&without_credentials).count(), 1);
    without_credentials.without_credentials = true;
    enqueue(&mut pool, &without_credentials, 7..8);
    assert_eq!(pool.joinable(&without_credentials).count(), 0);
    pool.closing(T0, 0);
    assert!(!pool.joined(T0, 1, 0));
    assert_eq!(pool.connections_of(&second_origin).collect::<Vec<_>>(), [1]);
}
