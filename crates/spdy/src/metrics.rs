//! Totals over many sessions, for any dashboard.
//!
//! ```text
//!  session ── counts for itself, under its own lock ──┐
//!  session ── ...                                     ├── snapshot(): sum of the living and the dead
//!  sessions that ended ── added up once, at their end ┘
//! ```
//!
//! So counting costs the same as without metrics: sessions share no atomics and no lock, except at the beginning and the end of a session
//! and at the answer to a PING. A [`Snapshot`] reads every living session once, a few microseconds for a hundred of them. The exporter
//! decides how often.
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

/// Collects over all sessions whose builder has it. Clones share one collection.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Inner>);

#[derive(Default)]
struct Inner {
    registry: Mutex<Registry>,
    round_trips: [AtomicRoundTrips; 2],
}

/// A session whose counters are read while it lives.
pub(crate) trait SessionSource: Send + Sync {
    /// What the session did so far.
    fn sample(&self) -> SessionSample;
}

/// The counters of one session at one moment.
pub(crate) struct SessionSample {
    pub(crate) role: Role,
    pub(crate) version: Version,
    /// Streams that are open, or wait to be.
    pub(crate) open_streams: usize,
    pub(crate) stats: Stats,
    pub(crate) exchanges: Exchanges,
}

#[derive(Default)]
struct Registry {
    /// Sessions whose driver runs.
    active: Slab<Weak<dyn SessionSource>>,
    /// Sessions so far, by role and version.
    total: [[u64; 3]; 2],
    /// What those did that are gone.
    ended: [(Stats, Exchanges); 2],
}

/// Everything at one moment. Its counters never fall from one snapshot to the next.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Sessions of which this program is the client.
    pub client: RoleMetrics,
    /// Sessions of which this program is the server.
    pub server: RoleMetrics,
}

/// The sessions of one role.
#[derive(Clone, Debug)]
pub struct RoleMetrics {
    /// How many there are and were, by version: 3.1, 3, 2.
    pub sessions: [(Version, Sessions); 3],
    /// Streams that are open now, or wait to be.
    pub streams_open: u64,
    /// What the session machines counted: frames, streams, resets, bytes, limits.
    pub stats: Stats,
    /// Requests and responses.
    pub exchanges: Exchanges,
    /// Streams that were pushed: by a server sent, by a client taken.
    pub pushes: u64,
    /// Answers to PING.
    pub round_trips: RoundTrips,
}

/// How many sessions.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Sessions {
    /// Now.
    pub open: u64,
    /// Ever.
    pub total: u64,
}

/// Requests and what became of them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Exchanges {
    /// Requests that a client made, or that came to a server.
    pub requests: u64,
    /// Their responses by the class of the status, 1xx first; last those with a status from 600 on. A request that was reset has none.
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

/// Round trips that PING measured.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RoundTrips {
    /// How many took no longer than each of [`RTT_BOUNDS_MS`], and longer than the one before; those that
    /// took longer than all come last.
    pub buckets: [u64; RTT_BOUNDS_MS.len() + 1],
    /// All of them together.
    pub sum: Duration,
}

impl RoundTrips {
    /// How many there were.
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
        // Sessions are sampled after this lock is released: they take it while they hold their own. A session that
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

/// A session's place in the collection.
#[derive(Debug)]
pub(crate) struct Meter {
    metrics: Metrics,
    role: Role,
    /// `None` once the session has left.
    key: Option<usize>,
}

impl Meter {
    /// The session's driver has ended: its counts are added to the sums.
    pub(crate) fn unregister(&mut self, stats: &Stats, exchanges: &Exchanges) {
        if let Some(key) = self.key.take() {
            let mut registry = self.metrics.registry();
            registry.active.remove(key);
            let (all_stats, all_exchanges) = &mut registry.ended[place(self.role)];
            all_stats.add(stats);
            all_exchanges.add(exchanges);
        }
    }

    /// A client may look at a response when the session that brought it is gone.
    pub(crate) fn answered(&self, status: StatusCode) {
        if self.key.is_none() {
            let mut registry = self.metrics.registry();
            registry.ended[place(self.role)].1.answered(status);
        }
    }

    /// A PING was answered.
    pub(crate) fn record_round_trip(&self, rtt: Duration) {
        self.metrics.0.round_trips[place(self.role)].add(rtt);
    }
}
