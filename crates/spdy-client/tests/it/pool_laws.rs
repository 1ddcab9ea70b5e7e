//! Laws of the pool in every order of events.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use spdy_client::origin::Origin;
use spdy_client::pool::{Action, ConnectionId, Pool, RequestId};
use spdy_clock::Instant;
use spdy_frame::priority::Priority;
use spdy_net::protocol::Protocol;

use crate::support::pool::{SPDY, T0, origin};

/// An event of a pool; an index chooses the request or connection.
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

fn pool_event() -> impl Strategy<Value = PoolEvent> {
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

/// Carries out the actions of a pool, and keeps count.
struct World {
    pool: Pool,
    now: Instant,
    next: RequestId,
    queued: BTreeSet<RequestId>,
    /// Protocol, limit, number of open exchanges, and whether it accepts new ones.
    up: BTreeMap<ConnectionId, (Protocol, usize, usize, bool)>,
    connecting: BTreeMap<ConnectionId, Origin>,
    /// The origins whose requests may use a connection.
    users: BTreeMap<ConnectionId, BTreeSet<Origin>>,
    request_origins: BTreeMap<RequestId, Origin>,
    /// Origins that were rejected.
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

    fn apply(&mut self, event: PoolEvent) {
        self.now += Duration::from_secs(1);
        match event {
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
    fn every_request_is_served_exactly_once(events in prop::collection::vec(pool_event(), 0..120)) {
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
        for event in events {
            world.apply(event);
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
