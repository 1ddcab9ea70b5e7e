//! The client: one request in, one response out, over the connections it keeps.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! use std::sync::Arc;
//!
//! use spdy::{Body, Priority, SharedRuntime, TokioRuntime};
//! use spdy_client::client::{Client, Config};
//! use spdy_net::network::SystemNetwork;
//!
//! let runtime = SharedRuntime::new(TokioRuntime::start());
//! let client = Client::new(runtime, Arc::new(SystemNetwork), Config::default());
//! let request = http::Request::get("http://localhost:8080/").body(Body::empty())?;
//! let response = client.send(request, Priority::HIGHEST).await?;
//! let body = response.into_body().collect_up_to(1 << 20).await?;
//! # drop(body);
//! # Ok(())
//! # }
//! ```
//!
//! Who goes where is decided by the [`Pool`]; here its actions are carried out.

mod attempt;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Weak};

use futures_util::future::select;
use http::{Request, Response};
use parking_lot::{Mutex, MutexGuard};
use spdy::body::Body;
use spdy::client::Push;
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_frame::priority::Priority;
use spdy_net::connection::Connection;
use spdy_net::header_bytes::HeaderBytes;
use spdy_net::network::SharedNetwork;
use spdy_net::tls::PeerCertificates;
use tokio::sync::oneshot;

pub use crate::config::Config;
use crate::connect::{ConnectOutcome, Connector, EstablishedConnection, Phases};
use crate::dns::Dns;
use crate::error::Error;
use crate::origin::Origin;
use crate::pool::{Action, ConnectionId, Pool, RequestId};
use crate::route::Route;

/// What the client did so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Stats {
    /// Connections that stood, TLS included.
    pub connections: u64,
    /// Of those, how many took up an earlier TLS session.
    pub resumed: u64,
    /// Origins that used a connection of another instead of one of their own.
    pub shared: u64,
    /// Requests handed to a connection; one that is sent again counts again.
    pub requests: u64,
    /// Heads of requests as HTTP/1.1 text, bytes.
    pub request_header_bytes: u64,
    /// The same as on the wire (SPDY: block bytes; h2: HEADERS and CONTINUATION payloads; h1: the text itself).
    pub request_header_bytes_wire: u64,
    /// Heads of responses as HTTP/1.1 text, bytes.
    pub response_header_bytes: u64,
    /// The same as on the wire.
    pub response_header_bytes_wire: u64,
}

/// A push that no request claimed.
#[derive(Debug)]
pub struct UnclaimedPush {
    /// Number of its connection, as in [`Timings`](crate::timing::Timings).
    pub connection: usize,
    /// The way it came.
    pub route: Route,
    /// The push.
    pub push: Push,
}

/// Clone it freely; all clones share the connections.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

struct Inner {
    runtime: SharedRuntime,
    config: Arc<Config>,
    connector: Connector,
    state: Mutex<State>,
}

struct State {
    pool: Pool,
    next_request: RequestId,
    waiting: BTreeMap<RequestId, oneshot::Sender<Result<Lease, Error>>>,
    live: BTreeMap<ConnectionId, LiveConnection>,
    /// Header bytes of connections that are gone are in here.
    stats: Stats,
    is_closed: bool,
}

/// A connection that stands.
struct LiveConnection {
    connection: Connection,
    /// Whom it was opened for.
    origin: Arc<Origin>,
    route: Route,
    certificates: Option<PeerCertificates>,
    /// For the first exchange on it.
    phases: Option<Phases>,
}

/// A place on a connection. Dropped, it is free for the next.
pub(crate) struct Lease {
    inner: Arc<Inner>,
    id: ConnectionId,
    connection: Connection,
    /// Whom the connection was opened for.
    opened_for: Arc<Origin>,
    route: Route,
    phases: Phases,
}

impl Drop for Lease {
    fn drop(&mut self) {
        let (inner, id) = (self.inner.clone(), self.id);
        if self.route.protocol.is_multiplexed() {
            inner.ended(id);
            return;
        }
        // HTTP/1.1 needs a moment between the end of a body and the next request.
        let ready = self.connection.ready();
        self.inner.runtime.spawn(Box::pin(async move {
            if ready.await {
                inner.ended(id);
            } else {
                inner.handle_closed(id);
            }
        }));
    }
}

