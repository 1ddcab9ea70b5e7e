//! The pool without connections of its own: when it opens, assigns and closes connections.

use std::time::Duration;

use spdy_client::origin::Origin;
use spdy_client::pool::Pool;
use spdy_frame::priority::Priority;
use spdy_net::protocol::Protocol;

use crate::support::pool::{IDLE, SPDY, T0, actions, enqueue, origin, plain, secure};

#[test]
fn http1_opens_as_many_as_there_are_requests_up_to_six() {
    let mut pool = Pool::new(&[Protocol::Http1], 6, IDLE);
    enqueue(&mut pool, &plain(), 0..1);
    assert_eq!(actions(&mut pool), ["+0"]);
    pool.connected(T0, 0, Protocol::Http1, 1);
    assert_eq!(actions(&mut pool), ["0>0"]);
    pool.ended(T0, 0);
    // The page: its connection carries the first image, five more are opened for the others.
    enqueue(&mut pool, &plain(), 1..9);
    assert_eq!(actions(&mut pool), ["1>0", "+1", "+2", "+3", "+4", "+5"]);
    pool.connected(T0, 2, Protocol::Http1, 1);
    assert_eq!(actions(&mut pool), ["2>2"]);
    // A connection that becomes free is used before one that is still being set up.
    pool.ended(T0, 0);
    assert_eq!(actions(&mut pool), ["3>0"]);
}

#[test]
fn a_backup_is_opened_while_requests_wait_for_the_first_connection() {
    let mut pool = Pool::new(&[Protocol::Http1], 2, IDLE);
    pool.open_backup(T0, &plain());
    assert_eq!(actions(&mut pool), [""; 0], "no request waits");
    enqueue(&mut pool, &plain(), 0..1);
    pool.open_backup(T0, &plain());
    assert_eq!(actions(&mut pool), ["+0", "+1"]);
    pool.open_backup(T0, &plain());
    assert_eq!(actions(&mut pool), [""; 0], "two are the limit");
    pool.connected(T0, 1, Protocol::Http1, 1);
    assert_eq!(actions(&mut pool), ["0>1"]);
    enqueue(&mut pool, &plain(), 1..2);
    pool.open_backup(T0, &plain());
    assert_eq!(actions(&mut pool), [""; 0], "one is open");
}

#[test]
fn an_origin_is_full_when_a_request_waits_on_open_connections() {
    let mut pool = Pool::new(&[Protocol::Http1], 2, IDLE);
    assert!(!pool.is_full(&plain()), "the origin is unknown");
    enqueue(&mut pool, &plain(), 0..3);
    pool.connected(T0, 0, Protocol::Http1, 1);
    assert!(
        !pool.is_full(&plain()),
        "another connection is being opened"
    );
    pool.connected(T0, 1, Protocol::Http1, 1);
    assert!(pool.is_full(&plain()));
    pool.ended(T0, 0);
    assert!(!pool.is_full(&plain()), "no request waits");
    let mut pool = Pool::new(&[Protocol::Http2], 2, IDLE);
    enqueue(&mut pool, &secure(), 0..3);
    for connection in 0..2 {
        pool.connected(T0, connection, Protocol::Http2, 1);
    }
    assert!(!pool.is_full(&secure()), "both origins share one limit");
}

#[test]
fn tls_to_an_unknown_origin_opens_one_connection_first() {
    for (protocol, then) in [
        (SPDY, vec!["0>0", "1>0", "2>0"]),
        (Protocol::Http2, vec!["0>0", "1>0", "2>0"]),
        (Protocol::Http1, vec!["0>0", "+1", "+2"]),
    ] {
        let mut pool = Pool::new(&[SPDY, Protocol::Http2, Protocol::Http1], 6, IDLE);
        enqueue(&mut pool, &secure(), 0..3);
        assert_eq!(actions(&mut pool), ["+0"]);
        pool.connected(
            T0,
            0,
            protocol,
            if protocol.is_multiplexed() { 100 } else { 1 },
        );
        assert_eq!(actions(&mut pool), then, "{protocol}");
    }
}

#[test]
fn a_full_multiplexed_connection_gets_another_one_up_to_the_limit() {
    let mut pool = Pool::new(&[Protocol::Http2], 6, IDLE).with_multiplexed_connections(2);
    enqueue(&mut pool, &secure(), 0..5);
    assert_eq!(actions(&mut pool), ["+0"]);
    pool.connected(T0, 0, Protocol::Http2, 2);
    assert_eq!(actions(&mut pool), ["0>0", "1>0", "+1"]);
    pool.connected(T0, 1, Protocol::Http2, 2);
    assert_eq!(actions(&mut pool), ["2>1", "3>1"]);
    pool.ended(T0, 0);
    assert_eq!(actions(&mut pool), ["4>0"]);
    // One that closes makes room for another.
    enqueue(&mut pool, &secure(), 5..6);
    assert!(actions(&mut pool).is_empty());
    pool.closed(T0, 1);
    assert_eq!(actions(&mut pool), ["+2"]);
}

