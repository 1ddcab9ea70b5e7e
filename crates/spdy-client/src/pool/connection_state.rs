//! What the pool knows of each origin and of each connection.

use std::collections::BTreeSet;
use std::time::Duration;

use spdy_clock::Instant;
use spdy_net::protocol::Protocol;

use crate::origin::Origin;
use crate::pool::connection_pool::{ConnectionId, RequestId};

/// Whether an origin's protocol is multiplexed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Multiplexing {
    /// Known after the first connection.
    Unknown,
    /// One exchange at a time on each connection.
    Http1,
    /// Many exchanges at a time.
    Multiplexed,
}

impl From<Protocol> for Multiplexing {
    fn from(protocol: Protocol) -> Self {
        if protocol.is_multiplexed() {
            Self::Multiplexed
        } else {
            Self::Http1
        }
    }
}

#[derive(Debug)]
pub(super) struct OriginState {
    pub(super) multiplexing: Multiplexing,
    /// By priority level, then by order.
    pub(super) queue: BTreeSet<(u8, RequestId)>,
    /// Its own connections, and those that it joined.
    pub(super) connections: BTreeSet<ConnectionId>,
    /// True after a connection of another origin rejected it.
    pub(super) is_sharing_rejected: bool,
}

#[derive(Debug)]
pub(super) enum State {
    Connecting,
    Up {
        limit: usize,
        /// Number of open exchanges when the server refused one more.
        ceiling: usize,
        open: usize,
        idle_since: Instant,
        /// How long the connection may be idle before it is reused.
        idle_timeout: Duration,
    },
    /// Accepts no new requests.
    Draining,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) origin: Origin,
    /// Origins that joined this connection, in order.
    pub(super) joined_origins: Vec<Origin>,
    pub(super) state: State,
}