/// One thing to do once the state is unlocked again.
enum Step {
    Connect(ConnectionId, Origin),
    Close(Connection),
    Give(Option<oneshot::Sender<Result<Lease, Error>>>, Lease),
}

/// A request in the queue. Dropped, it leaves it.
struct QueuedRequest {
    inner: Arc<Inner>,
    id: RequestId,
    lease: oneshot::Receiver<Result<Lease, Error>>,
}

impl Drop for QueuedRequest {
    fn drop(&mut self) {
        let gone = {
            let mut state = self.inner.lock();
            state.pool.cancel(self.id);
            state.waiting.remove(&self.id)
        };
        drop(gone); // with its lease, if it has one, which wants the lock too
    }
}

impl Client {
    /// A client on `runtime` whose bytes and names come from `network`.
    #[must_use]
    pub fn new(runtime: SharedRuntime, network: SharedNetwork, config: Config) -> Self {
        let config = Arc::new(config);
        let dns = Dns::new(
            runtime.clone(),
            network.clone(),
            config.dns_ttl,
            &config.resolve,
            &config.aliases,
        );
        let connector = Connector {
            runtime: runtime.clone(),
            network,
            dns,
            config: config.clone(),
        };
        let pool = Pool::new(
            &config.protocols,
            config.http1_connections,
            config.idle_timeout,
        )
        .with_plain_protocol(config.plain_protocol)
        .with_host_protocols(config.host_protocols.clone());
        let pool = match config.http1_idle_timeout {
            Some(timeout) => pool
                .with_http1_idle_timeout(timeout)
                .with_sweep_interval(config.idle_timeout),
            None => pool,
        };
        let state = State {
            pool,
            next_request: 0,
            waiting: BTreeMap::new(),
            live: BTreeMap::new(),
            stats: Stats::default(),
            is_closed: false,
        };
        let inner = Inner {
            runtime,
            config,
            connector,
            state: Mutex::new(state),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Sends `request`, whose URI is absolute. The response's extensions hold its
    /// [`Timings`](crate::timing::Timings) and its [`Route`].
    ///
    /// Requests that must wait (six connections busy, session still being set up, session full) go by
    /// priority, then in the order of these calls: the queue is entered here, not at the first poll.
    pub fn send(
        &self,
        request: Request<Body>,
        priority: Priority,
    ) -> BoxFuture<Result<Response<Body>, Error>> {
        let origin = match Origin::of(request.uri()) {
            Ok(origin) => origin,
            Err(error) => return Box::pin(async { Err(error) }),
        };
        let queued = self.inner.enqueue(&origin, priority);
        let inner = self.inner.clone();
        Box::pin(async move { inner.exchange(origin, request, priority, queued?).await })
    }

    /// True if a request for `origin` waits for another's HTTP/1.1 exchange to end: the limit of connections is
    /// reached.
    #[must_use]
    pub fn is_full(&self, origin: &Origin) -> bool {
        self.inner.lock().pool.is_full(origin)
    }

    pub(crate) fn connector(&self) -> &Connector {
        &self.inner.connector
    }

    /// What was done so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let state = self.inner.lock();
        let live = state
            .live
            .values()
            .map(|live| live.connection.header_bytes());
        live.fold(state.stats, with_wire_bytes)
    }

    /// What was pushed, and no request has claimed so far, by connection and then in the order in which it
    /// came; dropped, it is cancelled.
    #[must_use]
    pub fn take_pushes(&self) -> Vec<UnclaimedPush> {
        let state = self.inner.lock();
        let live: Vec<_> = state
            .live
            .iter()
            .map(|(id, live)| (*id, live.route, live.connection.clone()))
            .collect();
        drop(state);
        let mut all = Vec::new();
        for (id, route, connection) in live {
            all.extend(
                connection
                    .take_pushes()
                    .into_iter()
                    .map(|push| UnclaimedPush {
                        connection: usize::try_from(id).unwrap_or(usize::MAX),
                        route,
                        push,
                    }),
            );
        }
        all
    }

    /// Ends every connection in order: requests in the queue fail, exchanges that are open end first.
    pub async fn close(&self) {
        let connections: Vec<Connection> = {
            let mut state = self.inner.lock();
            state.is_closed = true;
            let lost = state.pool.clear();
            let waiting: Vec<_> = lost
                .iter()
                .filter_map(|request| state.waiting.remove(request))
                .collect();
            let live = state
                .live
                .values()
                .map(|live| live.connection.clone())
                .collect();
            drop(state);
            for request in waiting {
                let _ = request.send(Err(Error::Closed));
            }
            live
        };
        let ended: Vec<_> = connections.iter().map(Connection::closed).collect();
        connections.iter().for_each(Connection::close);
        drop(connections);
        let all = Box::pin(async {
            for connection in ended {
                connection.await;
            }
        });
        let runtime = &self.inner.runtime;
        let deadline = runtime.sleep_until(runtime.now() + self.inner.config.close_timeout);
        select(all, deadline).await;
    }
}

fn with_wire_bytes(mut stats: Stats, bytes: HeaderBytes) -> Stats {
    stats.request_header_bytes_wire += bytes.sent;
    stats.response_header_bytes_wire += bytes.received;
    stats
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Puts a request in the queue of `origin`.
    fn enqueue(
        self: &Arc<Self>,
        origin: &Origin,
        priority: Priority,
    ) -> Result<QueuedRequest, Error> {
        let (sender, lease) = oneshot::channel();
        let mut state = self.lock();
        if state.is_closed {
            return Err(Error::Closed);
        }
        if state.pool.waiting(origin) >= self.config.max_queued {
            return Err(Error::Full {
                origin: origin.clone(),
                why: "too many wait for one",
            });
        }
        let id = state.next_request;
        state.next_request += 1;
        state.waiting.insert(id, sender);
        let now = self.runtime.now();
        state.update_pool_limits(now, origin);
        state.pool.enqueue(now, origin, id, priority);
        self.apply_pool_actions(state);
        Ok(QueuedRequest {
            inner: self.clone(),
            id,
            lease,
        })
    }

    /// Carries out what the pool decided. The decisions are taken out under the very lock under which
    /// they were made: a connection that was chosen cannot be gone before its request has it.
    fn apply_pool_actions(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        let mut steps = Vec::new();
        while let Some(action) = state.pool.poll_action() {
            steps.push(match action {
                Action::Connect { connection, origin } => Step::Connect(connection, origin),
                Action::Close { connection } => match state.remove(connection) {
                    Some(live) => Step::Close(live.connection),
                    None => continue,
                },
                Action::Assign { request, connection } => {
                    let live = state.live.get_mut(&connection).unwrap_or_else(|| {
                        panic!("request {request} was given to connection {connection}, which is not up")
                    });
                    let lease = Lease {
                        inner: self.clone(),
                        id: connection,
                        connection: live.connection.clone(),
                        opened_for: live.origin.clone(),
                        route: live.route,
                        phases: live.phases.take().unwrap_or_default(),
                    };
                    Step::Give(state.waiting.remove(&request), lease)
                }
            });
        }
        drop(state);
        for step in steps {
            match step {
                Step::Connect(id, origin) => self.connect(id, origin),
                Step::Close(connection) => connection.close(),
                // The caller may be gone: then the lease is dropped, and the connection is free again.
                Step::Give(None, lease) => drop(lease),
                Step::Give(Some(waiting), lease) => drop(waiting.send(Ok(lease))),
            }
        }
    }

    /// Connects in a task of its own: the request may get another connection first, or be dropped.
    fn connect(self: &Arc<Self>, id: ConnectionId, origin: Origin) {
        let (weak, connector) = (Arc::downgrade(self), self.connector.clone());
        self.runtime.spawn(Box::pin(async move {
            let mut may_share = connector.config.ip_pooling;
            loop {
                let share = |addresses: &[IpAddr]| {
                    let inner = weak.upgrade().filter(|_| may_share)?;
                    inner.find_shareable(&origin, addresses)
                };
                let reached = connector.connect(&origin, id, share).await;
                let Some(inner) = Weak::upgrade(&weak) else {
                    return;
                };
                match reached {
                    Ok(ConnectOutcome::New(connected)) => {
                        inner.handle_connected(id, origin, *connected);
                    }
                    Ok(ConnectOutcome::Shared(other)) if inner.join(id, other) => {}
                    // It closed, or filled up, in between.
                    Ok(ConnectOutcome::Shared(_)) => {
                        may_share = false;
                        continue;
                    }
                    Err(error) => inner.handle_connect_failed(id, &error),
                }
                return;
            }
        }));
    }

    /// A connection of another origin that `origin`, which lives at `addresses`, may use.
    fn find_shareable(&self, origin: &Origin, addresses: &[IpAddr]) -> Option<ConnectionId> {
        let tls = self.config.tls.as_ref()?;
        let state = self.lock();
        let standing = state.pool.joinable(origin).filter_map(|id| {
            let live = state.live.get(&id)?;
            let is_there = addresses.contains(&live.route.address.ip());
            let shown = live.certificates.clone().filter(|_| is_there)?;
            (!live.connection.is_closing()).then_some((id, shown))
        });
        let standing: Vec<_> = standing.collect();
        drop(state); // signatures are checked without it
        let mut fit = standing
            .into_iter()
            .filter(|(_, shown)| tls.would_trust(shown, &origin.host));
        fit.next().map(|(id, _)| id)
    }

    /// Gives up connecting `id` for a connection that stands; `false` if that is no longer possible.
    fn join(self: &Arc<Self>, id: ConnectionId, other: ConnectionId) -> bool {
        let mut state = self.lock();
        let joined = state.pool.joined(self.runtime.now(), id, other);
        state.stats.shared += u64::from(joined);
        self.apply_pool_actions(state);
        joined
    }

    fn handle_connected(
        self: &Arc<Self>,
        id: ConnectionId,
        origin: Origin,
        connected: EstablishedConnection,
    ) {
        let EstablishedConnection {
            connection,
            phases,
            route,
            certificates: shown,
        } = connected;
        let closed = connection.closed();
        let mut state = self.lock();
        state.stats.connections += 1;
        state.stats.resumed += u64::from(route.tls.is_some_and(|tls| tls.resumed));
        if state.is_closed {
            drop(state);
            connection.close();
            return;
        }
        let limit = connection.limit();
        state.live.insert(
            id,
            LiveConnection {
                connection,
                origin: Arc::new(origin),
                route,
                certificates: shown,
                phases: Some(phases),
            },
        );
        state
            .pool
            .connected(self.runtime.now(), id, route.protocol, limit);
        self.apply_pool_actions(state);
        let weak = Arc::downgrade(self);
        self.runtime.spawn(Box::pin(async move {
            closed.await;
            if let Some(inner) = weak.upgrade() {
                inner.handle_closed(id);
            }
        }));
    }

    fn handle_connect_failed(self: &Arc<Self>, id: ConnectionId, error: &Error) {
        let mut state = self.lock();
        let lost = state.pool.connect_failed(self.runtime.now(), id);
        let waiting: Vec<_> = lost
            .iter()
            .filter_map(|request| state.waiting.remove(request))
            .collect();
        self.apply_pool_actions(state);
        tracing::debug!(connection = id, %error, requests = waiting.len(), "no connection");
        for request in waiting {
            let _ = request.send(Err(error.clone()));
        }
    }

    /// An exchange is over and its connection goes on.
    fn ended(self: &Arc<Self>, id: ConnectionId) {
        let mut state = self.lock();
        let now = self.runtime.now();
        let State { live, pool, .. } = &mut *state;
        if let Some(live) = live.get(&id) {
            if live.connection.is_closing() {
                pool.closing(now, id);
            } else {
                pool.set_limit(id, live.connection.limit());
            }
        }
        pool.ended(now, id);
        self.apply_pool_actions(state);
    }

    /// A connection is gone.
    fn handle_closed(self: &Arc<Self>, id: ConnectionId) {
        let mut state = self.lock();
        state.pool.closed(self.runtime.now(), id);
        let gone = state.remove(id);
        self.apply_pool_actions(state);
        drop(gone);
    }
}

impl State {
    /// Tells the pool which connections of `origin` take nothing new, and how much the others take.
    fn update_pool_limits(&mut self, now: spdy_clock::Instant, origin: &Origin) {
        let ids: Vec<_> = self.pool.connections_of(origin).collect();
        for id in ids {
            let Some(live) = self.live.get(&id) else {
                continue;
            };
            if live.connection.is_closing() {
                self.pool.closing(now, id);
            } else {
                self.pool.set_limit(id, live.connection.limit());
            }
        }
    }

    /// Takes a connection out, keeping its counts.
    fn remove(&mut self, id: ConnectionId) -> Option<LiveConnection> {
        let gone = self.live.remove(&id)?;
        self.stats = with_wire_bytes(self.stats, gone.connection.header_bytes());
        Some(gone)
    }
}
