//! The limits of connections, of any protocol, by name, and how often each was reached.
//!
//! The limits of a SPDY session are in [`spdy::Limit`]. Those here apply before and around it: which peers may
//! connect, and how slow a peer may be. The rule for names is the same: the option's own.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A limit on connections.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum ConnectionLimit {
    /// Connections open at once; the next waits in the kernel's queue.
    MaxConnections,
    /// With all places taken, a connection that had nothing to do; it was ended in order for one that waits.
    IdleEviction,
    /// Connections open at once from one address; the next is closed unheard.
    ConnectionsPerAddress,
    /// New connections a second from one address; the next is closed unheard.
    ConnectionRate,
    /// Connections of one address that went past a limit and were ended for it; the next is closed unheard.
    AbusesPerAddress,
    /// From accepting a connection to knowing what it speaks; it is closed.
    HandshakeTimeout,
    /// From the first byte of an HTTP/1.1 head to its last; the connection is closed.
    HeadTimeout,
    /// A request's body of which nothing comes; its reading fails.
    ReadTimeout,
    /// A connection, or a stream, that takes nothing; it is given up.
    WriteTimeout,
    /// A request's body that trickles; its reading fails.
    MinReadRate,
    /// A connection, or a stream, that takes a trickle; it is given up.
    MinWriteRate,
    /// Frames of HTTP/3 that carry nothing; the connection ends.
    FloodEmptyFrames,
    /// Streams of HTTP/3 that were given up, or had to be reset, before their answers were
    /// complete; the connection ends.
    FloodAbortedStreams,
}

impl ConnectionLimit {
    /// All of them, in the order of the enum.
    pub const ALL: [Self; 13] = [
        Self::MaxConnections,
        Self::IdleEviction,
        Self::ConnectionsPerAddress,
        Self::ConnectionRate,
        Self::AbusesPerAddress,
        Self::HandshakeTimeout,
        Self::HeadTimeout,
        Self::ReadTimeout,
        Self::WriteTimeout,
        Self::MinReadRate,
        Self::MinWriteRate,
        Self::FloodEmptyFrames,
        Self::FloodAbortedStreams,
    ];

    /// Its name, which stays as it is: dashboards are made of them.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MaxConnections => "max_connections",
            Self::IdleEviction => "idle_eviction",
            Self::ConnectionsPerAddress => "connections_per_address",
            Self::ConnectionRate => "connection_rate",
            Self::AbusesPerAddress => "abuses_per_address",
            Self::HandshakeTimeout => "handshake_timeout",
            Self::HeadTimeout => "head_timeout",
            Self::ReadTimeout => "read_timeout",
            Self::WriteTimeout => "write_timeout",
            Self::MinReadRate => "min_read_rate",
            Self::MinWriteRate => "min_write_rate",
            Self::FloodEmptyFrames => "flood_empty_frames",
            Self::FloodAbortedStreams => "flood_aborted_streams",
        }
    }
}

impl fmt::Display for ConnectionLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How often each limit was met, over many connections. Clones count together.
#[derive(Clone, Default)]
pub struct LimitHits(Arc<[AtomicU64; ConnectionLimit::ALL.len()]>);

impl LimitHits {
    /// `limit` was met once more.
    pub fn count(&self, limit: ConnectionLimit) {
        self.0[limit as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How often `limit` was met.
    #[must_use]
    pub fn of(&self, limit: ConnectionLimit) -> u64 {
        self.0[limit as usize].load(Ordering::Relaxed)
    }

    /// The limits that were met, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (ConnectionLimit, u64)> + '_ {
        let all = ConnectionLimit::ALL.into_iter();
        all.map(|limit| (limit, self.of(limit)))
            .filter(|(_, hits)| *hits > 0)
    }
}

impl fmt::Debug for LimitHits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
