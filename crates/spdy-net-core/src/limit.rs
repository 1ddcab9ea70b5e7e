//! The limits of connections, of any protocol, by name, and how often each was reached.
//!
//! The limits of a SPDY session are in [`spdy::Limit`]. The limits here apply before and around it: which peers may connect, and
//! how slow a peer may be. They are also named after their options.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A limit on connections.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum ConnectionLimit {
    /// Connections open at once; the next waits in the kernel's queue.
    MaxConnections,
    /// With all slots taken, an idle connection that was closed in order for a waiting one.
    IdleEviction,
    /// Connections open at once from one address; the next is closed unread.
    ConnectionsPerAddress,
    /// New connections a second from one address; the next is closed unread.
    ConnectionRate,
    /// Connections of one address that were closed for abuse; the next is closed unread.
    AbusesPerAddress,
    /// From accepting a connection to knowing its protocol; it is closed.
    HandshakeTimeout,
    /// From the first byte of an HTTP/1.1 head to its last; the connection is closed.
    HeadTimeout,
    /// A request's body of which nothing arrives; reading it fails.
    ReadTimeout,
    /// A connection, or a stream, whose peer accepts nothing; it is closed or reset.
    WriteTimeout,
    /// A request's body that arrives too slowly; reading it fails.
    MinReadRate,
    /// A connection, or a stream, whose peer accepts bytes too slowly; it is closed or reset.
    MinWriteRate,
    /// Frames of HTTP/3 that carry nothing; the connection ends.
    FloodEmptyFrames,
    /// HTTP/3 streams that were cancelled, or had to be reset, before their responses were complete; the connection ends.
    FloodAbortedStreams,
}

impl ConnectionLimit {
    /// All limits, in the order of the enum.
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

    /// The name. Names are stable, because dashboards use them.
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

/// How often each limit was reached, over many connections. Clones share the counts.
#[derive(Clone, Default)]
pub struct LimitHits(Arc<[AtomicU64; ConnectionLimit::ALL.len()]>);

impl LimitHits {
    /// Counts one more hit of `limit`.
    pub fn count(&self, limit: ConnectionLimit) {
        self.0[limit as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How often `limit` was reached.
    #[must_use]
    pub fn of(&self, limit: ConnectionLimit) -> u64 {
        self.0[limit as usize].load(Ordering::Relaxed)
    }

    /// The limits that were reached, with their counts.
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
