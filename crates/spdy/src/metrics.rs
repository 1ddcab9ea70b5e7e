//! Metrics summed over many sessions.
//!
//! ```text
//!  session ── its counters, under its own lock ───────┐
//!  session ── ...                                     ├── snapshot(): sum of open and ended sessions
//!  sessions that ended ── added up once, at their end ┘
//! ```
//!
//! Counting costs the same as without metrics: sessions share no atomics and no lock, except at the beginning and the end of a
//! session and at the echo of a PING. A [`Snapshot`] reads every open session once, which takes a few microseconds for a hundred
//! sessions. The exporter decides how often.
//!
//! ```
//! use spdy::metrics::Metrics;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::StatusCode;
use parking_lot::{Mutex, MutexGuard};
use slab::Slab;
use spdy_frame::version::Version;
use spdy_session::config::Role;
pub use spdy_session::counters::{FrameCounts, ResetCounts};
use spdy_session::session::Stats;

/// Upper bounds of the buckets of [`RoundTrips`], milliseconds.
pub const RTT_BOUNDS_MS: [u64; 12] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

/// Collects metrics of all sessions whose builder has it. Clones share one collection.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Inner>);

#[derive(Default)]
struct Inner {
    registry: Mutex<Registry>,
    round_trips: [AtomicRoundTrips; 2],
}

/// A session whose counters are read while it is open.
pub(crate) trait SessionSource: Send + Sync {
    /// The counters of the session so far.
    fn sample(&self) -> SessionSample;
}

/// The counters of one session at one instant.
pub(crate) struct SessionSample {
    pub(crate) role: Role,
    pub(crate) version: Version,
    /// Number of open and queued streams.
    pub(crate) open_streams: usize,
    pub(crate) stats: Stats,
    pub(crate) exchanges: Exchanges,
}

#[derive(Default)]
struct Registry {
    /// Sessions whose driver is running.
    active: Slab<Weak<dyn SessionSource>>,
    /// Number of sessions so far, by role and version.
    total: [[u64; 3]; 2],
    /// Sums of the sessions that have ended.
    ended: [(Stats, Exchanges); 2],
}

/// All metrics at one instant. Counters never decrease from one snapshot to the next.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Sessions in which this program is the client.
    pub client: RoleMetrics,
    /// Sessions in which this program is the server.
    pub server: RoleMetrics,
}

/// The sessions of one role.
#[derive(Clone, Debug)]
pub struct RoleMetrics {
    /// Number of sessions by version: 3.1, 3, 2.
    pub sessions: [(Version, Sessions); 3],
    /// Number of open and queued streams.
    pub streams_open: u64,
    /// Counters of the session machines: frames, streams, resets, bytes, limits.
    pub stats: Stats,
    /// Requests and responses.
    pub exchanges: Exchanges,
    /// Pushed streams: sent by a server, accepted by a client.
    pub pushes: u64,
    /// Round trips of PING.
    pub round_trips: RoundTrips,
}

/// Number of sessions.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Sessions {
    /// Open sessions.
    pub open: u64,
    /// All sessions so far.
    pub total: u64,
}

/// Number of requests, and of responses by status class.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Exchanges {
    /// Requests that a client sent, or a server received.
    pub requests: u64,
    /// Responses by the class of the status, 1xx first; the last entry counts statuses from 600 on. A request that was reset has
    /// none.
    pub responses: [u64; 6],
}

impl Exchanges {
    pub(crate) fn answered(&mut self, status: StatusCode) {
        // A status is 100 to 999.
        let class = usize::from(status.as_u16() / 100).clamp(1, self.responses.len());
        self.responses[class - 1] += 1;
    }

    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        for (sum, more) in self.responses.iter_mut().zip(other.responses) {
            *sum += more;
        }
    }
}

/// Round trip times measured by PING.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RoundTrips {
    /// Number of round trips up to each of [`RTT_BOUNDS_MS`] and above the bound before; the last entry counts those above all
    /// bounds.
    pub buckets: [u64; RTT_BOUNDS_MS.len() + 1],
    /// Sum of all round trip times.
    pub sum: Duration,
}