#[test]
fn a_host_that_is_assumed_to_speak_http1_keeps_its_first_multiplexed_connection() {
    let mut pool = Pool::new(&[SPDY, Protocol::Http1], 6, IDLE).with_http1_assumed(true);
    enqueue(&mut pool, &secure(), 0..3);
    assert_eq!(actions(&mut pool), ["+0", "+1", "+2"]);
    pool.connected(T0, 1, SPDY, 100);
    assert_eq!(actions(&mut pool), ["0>1", "1>1", "2>1"]);
    pool.connected(T0, 0, SPDY, 100);
    assert_eq!(actions(&mut pool), ["-0"]);
    enqueue(&mut pool, &secure(), 3..5);
    assert_eq!(actions(&mut pool), ["3>1", "4>1"]);
    pool.connect_failed(T0, 2);
    assert_eq!(actions(&mut pool), [""; 0]);
}

#[test]
fn connections_ahead_of_requests_are_used_by_them() {
    for (protocols, expected) in [
        (vec![Protocol::Http1], vec!["+0", "+1"]),
        (vec![SPDY], vec!["+0"]),
    ] {
        let mut pool = Pool::new(&protocols, 6, IDLE);
        pool.preconnect(T0, &secure(), 2);
        pool.preconnect(T0, &secure(), 2);
        assert_eq!(actions(&mut pool), expected);
        enqueue(&mut pool, &secure(), 0..1);
        assert_eq!(actions(&mut pool), [""; 0]);
        pool.connected(T0, 0, protocols[0], 100);
        assert_eq!(actions(&mut pool), ["0>0"]);
    }
}

#[test]
fn if_only_http1_is_offered_tls_opens_many_at_once() {
    let mut pool = Pool::new(&[Protocol::Http1], 6, IDLE);
    enqueue(&mut pool, &secure(), 0..8);
    assert_eq!(actions(&mut pool), ["+0", "+1", "+2", "+3", "+4", "+5"]);
}

#[test]
fn the_protocol_of_an_origin_is_remembered() {
    let mut pool = Pool::new(&[SPDY, Protocol::Http1], 6, IDLE);
    enqueue(&mut pool, &secure(), 0..1);
    pool.connected(T0, 0, Protocol::Http1, 1);
    pool.closed(T0, 0);
    actions(&mut pool);
    enqueue(&mut pool, &secure(), 1..4);
    assert_eq!(actions(&mut pool), ["+1", "+2", "+3"]);
}

#[test]
fn requests_are_assigned_by_priority_and_then_by_age() {
    let mut pool = Pool::new(&[SPDY], 6, IDLE).with_plain_protocol(SPDY);
    for (request, level) in [(0, 4), (1, 0), (2, 4), (3, 0), (4, 7)] {
        pool.enqueue(T0, &plain(), request, Priority::new(level));
    }
    pool.connected(T0, 0, SPDY, 100);
    assert_eq!(
        actions(&mut pool),
        ["+0", "1>0", "3>0", "0>0", "2>0", "4>0"]
    );
}

#[test]
fn a_full_connection_gets_the_next_request_when_one_ends() {
    let mut pool = Pool::new(&[Protocol::Http2], 6, IDLE).with_plain_protocol(Protocol::Http2);
    enqueue(&mut pool, &plain(), 0..4);
    pool.connected(T0, 0, Protocol::Http2, 2);
    assert_eq!(actions(&mut pool), ["+0", "0>0", "1>0"]);
    pool.ended(T0, 0);
    assert_eq!(actions(&mut pool), ["2>0"]);
    pool.set_limit(0, 3);
    pool.ended(T0, 0);
    assert_eq!(actions(&mut pool), ["3>0"]);
}

#[test]
fn a_connection_that_is_closing_is_replaced() {
    let mut pool = Pool::new(&[SPDY], 6, IDLE);
    enqueue(&mut pool, &plain(), 0..1);
    pool.connected(T0, 0, SPDY, 100);
    actions(&mut pool);
    pool.closing(T0, 0);
    assert_eq!(actions(&mut pool), [""; 0]);
    enqueue(&mut pool, &plain(), 1..2);
    assert_eq!(actions(&mut pool), ["+1"]);
    pool.ended(T0, 0);
    pool.closed(T0, 0);
    assert_eq!(actions(&mut pool), [""; 0]);
}

