//! The client's handle: sends requests, and returns counters and unclaimed pushes.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::select;
use http::{Request, Response};
use parking_lot::Mutex;
use spdy::body::Body;
use spdy::client::Push;
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_frame::priority::Priority;
use spdy_net::connection::Connection;
use spdy_net::network::SharedNetwork;

use crate::answered_addresses::AnsweredAddresses;
use crate::client::connections::{Inner, State};
use crate::client::stats::{Stats, with_wire_bytes};
use crate::config::Config;
use crate::connect::Connector;
use crate::dns::Dns;
use crate::error::Error;
use crate::origin::Origin;
use crate::pool::Pool;
use crate::route::Route;

/// A push that no request claimed.
#[derive(Debug)]
#[non_exhaustive]
pub struct UnclaimedPush {
    /// Number of its connection, as in [`Timings`](crate::timing::Timings).
    pub connection: usize,
    /// The connection that it arrived on.
    pub route: Route,
    /// The push.
    pub push: Push,
}

/// A client. It is cheap to clone, and all clones share the connections.
#[derive(Clone)]
pub struct Client {
    pub(super) inner: Arc<Inner>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Creates a client on `runtime` that connects and resolves names with `network`.
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
            tls_without_credentials: Arc::default(),
            answered: AnsweredAddresses::default(),
            config: config.clone(),
        };
        let pool = Pool::new(
            &config.protocols,
            config.http1_connections,
            config.idle_timeout,
        )
        .with_plain_protocol(config.plain_protocol)
        .with_host_protocols(config.host_protocols.clone())
        .with_http1_assumed(config.assumes_http1)
        .with_multiplexed_connections(config.multiplexed_connections);
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

    /// Sends `request`, whose URI must be absolute. The response's extensions contain its [`Timings`](crate::timing::Timings) and its
    /// [`Route`].
    ///
    /// Requests that must wait (six connections busy, connection not open yet, session full) are ordered by priority, then by the
    /// order of these calls: the request is queued by this call, not by the first poll.
    ///
    /// `None` is [`Priority::HIGHEST`]. HTTP/2 and HTTP/3 send the priority as the header field `priority: u=N` (RFC 9218). A `priority` field of `request` is kept
    /// instead. HTTP/1.1 and SPDY send such a field like any other.
    pub fn send(
        &self,
        request: Request<Body>,
        priority: impl Into<Option<Priority>>,
    ) -> BoxFuture<Result<Response<Body>, Error>> {
        let priority = priority.into().unwrap_or_default();
        let origin = match Origin::of_request(&request) {
            Ok(origin) => origin,
            Err(error) => return Box::pin(async { Err(error) }),
        };
        let queued = self.inner.enqueue(&origin, priority);
        let inner = self.inner.clone();
        Box::pin(async move { inner.exchange(origin, request, priority, queued?).await })
    }

    /// Opens connections to `origin` before there are requests, until it has `count`; fewer if its protocol needs fewer.
    pub fn preconnect(&self, origin: &Origin, count: usize) {
        let mut state = self.inner.lock();
        if !state.is_closed {
            let now = self.inner.runtime.now();
            state.pool.preconnect(now, origin, count);
            self.inner.apply_pool_actions(state);
        }
    }

    /// Opens one more connection to `origin` if requests wait for its first one, as browsers do when that takes long. Returns `false` if
    /// its name is still being resolved: then nothing can be opened yet.
    pub fn open_backup(&self, origin: &Origin) -> bool {
        if !self.inner.connector.dns.is_resolved(origin) {
            return false;
        }
        let mut state = self.inner.lock();
        if !state.is_closed {
            let now = self.inner.runtime.now();
            state.pool.open_backup(now, origin);
            self.inner.apply_pool_actions(state);
        }
        true
    }

    /// Resolves the name of `origin` before there are requests.
    pub fn prefetch_name(&self, origin: &Origin) {
        if !self.inner.lock().is_closed {
            self.inner.connector.dns.prefetch(origin);
        }
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

    /// The counters so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let state = self.inner.lock();
        let live = state
            .live
            .values()
            .map(|live| live.connection.header_bytes());
        live.fold(state.stats, with_wire_bytes)
    }

    /// Takes the pushes that no request has claimed so far, by connection and then in order of arrival. Dropping a push cancels it.
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

    /// Closes every connection in order: queued requests fail, open exchanges are completed first.
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