impl RoundTrips {
    /// Number of round trips.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

#[derive(Default)]
struct AtomicRoundTrips {
    buckets: [AtomicU64; RTT_BOUNDS_MS.len() + 1],
    sum_us: AtomicU64,
}

impl AtomicRoundTrips {
    fn add(&self, rtt: Duration) {
        let within = |bound: &u64| rtt <= Duration::from_millis(*bound);
        let last = RTT_BOUNDS_MS.len();
        let bucket = RTT_BOUNDS_MS.iter().position(within).unwrap_or(last);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX);
        self.sum_us.fetch_add(micros, Ordering::Relaxed);
    }

    fn load(&self) -> RoundTrips {
        RoundTrips {
            buckets: std::array::from_fn(|nth| self.buckets[nth].load(Ordering::Relaxed)),
            sum: Duration::from_micros(self.sum_us.load(Ordering::Relaxed)),
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics")
            .field("living", &self.registry().active.len())
            .finish_non_exhaustive()
    }
}

const fn place(role: Role) -> usize {
    match role {
        Role::Client => 0,
        Role::Server => 1,
    }
}

fn version_index(version: Version) -> usize {
    let all = Version::ALL.iter();
    all.take_while(|candidate| **candidate != version).count()
}

impl Metrics {
    /// A collection without sessions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The counts of all sessions so far.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        // Sessions are sampled after this lock is released, because a session takes it while holding its own lock. A session that
        // ends in between is still in the list and not yet in the sums, so it is counted once.
        let (active, total, ended) = {
            let registry = self.registry();
            let active = registry.active.iter();
            let active: Vec<_> = active
                .filter_map(|(_, session)| session.upgrade())
                .collect();
            (active, registry.total, registry.ended)
        };
        let side = |role: Role| {
            let (stats, exchanges) = ended[place(role)];
            let version = |nth: usize| {
                let total = total[place(role)][nth];
                (Version::ALL[nth], Sessions { open: 0, total })
            };
            RoleMetrics {
                sessions: std::array::from_fn(version),
                streams_open: 0,
                stats,
                exchanges,
                pushes: 0,
                round_trips: self.0.round_trips[place(role)].load(),
            }
        };
        let mut snapshot = Snapshot {
            client: side(Role::Client),
            server: side(Role::Server),
        };
        for session in active {
            let sample = session.sample();
            let side = match sample.role {
                Role::Client => &mut snapshot.client,
                Role::Server => &mut snapshot.server,
            };
            side.sessions[version_index(sample.version)].1.open += 1;
            side.streams_open += sample.open_streams as u64;
            side.stats.add(&sample.stats);
            side.exchanges.add(&sample.exchanges);
        }
        // Clients accept only pushes, and servers open only pushes.
        snapshot.client.pushes = snapshot.client.stats.streams_accepted;
        snapshot.server.pushes = snapshot.server.stats.streams_opened;
        snapshot
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.0.registry.lock()
    }

    /// Registers a session.
    pub(crate) fn register(
        &self,
        session: Weak<dyn SessionSource>,
        role: Role,
        version: Version,
    ) -> Meter {
        let mut registry = self.registry();
        let key = registry.active.insert(session);
        registry.total[place(role)][version_index(version)] += 1;
        Meter {
            metrics: self.clone(),
            role,
            key: Some(key),
        }
    }
}

/// Registration of a session in the collection.
#[derive(Debug)]
pub(crate) struct Meter {
    metrics: Metrics,
    role: Role,
    /// `None` once the session was unregistered.
    key: Option<usize>,
}

impl Meter {
    /// To be called when the session's driver has ended: its counts are added to the sums.
    pub(crate) fn unregister(&mut self, stats: &Stats, exchanges: &Exchanges) {
        if let Some(key) = self.key.take() {
            let mut registry = self.metrics.registry();
            registry.active.remove(key);
            let (all_stats, all_exchanges) = &mut registry.ended[place(self.role)];
            all_stats.add(stats);
            all_exchanges.add(exchanges);
        }
    }

    /// Counts a response. The client may read it after its session has ended.
    pub(crate) fn answered(&self, status: StatusCode) {
        if self.key.is_none() {
            let mut registry = self.metrics.registry();
            registry.ended[place(self.role)].1.answered(status);
        }
    }

    /// Records the round trip of a PING.
    pub(crate) fn record_round_trip(&self, rtt: Duration) {
        self.metrics.0.round_trips[place(self.role)].add(rtt);
    }
}