/// A pool with a connection to each of five origins: idle ones of HTTP/1.1 and HTTP/2, a busy one, one that is being opened and one
/// that ends.
fn with_five_origins(pool: Pool) -> Pool {
    let mut pool = pool.with_http1_idle_timeout(Duration::from_secs(4));
    for (number, protocol) in [
        Some(Protocol::Http1),
        Some(Protocol::Http2),
        Some(Protocol::Http1),
        None,
        Some(Protocol::Http2),
    ]
    .into_iter()
    .enumerate()
    {
        let id = number as u64;
        let to = origin(&format!("https://{number}.test/"));
        enqueue(&mut pool, &to, id..id + 1);
        if let Some(protocol) = protocol {
            pool.connected(
                T0,
                id,
                protocol,
                if protocol.is_multiplexed() { 100 } else { 1 },
            );
        }
    }
    pool.ended(T0, 0);
    pool.ended(T0, 1);
    pool.closing(T0, 4);
    actions(&mut pool);
    pool
}

/// Regression: with ever new names, each requested once, a connection for each was kept for ever.
#[test]
fn the_sweep_closes_idle_connections_of_all_origins() {
    let pool = || Pool::new(&[Protocol::Http2, Protocol::Http1], 6, IDLE);
    let enqueue_after = |pool: &mut Pool, after, request| {
        let other_origin = origin("https://another.test/");
        pool.enqueue(T0 + after, &other_origin, request, Priority::HIGHEST);
        actions(pool)
    };
    let mut sweeping = with_five_origins(pool().with_sweep_interval(IDLE));
    let moment = Duration::from_millis(1);
    assert_eq!(enqueue_after(&mut sweeping, IDLE - moment, 5), ["+5"]);
    // HTTP/2 may be idle for that long, HTTP/1.1 may not.
    assert_eq!(enqueue_after(&mut sweeping, IDLE, 6), ["-0"]);
    assert_eq!(enqueue_after(&mut sweeping, IDLE + moment, 7), [""; 0]);
    assert_eq!(enqueue_after(&mut sweeping, 2 * IDLE, 8), ["-1"]);
    for (number, is_left) in [false, false, true, true, true].into_iter().enumerate() {
        let at = origin(&format!("https://{number}.test/"));
        let remaining = sweeping.connections_of(&at).count();
        assert_eq!(remaining == 1, is_left, "{number}");
    }
    let mut second_pool = with_five_origins(pool());
    assert_eq!(enqueue_after(&mut second_pool, 100 * IDLE, 5), ["+5"]);
}

#[test]
fn an_origin_without_state_is_forgotten() {
    for (sweeps, expected_opens) in [(true, 1), (false, 3)] {
        let mut pool = Pool::new(&[SPDY, Protocol::Http1], 6, IDLE);
        if sweeps {
            pool = pool.with_sweep_interval(IDLE);
        }
        enqueue(&mut pool, &secure(), 0..1);
        pool.connected(T0, 0, Protocol::Http1, 1);
        pool.ended(T0, 0);
        pool.closed(T0, 0);
        actions(&mut pool);
        let later = T0 + 2 * IDLE;
        pool.enqueue(later, &plain(), 1, Priority::HIGHEST);
        actions(&mut pool);
        for request in 2..5 {
            pool.enqueue(later, &secure(), request, Priority::HIGHEST);
        }
        // Who is known to speak HTTP/1.1 gets as many as there are requests.
        assert_eq!(actions(&mut pool).len(), expected_opens, "{sweeps}");
    }
}

#[test]
fn a_failed_connect_fails_the_queue_unless_a_connection_is_up() {
    let mut pool = Pool::new(&[Protocol::Http1], 6, IDLE);
    enqueue(&mut pool, &plain(), 0..2);
    assert_eq!(
        pool.connect_failed(T0, 0),
        [0; 0],
        "connection 1 is still being opened"
    );
    assert_eq!(pool.connect_failed(T0, 1), [0, 1]);
    actions(&mut pool);
    enqueue(&mut pool, &plain(), 2..4);
    pool.connected(T0, 2, Protocol::Http1, 1);
    assert_eq!(actions(&mut pool), ["+2", "+3", "2>2"]);
    assert_eq!(pool.connect_failed(T0, 3), [0; 0]);
    assert_eq!(
        actions(&mut pool),
        [""; 0],
        "no second try while the first connection works"
    );
    pool.ended(T0, 2);
    assert_eq!(actions(&mut pool), ["3>2"]);
}

#[test]
fn origins_do_not_share_connections() {
    let mut pool = Pool::new(&[SPDY], 6, IDLE);
    let all = [
        "http://a.test/",
        "https://a.test/",
        "http://b.test/",
        "http://a.test:81/",
    ];
    for (request, uri) in (0..).zip(all) {
        pool.enqueue(T0, &origin(uri), request, Priority::HIGHEST);
    }
    assert_eq!(actions(&mut pool), ["+0", "+1", "+2", "+3"]);
    let without_credentials = Origin {
        without_credentials: true,
        ..origin("https://a.test/")
    };
    pool.enqueue(T0, &without_credentials, 4, Priority::HIGHEST);
    assert_eq!(actions(&mut pool), ["+4"]);
}

