//! Decides which connection each request uses: a state machine without I/O, with one queue for each origin.
//!
//! ```text
//!            enqueue                    Assign                 ended
//! request ------------> queue of its --------> on a connection -------> gone
//!                       origin (priority,          ^    |
//!                       then order)                |    | closed: the caller requests it again
//!                           | not enough           |    v
//!                           `--> Connect --> connecting --connected--> up --closing--> draining --> gone
//! ```
//!
//! If the client allows it, an origin whose connection is being opened [joins](Pool::joined) a connection of another origin instead
//! (IP pooling). An origin that was rejected there [parts](Pool::part) from it, and never joins another connection again.
//!
//! A request is assigned to a connection only when the connection can accept it, as in browsers, so a connection that becomes free
//! is used before a new one is ready. If an origin may speak a multiplexed protocol, a single connection is opened, and the other
//! requests wait for the result of ALPN. More are opened one by one if they are full and the limit allows it. For HTTP/1.1 as many
//! connections are opened as requests wait in the queue, up to a limit.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use spdy_clock::Instant;
use spdy_frame::priority::Priority;
use spdy_net::protocol::Protocol;

use crate::origin::Origin;
use crate::pool::connection_state::{Connection, Multiplexing, OriginState, State};
use crate::pool::idle_sweep::Sweep;

/// ID of a request, ascending.
pub type RequestId = u64;
/// ID of a connection, from 0 in the order of [`Action::Connect`].
pub type ConnectionId = u64;

/// An action for the caller to execute.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Action {
    /// Open a connection; report the result by [`Pool::connected`] or [`Pool::connect_failed`].
    Connect {
        /// ID of the connection.
        connection: ConnectionId,
        /// The origin to connect to.
        origin: Origin,
    },
    /// Send a request; call [`Pool::ended`] when the exchange has ended.
    Assign {
        /// ID of the request.
        request: RequestId,
        /// ID of the connection.
        connection: ConnectionId,
    },
    /// Close a connection that has been idle for too long. The pool has already removed it.
    Close {
        /// ID of the connection.
        connection: ConnectionId,
    },
}

/// The requests and connections of one client.
#[derive(Debug)]
pub struct Pool {
    pub(super) protocols: Vec<Protocol>,
    pub(super) plain_protocol: Protocol,
    pub(super) host_protocols: BTreeMap<String, Protocol>,
    pub(super) assumes_http1: bool,
    pub(super) http1_connections: usize,
    pub(super) multiplexed_connections: usize,
    pub(super) idle_timeout: Duration,
    pub(super) http1_idle_timeout: Duration,
    pub(super) hosts: BTreeMap<Origin, OriginState>,
    pub(super) connections: BTreeMap<ConnectionId, Connection>,
    pub(super) queued: BTreeMap<RequestId, (Origin, u8)>,
    pub(super) next_connection: ConnectionId,
    pub(super) actions: VecDeque<Action>,
    pub(super) sweep: Option<Sweep>,
}

impl Pool {
    /// A pool of a client that offers `protocols`, in order of preference, and opens at most `http1_connections` to an origin that
    /// speaks HTTP/1.1. A connection that was idle for longer than `idle_timeout` is not reused.
    #[must_use]
    pub fn new(protocols: &[Protocol], http1_connections: usize, idle_timeout: Duration) -> Self {
        Self {
            protocols: protocols.to_vec(),
            plain_protocol: Protocol::Http1,
            host_protocols: BTreeMap::new(),
            assumes_http1: false,
            http1_connections: http1_connections.max(1),
            multiplexed_connections: 1,
            idle_timeout,
            http1_idle_timeout: idle_timeout,
            hosts: BTreeMap::new(),
            connections: BTreeMap::new(),
            queued: BTreeMap::new(),
            next_connection: 0,
            actions: VecDeque::new(),
            sweep: None,
        }
    }

    /// Sets the protocol without TLS. The default is HTTP/1.1.
    #[must_use]
    pub fn with_plain_protocol(mut self, protocol: Protocol) -> Self {
        self.plain_protocol = protocol;
        self
    }

