//! The pool as a machine: who is connected, who is assigned, who waits.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use spdy_client::origin::Origin;
use spdy_client::pool::{Action, ConnectionId, Pool, RequestId};
use spdy_clock::Instant;
use spdy_frame::priority::Priority;
use spdy_frame::version::Version;
use spdy_net::protocol::Protocol;

const IDLE: Duration = Duration::from_secs(60);
const SPDY: Protocol = Protocol::Spdy(Version::V31);
const T0: Instant = Instant::ZERO;

fn origin(uri: &str) -> Origin {
    Origin::of(&uri.parse().unwrap()).unwrap()
}

fn plain() -> Origin {
    origin("http://a.test/")
}

fn secure() -> Origin {
    origin("https://a.test/")
}

/// All that is to be done, in short: `+N` connect, `R>N` assign, `-N` close.
fn actions(pool: &mut Pool) -> Vec<String> {
    std::iter::from_fn(|| pool.poll_action())
        .map(|action| match action {
            Action::Connect { connection, .. } => format!("+{connection}"),
            Action::Assign {
                request,
                connection,
            } => format!("{request}>{connection}"),
            Action::Close { connection } => format!("-{connection}"),
        })
        .collect()
}

fn enqueue(pool: &mut Pool, to: &Origin, requests: std::ops::Range<RequestId>) {
    for request in requests {
        pool.enqueue(T0, to, request, Priority::HIGHEST);
    }
}

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
fn where_only_http1_is_offered_tls_opens_many_at_once() {
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
fn the_urgent_go_first_then_the_early() {
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
fn a_full_connection_takes_the_next_when_one_has_ended() {
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

/// Names without end, each asked once, kept a connection each for ever.
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
fn origins_do_not_share() {
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
fn an_origin_joins_a_session_that_stands_and_shares_it_to_its_end() {
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
    pool.closing(T0, 0);
    assert!(!pool.joined(T0, 1, 0));
    assert_eq!(pool.connections_of(&second_origin).collect::<Vec<_>>(), [1]);
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

/// What can happen to a pool, with the dice that choose whom it happens to.
#[derive(Clone, Copy, Debug)]
enum PoolEvent {
    Enqueue {
        host: u8,
        level: u8,
    },
    Cancel(prop::sample::Index),
    Connected {
        which: prop::sample::Index,
        protocol: Protocol,
        limit: usize,
    },
    ConnectFailed(prop::sample::Index),
    Ended(prop::sample::Index),
    Closing(prop::sample::Index),
    Closed(prop::sample::Index),
    Join {
        which: prop::sample::Index,
        other: prop::sample::Index,
    },
    Part(prop::sample::Index),
}

fn happening() -> impl Strategy<Value = PoolEvent> {
    use PoolEvent::*;
    let index = any::<prop::sample::Index>;
    let protocol = prop_oneof![Just(SPDY), Just(Protocol::Http2), Just(Protocol::Http1)];
    prop_oneof![
        4 => (0..2u8, 0..8u8).prop_map(|(host, level)| Enqueue { host, level }),
        1 => index().prop_map(Cancel),
        3 => (index(), protocol, 1..4usize).prop_map(|(which, protocol, limit)| Connected { which, protocol, limit }),
        1 => index().prop_map(ConnectFailed),
        3 => index().prop_map(Ended),
        1 => index().prop_map(Closing),
        1 => index().prop_map(Closed),
        2 => (index(), index()).prop_map(|(which, other)| Join { which, other }),
        1 => index().prop_map(Part),
    ]
}

/// A world around a pool, that does what it says and keeps count.
struct World {
    pool: Pool,
    now: Instant,
    next: RequestId,
    queued: BTreeSet<RequestId>,
    /// Protocol, limit, exchanges open, takes new ones.
    up: BTreeMap<ConnectionId, (Protocol, usize, usize, bool)>,
    connecting: BTreeMap<ConnectionId, Origin>,
    /// Whose requests may go on a connection.
    users: BTreeMap<ConnectionId, BTreeSet<Origin>>,
    request_origins: BTreeMap<RequestId, Origin>,
    /// Origins that were turned away.
    unshared: BTreeSet<Origin>,
    assigned: BTreeSet<RequestId>,
}

impl World {
    fn carry_out(&mut self) {
        while let Some(action) = self.pool.poll_action() {
            match action {
                Action::Connect { connection, origin } => {
                    self.users.insert(connection, [origin.clone()].into());
                    assert!(self.connecting.insert(connection, origin).is_none());
                }
                Action::Assign {
                    request,
                    connection,
                } => {
                    assert!(self.queued.remove(&request), "{request} was not waiting");
                    assert!(self.assigned.insert(request), "{request} was served twice");
                    let origin = &self.request_origins[&request];
                    assert!(
                        self.users[&connection].contains(origin),
                        "{request} for {origin} is on connection {connection}"
                    );
                    let (_, limit, open, takes) = self
                        .up
                        .get_mut(&connection)
                        .expect("assigned to a connection that is up");
                    *open += 1;
                    assert!(
                        *takes && *open <= *limit,
                        "connection {connection} is overfull"
                    );
                }
                Action::Close { connection } => {
                    let (_, _, open, _) = self.up.remove(&connection).expect("closed twice");
                    assert_eq!(
                        open, 0,
                        "connection {connection} was closed with exchanges open"
                    );
                }
            }
        }
    }

    fn pick<V>(
        map: &BTreeMap<ConnectionId, V>,
        which: prop::sample::Index,
    ) -> Option<ConnectionId> {
        (!map.is_empty()).then(|| *map.keys().nth(which.index(map.len())).unwrap())
    }

    fn happen(&mut self, happening: PoolEvent) {
        self.now += Duration::from_secs(1);
        match happening {
            PoolEvent::Enqueue { host, level } => {
                let origin = origin(&format!("https://{host}.test/"));
                self.queued.insert(self.next);
                self.request_origins.insert(self.next, origin.clone());
                self.pool
                    .enqueue(self.now, &origin, self.next, Priority::new(level));
                self.next += 1;
            }
            PoolEvent::Cancel(which) => {
                if let Some(&request) = self
                    .queued
                    .iter()
                    .nth(which.index(self.queued.len().max(1)))
                {
                    assert!(self.pool.cancel(request));
                    self.queued.remove(&request);
                }
            }
            PoolEvent::Connected {
                which,
                protocol,
                limit,
            } => {
                if let Some(id) = Self::pick(&self.connecting, which) {
                    self.connecting.remove(&id);
                    let limit = if protocol.is_multiplexed() { limit } else { 1 };
                    self.up.insert(id, (protocol, limit, 0, true));
                    self.pool.connected(self.now, id, protocol, limit);
                }
            }
            PoolEvent::ConnectFailed(which) => {
                if let Some(id) = Self::pick(&self.connecting, which) {
                    self.connecting.remove(&id);
                    for lost in self.pool.connect_failed(self.now, id) {
                        assert!(self.queued.remove(&lost));
                    }
                }
            }
            PoolEvent::Ended(which) => {
                if let Some(id) = Self::pick(&self.up, which)
                    && let Some((_, _, open @ 1.., _)) = self.up.get_mut(&id)
                {
                    *open -= 1;
                    self.pool.ended(self.now, id);
                }
            }
            PoolEvent::Closing(which) => {
                if let Some(id) = Self::pick(&self.up, which) {
                    self.up.get_mut(&id).unwrap().3 = false;
                    self.pool.closing(self.now, id);
                }
            }
            PoolEvent::Closed(which) => {
                if let Some(id) = Self::pick(&self.up, which) {
                    self.up.remove(&id);
                    self.pool.closed(self.now, id);
                }
            }
            PoolEvent::Join { which, other } => {
                if let Some(id) = Self::pick(&self.connecting, which)
                    && let Some(other) = Self::pick(&self.up, other)
                {
                    let second_origin = self.connecting[&id].clone();
                    let has_joined = self.pool.joined(self.now, id, other);
                    assert!(
                        !has_joined || self.up[&other].3,
                        "the connection accepts nothing new"
                    );
                    assert!(
                        !has_joined || !self.unshared.contains(&second_origin),
                        "the request was rejected"
                    );
                    if has_joined {
                        self.connecting.remove(&id);
                        self.users.get_mut(&other).unwrap().insert(second_origin);
                    }
                }
            }
            PoolEvent::Part(which) => {
                if let Some(id) = Self::pick(&self.up, which)
                    && self.users[&id].len() > 1
                {
                    // Connections are those of the first host of which they are told; any guest may part.
                    let own_origin = self.pool.origin_of(id).unwrap().clone();
                    let users = self.users.get_mut(&id).unwrap();
                    let second_origin = users
                        .iter()
                        .find(|origin| **origin != own_origin)
                        .unwrap()
                        .clone();
                    users.remove(&second_origin);
                    self.pool.part(self.now, id, &second_origin);
                    self.unshared.insert(second_origin);
                }
            }
        }
        self.carry_out();
    }
}

proptest! {
    /// In every order of events: no request is served twice, and no connection is overfull. Once every connect succeeds
    /// and every exchange ends, no request is left waiting.
    #[test]
    fn every_request_is_served_once_in_the_end(happenings in prop::collection::vec(happening(), 0..120)) {
        let mut world = World {
            pool: Pool::new(&[SPDY, Protocol::Http2, Protocol::Http1], 6, Duration::from_secs(30)),
            now: T0,
            next: 0,
            queued: BTreeSet::new(),
            up: BTreeMap::new(),
            connecting: BTreeMap::new(),
            users: BTreeMap::new(),
            request_origins: BTreeMap::new(),
            unshared: BTreeSet::new(),
            assigned: BTreeSet::new(),
        };
        for happening in happenings {
            world.happen(happening);
            for host in 0..2 {
                let all = world.pool.connections_of(&origin(&format!("https://{host}.test/"))).count();
                let draining = world.up.values().filter(|up| !up.3).count();
                prop_assert!(all <= 6 + draining, "{all} connections to one origin");
            }
        }
        let mut rounds = 0;
        while !world.queued.is_empty() {
            rounds += 1;
            prop_assert!(rounds < 1_000, "{:?} are never assigned", world.queued);
            while let Some((id, _)) = world.connecting.pop_first() {
                world.up.insert(id, (Protocol::Http1, 1, 0, true));
                world.pool.connected(world.now, id, Protocol::Http1, 1);
                world.carry_out();
            }
            let busy: Vec<_> = world.up.iter().filter(|(_, up)| up.2 > 0).map(|(id, _)| *id).collect();
            for id in busy {
                world.up.get_mut(&id).unwrap().2 -= 1;
                world.pool.ended(world.now, id);
                world.carry_out();
            }
        }
    }
}

#[test]
fn a_server_that_refuses_one_too_many_is_given_no_more_before_another_ended() {
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
    // What was known wrongly is put right by what is agreed upon.
    let mut pool = pool().with_host_protocols(host_protocol(Protocol::Http1));
    enqueue(&mut pool, &secure(), 0..2);
    assert_eq!(actions(&mut pool), ["+0", "+1"]);
    pool.connected(T0, 0, SPDY, usize::MAX);
    enqueue(&mut pool, &secure(), 2..4);
    assert_eq!(actions(&mut pool), ["0>0", "1>0", "2>0", "3>0"]);
}