#[test]
fn an_expired_idle_connection_is_closed_and_not_used() {
    let mut pool = Pool::new(&[Protocol::Http1], 6, IDLE);
    enqueue(&mut pool, &plain(), 0..1);
    pool.connected(T0, 0, Protocol::Http1, 1);
    pool.ended(T0, 0);
    actions(&mut pool);
    pool.enqueue(T0 + IDLE, &plain(), 1, Priority::HIGHEST);
    assert_eq!(actions(&mut pool), ["1>0"]);
    pool.ended(T0 + IDLE, 0);
    pool.enqueue(
        T0 + IDLE + IDLE + Duration::from_nanos(1),
        &plain(),
        2,
        Priority::HIGHEST,
    );
    assert_eq!(actions(&mut pool), ["-0", "+1"]);
}

#[test]
fn a_cancelled_request_is_not_assigned() {
    let mut pool = Pool::new(&[SPDY], 6, IDLE).with_plain_protocol(SPDY);
    enqueue(&mut pool, &plain(), 0..2);
    assert!(pool.cancel(0));
    assert!(!pool.cancel(0));
    pool.connected(T0, 0, SPDY, 100);
    assert_eq!(actions(&mut pool), ["+0", "1>0"]);
}

#[test]
fn after_a_refused_stream_the_next_waits_for_another_to_end() {
    let mut pool = Pool::new(&[SPDY], 6, IDLE);
    enqueue(&mut pool, &secure(), 0..3);
    assert_eq!(actions(&mut pool), ["+0"]);
    pool.connected(T0, 0, SPDY, usize::MAX);
    assert_eq!(actions(&mut pool), ["0>0", "1>0", "2>0"]);
    pool.refused(0);
    pool.ended(T0, 0);
    enqueue(&mut pool, &secure(), 3..5);
    pool.set_limit(0, usize::MAX);
    assert_eq!(
        actions(&mut pool),
        [""; 0],
        "two connections are open, the limit"
    );
    pool.ended(T0, 0);
    assert_eq!(actions(&mut pool), ["3>0"]);
    pool.ended(T0, 0);
    assert_eq!(actions(&mut pool), ["4>0"]);
}

#[test]
fn a_server_that_refuses_the_only_stream_gets_one_at_a_time() {
    let mut pool = Pool::new(&[SPDY], 6, IDLE);
    enqueue(&mut pool, &secure(), 0..1);
    pool.connected(T0, 0, SPDY, usize::MAX);
    assert_eq!(actions(&mut pool), ["+0", "0>0"]);
    pool.refused(0);
    pool.ended(T0, 0);
    enqueue(&mut pool, &secure(), 1..3);
    assert_eq!(actions(&mut pool), ["1>0"]);
    pool.ended(T0, 0);
    assert_eq!(actions(&mut pool), ["2>0"]);
}

#[test]
fn without_tls_http_1_1_is_expected_and_has_many_connections() {
    let mut pool = Pool::new(&[SPDY, Protocol::Http1], 6, IDLE);
    enqueue(&mut pool, &plain(), 0..3);
    assert_eq!(actions(&mut pool), ["+0", "+1", "+2"]);
    enqueue(&mut pool, &secure(), 3..6);
    assert_eq!(actions(&mut pool), ["+3"]);
}

#[test]
fn configured_host_protocols_set_the_connection_count() {
    let host_protocol = |protocol| [(secure().host, protocol)].into();
    let pool = || Pool::new(&[SPDY, Protocol::Http1], 6, IDLE).with_plain_protocol(SPDY);
    for (protocol, expected_opens) in [(Protocol::Http1, &["+0", "+1", "+2"][..]), (SPDY, &["+0"])]
    {
        for origin in [secure(), plain()] {
            let mut pool = pool().with_host_protocols(host_protocol(protocol));
            enqueue(&mut pool, &origin, 0..3);
            assert_eq!(
                actions(&mut pool),
                expected_opens,
                "{origin} speaks {protocol}"
            );
        }
    }
    // A wrong assumption is corrected by the negotiated protocol.
    let mut pool = pool().with_host_protocols(host_protocol(Protocol::Http1));
    enqueue(&mut pool, &secure(), 0..2);
    assert_eq!(actions(&mut pool), ["+0", "+1"]);
    pool.connected(T0, 0, SPDY, usize::MAX);
    enqueue(&mut pool, &secure(), 2..4);
    assert_eq!(actions(&mut pool), ["0>0", "1>0", "2>0", "3>0"]);
}