    /// Sets the protocols of known hosts, as in [`Config::host_protocols`](crate::config::Config::host_protocols).
    #[must_use]
    pub fn with_host_protocols(mut self, hosts: BTreeMap<String, Protocol>) -> Self {
        self.host_protocols = hosts;
        self
    }

    /// Treats https hosts as hosts of HTTP/1.1 until one of their connections is open, as
    /// [`Config::assumes_http1`](crate::config::Config::assumes_http1) describes.
    #[must_use]
    pub fn with_http1_assumed(mut self, is_assumed: bool) -> Self {
        self.assumes_http1 = is_assumed;
        self
    }

    /// Sets the limit of multiplexed connections to an origin, as in
    /// [`Config::multiplexed_connections`](crate::config::Config::multiplexed_connections).
    #[must_use]
    pub fn with_multiplexed_connections(mut self, most: usize) -> Self {
        self.multiplexed_connections = most.max(1);
        self
    }

    /// Sets the idle timeout of HTTP/1.1 connections. [`set_idle_timeout`](Self::set_idle_timeout) overrides it for a single
    /// connection.
    #[must_use]
    pub fn with_http1_idle_timeout(mut self, timeout: Duration) -> Self {
        self.http1_idle_timeout = timeout;
        self
    }

    /// The next action to execute.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Queues a request to `origin`.
    pub fn enqueue(
        &mut self,
        now: Instant,
        origin: &Origin,
        request: RequestId,
        priority: Priority,
    ) {
        self.sweep(now);
        let host = self.host(origin);
        host.queue.insert((priority.level(), request));
        self.queued
            .insert(request, (origin.clone(), priority.level()));
        self.dispatch(now, origin);
    }

    /// Opens connections to `origin` until it has `count`, within the limit of its protocol.
    pub fn preconnect(&mut self, now: Instant, origin: &Origin, count: usize) {
        self.sweep(now);
        self.host(origin);
        while self.connections_of(origin).count() < count.min(self.limit(origin)) {
            self.open(origin);
        }
    }

    /// Opens one more connection to `origin` if requests wait for its first one, within the limit of its protocol.
    pub fn open_backup(&mut self, now: Instant, origin: &Origin) {
        self.sweep(now);
        let is_waited_for = self.waiting(origin) > 0 && !self.is_connected(origin);
        if is_waited_for && self.connections_of(origin).count() < self.limit(origin) {
            self.open(origin);
        }
    }

    fn host(&mut self, origin: &Origin) -> &mut OriginState {
        let multiplexing = self.expected(origin);
        self.hosts
            .entry(origin.clone())
            .or_insert_with(|| OriginState {
                multiplexing,
                queue: BTreeSet::new(),
                connections: BTreeSet::new(),
                is_sharing_rejected: false,
            })
    }

    /// Removes a queued request. Returns `false` if it was not queued (any more).
    pub fn cancel(&mut self, request: RequestId) -> bool {
        let Some((origin, level)) = self.queued.remove(&request) else {
            return false;
        };
        if let Some(host) = self.hosts.get_mut(&origin) {
            host.queue.remove(&(level, request));
        }
        true
    }

