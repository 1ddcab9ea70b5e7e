//! The client's connections: executes the actions of the [`Pool`], connects, assigns leases, and closes.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};
use spdy::runtime::SharedRuntime;
use spdy_frame::priority::Priority;
use spdy_net::connection::Connection;
use spdy_net::tls::PeerCertificates;
use tokio::sync::oneshot;

use crate::client::stats::{Stats, with_wire_bytes};
use crate::config::Config;
use crate::connect::{ConnectOutcome, Connector, EstablishedConnection, Phases};
use crate::error::Error;
use crate::origin::Origin;
use crate::pool::{Action, ConnectionId, Pool, RequestId};
use crate::route::Route;

/// The state that all clones of the client share.
pub(super) struct Inner {
    pub(super) runtime: SharedRuntime,
    pub(super) config: Arc<Config>,
    pub(super) connector: Connector,
    pub(super) state: Mutex<State>,
}

/// The state under the lock.
pub(super) struct State {
    pub(super) pool: Pool,
    pub(super) next_request: RequestId,
    pub(super) waiting: BTreeMap<RequestId, oneshot::Sender<Result<Lease, Error>>>,
    pub(super) live: BTreeMap<ConnectionId, LiveConnection>,
    /// Includes the header bytes of connections that are closed.
    pub(super) stats: Stats,
    pub(super) is_closed: bool,
}

/// An open connection.
pub(super) struct LiveConnection {
    pub(super) connection: Connection,
    /// The origin that it was opened for.
    pub(super) origin: Arc<Origin>,
    pub(super) route: Route,
    pub(super) certificates: Option<PeerCertificates>,
    /// For the first exchange on the connection.
    pub(super) phases: Option<Phases>,
}

/// A slot for one exchange on a connection. Dropping it frees the slot.
pub(crate) struct Lease {
    pub(super) inner: Arc<Inner>,
    pub(super) id: ConnectionId,
    pub(super) connection: Connection,
    /// The origin that the connection was opened for.
    pub(super) opened_for: Arc<Origin>,
    pub(super) route: Route,
    pub(super) phases: Phases,
}

impl Drop for Lease {
    fn drop(&mut self) {
        let (inner, id) = (self.inner.clone(), self.id);
        if self.route.protocol.is_multiplexed() {
            inner.ended(id);
            return;
        }
        // HTTP/1.1 needs some time between the end of a body and the next request.
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

/// Work to do after the state is unlocked.
pub(super) enum Step {
    Connect(ConnectionId, Origin),
    Close(Connection),
    Give(Option<oneshot::Sender<Result<Lease, Error>>>, Lease),
}

/// A queued request. Dropping it removes it from the queue.
pub(super) struct QueuedRequest {
    pub(super) inner: Arc<Inner>,
    pub(super) id: RequestId,
    pub(super) lease: oneshot::Receiver<Result<Lease, Error>>,
}

impl Drop for QueuedRequest {
    fn drop(&mut self) {
        let sender = {
            let mut state = self.inner.lock();
            state.pool.cancel(self.id);
            state.waiting.remove(&self.id)
        };
        drop(sender); // with its lease, if it has one, whose drop takes the lock too
    }
}

impl Inner {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Queues a request for `origin`.
    pub(super) fn enqueue(
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
                reason: "too many requests are queued",
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

    /// Executes the actions of the pool. They are taken out under the same lock under which they were decided, so that a chosen
    /// connection cannot be closed before its request has it.
    pub(super) fn apply_pool_actions(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
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
                        panic!("request {request} was assigned to connection {connection}, which is not up")
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
                // The caller may be gone: the lease is then dropped, and the connection is free again.
                Step::Give(None, lease) => drop(lease),
                Step::Give(Some(waiting), lease) => drop(waiting.send(Ok(lease))),
            }
        }
    }

    /// Connects in a separate task, because the request may get another connection first, or be dropped.
    pub(super) fn connect(self: &Arc<Self>, id: ConnectionId, origin: Origin) {
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
                    // The shared connection closed, or became full, in the meantime.
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

    /// A connection of another origin that `origin`, with these addresses, may use.
    pub(super) fn find_shareable(
        &self,
        origin: &Origin,
        addresses: &[IpAddr],
    ) -> Option<ConnectionId> {
        let tls = self.config.tls.as_ref()?;
        let state = self.lock();
        let candidates = state.pool.joinable(origin).filter_map(|id| {
            let live = state.live.get(&id)?;
            let is_there = addresses.contains(&live.route.address.ip());
            if !is_there || live.connection.is_closing() {
                return None;
            }
            let shown = live.certificates.clone();
            let shown = shown.or_else(|| live.connection.peer_certificates())?;
            Some((id, shown))
        });
        let candidates: Vec<_> = candidates.collect();
        drop(state); // signatures are verified without the lock
        let mut fit = candidates
            .into_iter()
            .filter(|(_, shown)| tls.would_trust(shown, &origin.host));
        fit.next().map(|(id, _)| id)
    }

    /// Replaces the pending connection `id` by the open connection `other`; `false` if that is no longer possible.
    pub(super) fn join(self: &Arc<Self>, id: ConnectionId, other: ConnectionId) -> bool {
        let mut state = self.lock();
        let joined = state.pool.joined(self.runtime.now(), id, other);
        state.stats.shared += u64::from(joined);
        self.apply_pool_actions(state);
        joined
    }

    pub(super) fn handle_connected(
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

    pub(super) fn handle_connect_failed(self: &Arc<Self>, id: ConnectionId, error: &Error) {
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

    /// To be called when an exchange has ended and its connection stays open.
    pub(super) fn ended(self: &Arc<Self>, id: ConnectionId) {
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

    /// Removes a connection that has closed.
    pub(super) fn handle_closed(self: &Arc<Self>, id: ConnectionId) {
        let mut state = self.lock();
        state.pool.closed(self.runtime.now(), id);
        let removed = state.remove(id);
        self.apply_pool_actions(state);
        drop(removed);
    }
}

impl State {
    /// Reports to the pool which connections of `origin` accept no new requests, and the limits of the others.
    pub(super) fn update_pool_limits(&mut self, now: spdy_clock::Instant, origin: &Origin) {
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

    /// Removes a connection, and keeps its counts.
    pub(super) fn remove(&mut self, id: ConnectionId) -> Option<LiveConnection> {
        let removed = self.live.remove(&id)?;
        self.stats = with_wire_bytes(self.stats, removed.connection.header_bytes());
        Some(removed)
    }
}