    /// Reports that a connection is open, and accepts `limit` exchanges at a time.
    pub fn connected(&mut self, now: Instant, id: ConnectionId, protocol: Protocol, limit: usize) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        connection.state = State::Up {
            limit,
            ceiling: usize::MAX,
            open: 0,
            idle_since: now,
            idle_timeout: match protocol.is_multiplexed() {
                true => self.idle_timeout,
                false => self.http1_idle_timeout,
            },
        };
        let origin = connection.origin.clone();
        if let Some(host) = self.hosts.get_mut(&origin) {
            host.multiplexing = protocol.into();
        }
        // One that was opened before the protocol was known is not needed.
        if protocol.is_multiplexed() && self.up(&origin).count() > self.multiplexed_connections {
            self.forget(id);
            self.actions.push_back(Action::Close { connection: id });
        }
        self.dispatch(now, &origin);
    }

    /// Reports that a connection attempt failed. Returns the requests that fail with it: all queued requests of its origin, unless
    /// another connection is open or connecting and will serve them.
    pub fn connect_failed(&mut self, now: Instant, id: ConnectionId) -> Vec<RequestId> {
        let Some(Connection { origin, .. }) = self.forget(id) else {
            return Vec::new();
        };
        let Some(host) = self.hosts.get_mut(&origin) else {
            return Vec::new();
        };
        let has_alternative = host.connections.iter().any(|id| {
            matches!(
                self.connections[id].state,
                State::Up { .. } | State::Connecting
            )
        });
        if has_alternative {
            // Those connections serve the requests; another attempt now would probably fail too.
            self.assign(now, &origin);
            return Vec::new();
        }
        let lost: Vec<_> = std::mem::take(&mut host.queue)
            .into_iter()
            .map(|(_, id)| id)
            .collect();
        for request in &lost {
            self.queued.remove(request);
        }
        lost
    }

    /// Sets the limit of exchanges at a time of a connection.
    pub fn set_limit(&mut self, id: ConnectionId, new: usize) {
        if let Some(Connection {
            state: State::Up { limit, .. },
            ..
        }) = self.connections.get_mut(&id)
        {
            *limit = new;
        }
    }

    /// Sets the idle timeout of a connection; a value above that of the other connections has no effect.
    pub fn set_idle_timeout(&mut self, id: ConnectionId, timeout: Duration) {
        if let Some(Connection {
            state: State::Up { idle_timeout, .. },
            ..
        }) = self.connections.get_mut(&id)
        {
            *idle_timeout = timeout.min(self.idle_timeout);
        }
    }

    /// Number of queued requests for `origin`.
    #[must_use]
    pub fn waiting(&self, origin: &Origin) -> usize {
        self.hosts.get(origin).map_or(0, |host| host.queue.len())
    }

    /// True if a request for `origin` waits for another's HTTP/1.1 exchange to end: the limit of connections is
    /// reached.
    #[must_use]
    pub fn is_full(&self, origin: &Origin) -> bool {
        let host = self.hosts.get(origin);
        host.is_some_and(|host| host.multiplexing == Multiplexing::Http1)
            && self.waiting(origin) > 0
            && self.up(origin).count() >= self.http1_connections
    }

    /// True if a connection of `origin` is open: a queued request then waits for other exchanges to end.
    #[must_use]
    pub fn is_connected(&self, origin: &Origin) -> bool {
        self.up(origin).next().is_some()
    }

    /// Open connections of `origin`.
    fn up(&self, origin: &Origin) -> impl Iterator<Item = ConnectionId> + '_ {
        let is_up = |id: &ConnectionId| matches!(self.connections[id].state, State::Up { .. });
        self.connections_of(origin).filter(is_up)
    }

    /// Reports that the server refused an exchange as one too many. To be called before [`Self::ended`]. From now on the connection
    /// gets at most as many exchanges as the others that are open on it, or one at a time.
    pub fn refused(&mut self, id: ConnectionId) {
        if let Some(Connection {
            state: State::Up { ceiling, open, .. },
            ..
        }) = self.connections.get_mut(&id)
        {
            *ceiling = open.saturating_sub(1).clamp(1, *ceiling);
        }
    }

    /// Reports that an exchange has ended, so that its connection can accept another.
    pub fn ended(&mut self, now: Instant, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if let State::Up {
            open, idle_since, ..
        } = &mut connection.state
        {
            assert!(
                *open > 0,
                "connection {id} ended an exchange that was not open"
            );
            *open -= 1;
            *idle_since = now;
        }
        self.dispatch_all(now, id);
    }

    /// Open connections that `origin`, which has no open connection, could join as far as the pool knows: with TLS, multiplexed,
    /// and with the same port. The oldest are first.
    pub fn joinable<'a>(&'a self, origin: &'a Origin) -> impl Iterator<Item = ConnectionId> + 'a {
        let may_join = origin.secure
            && self
                .hosts
                .get(origin)
                .is_some_and(|host| !host.is_sharing_rejected);
        let fits = move |connection: &Connection| {
            let host = &connection.origin;
            matches!(connection.state, State::Up { .. })
                && (host.secure, host.port) == (true, origin.port)
                && host.without_credentials == origin.without_credentials
                && self.hosts[host].multiplexing == Multiplexing::Multiplexed
        };
        let connections = self.connections.iter();
        connections
            .filter(move |(_, connection)| may_join && fits(connection))
            .map(|(id, _)| *id)
    }

    /// Cancels the connection attempt `connecting`: its origin joins `other`. Returns `false`, and changes nothing,
    /// if `other` accepts no new origins, or rejected this one.
    pub fn joined(&mut self, now: Instant, connecting: ConnectionId, other: ConnectionId) -> bool {
        let Some(Connection {
            origin,
            state: State::Connecting,
            ..
        }) = self.connections.get(&connecting)
        else {
            return false;
        };
        let origin = origin.clone();
        if !self.joinable(&origin).any(|id| id == other) {
            return false;
        }
        self.forget(connecting);
        if let (Some(host), Some(connection)) = (
            self.hosts.get_mut(&origin),
            self.connections.get_mut(&other),
        ) && host.connections.insert(other)
        {
            host.multiplexing = Multiplexing::Multiplexed;
            connection.joined_origins.push(origin.clone());
        }
        self.dispatch(now, &origin);
        true
    }

    /// A connection of another origin rejected `joined_origin`: from now on it gets its own connections.
    pub fn part(&mut self, now: Instant, id: ConnectionId, joined_origin: &Origin) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection
                .joined_origins
                .retain(|origin| origin != joined_origin);
        }
        if let Some(host) = self.hosts.get_mut(joined_origin) {
            host.is_sharing_rejected = true;
            host.connections.remove(&id);
            self.dispatch(now, joined_origin);
        }
    }

    /// Reports that a connection accepts no new requests.
    pub fn closing(&mut self, now: Instant, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        match connection.state {
            State::Draining => return,
            State::Connecting | State::Up { .. } => connection.state = State::Draining,
        }
        self.dispatch_all(now, id);
    }

    /// Removes a connection that has closed.
    pub fn closed(&mut self, now: Instant, id: ConnectionId) {
        if let Some(removed) = self.forget(id) {
            self.dispatch(now, &removed.origin);
            for joined_origin in &removed.joined_origins {
                self.dispatch(now, joined_origin);
            }
        }
    }

    /// Removes and returns all queued requests, because the client is being closed.
    pub fn clear(&mut self) -> Vec<RequestId> {
        self.hosts.values_mut().for_each(|host| host.queue.clear());
        std::mem::take(&mut self.queued).into_keys().collect()
    }

    /// Connections of `origin` that were not removed.
    pub fn connections_of(&self, origin: &Origin) -> impl Iterator<Item = ConnectionId> + '_ {
        self.hosts
            .get(origin)
            .into_iter()
            .flat_map(|host| host.connections.iter().copied())
    }

    /// The origin that a connection was opened for, if the connection was not removed.
    #[must_use]
    pub fn origin_of(&self, id: ConnectionId) -> Option<&Origin> {
        self.connections
            .get(&id)
            .map(|connection| &connection.origin)
    }

    /// The multiplexing of an origin without a connection so far, by the configuration.
    fn expected(&self, origin: &Origin) -> Multiplexing {
        let configured = self.host_protocols.get(&origin.host);
        let preferred = configured.or(self.protocols.first());
        if self.assumes_http1 && origin.secure && !preferred.is_some_and(|it| it.is_over_quic()) {
            return Multiplexing::Http1;
        }
        if let Some(&protocol) = configured {
            return protocol.into();
        }
        if !origin.secure {
            return self.plain_protocol.into();
        }
        let mut protocols = self
            .protocols
            .iter()
            .map(|&protocol| Multiplexing::from(protocol));
        let first = protocols.next().unwrap_or(Multiplexing::Http1);
        match protocols.any(|other| other != first) {
            true => Multiplexing::Unknown,
            false => first,
        }
    }

    pub(super) fn forget(&mut self, id: ConnectionId) -> Option<Connection> {
        let connection = self.connections.remove(&id)?;
        for origin in connection.joined_origins.iter().chain([&connection.origin]) {
            if let Some(host) = self.hosts.get_mut(origin) {
                host.connections.remove(&id);
            }
        }
        Some(connection)
    }
}
