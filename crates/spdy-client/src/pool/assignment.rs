//! Assigns queued requests to connections, and opens connections for the remaining ones.

use spdy_clock::Instant;

use crate::origin::Origin;
use crate::pool::connection_pool::{Action, ConnectionId, Pool};
use crate::pool::connection_state::{Connection, Multiplexing, State};

impl Pool {
    /// [`dispatch`](Self::dispatch) for the origin of a connection, then for the origins that joined it.
    pub(super) fn dispatch_all(&mut self, now: Instant, id: ConnectionId) {
        let connection = &self.connections[&id];
        let (origin, joined_origins) =
            (connection.origin.clone(), connection.joined_origins.clone());
        self.dispatch(now, &origin);
        for joined_origin in &joined_origins {
            self.dispatch(now, joined_origin);
        }
    }

    /// Assigns requests to connections, and opens more for the remaining requests.
    pub(super) fn dispatch(&mut self, now: Instant, origin: &Origin) {
        self.assign(now, origin);
        let Some(host) = self.hosts.get_mut(origin) else {
            return;
        };
        let mut connecting = 0;
        let mut taking = 0;
        for id in &host.connections {
            match self.connections[id].state {
                State::Connecting => connecting += 1,
                State::Up { .. } => taking += 1,
                State::Draining => {}
            }
        }
        let waiting = match host.multiplexing {
            Multiplexing::Http1 => host.queue.len(),
            // One connection may accept all of them.
            _ => host.queue.len().min(1),
        };
        while connecting < waiting && connecting + taking < self.limit(origin) {
            connecting += 1;
            self.open(origin);
        }
    }

    /// The most connections that may be open or connecting to `origin`.
    pub(super) fn limit(&self, origin: &Origin) -> usize {
        match self.hosts.get(origin).map(|host| host.multiplexing) {
            Some(Multiplexing::Http1) => self.http1_connections,
            Some(Multiplexing::Multiplexed) => self.multiplexed_connections,
            _ => 1,
        }
    }

    pub(super) fn open(&mut self, origin: &Origin) {
        let connection = self.next_connection;
        self.next_connection += 1;
        if let Some(host) = self.hosts.get_mut(origin) {
            host.connections.insert(connection);
        }
        let new = Connection {
            origin: origin.clone(),
            joined_origins: Vec::new(),
            state: State::Connecting,
        };
        self.connections.insert(connection, new);
        self.actions.push_back(Action::Connect {
            connection,
            origin: origin.clone(),
        });
    }

    pub(super) fn assign(&mut self, now: Instant, origin: &Origin) {
        loop {
            let Some(host) = self.hosts.get_mut(origin) else {
                return;
            };
            if host.queue.is_empty() {
                return;
            }
            // If several have room, the most recently used one: its congestion window is the largest.
            let room = host
                .connections
                .iter()
                .filter_map(|id| match self.connections[id].state {
                    State::Up {
                        limit,
                        ceiling,
                        open,
                        idle_since,
                        idle_timeout,
                    } if open < limit.min(ceiling) => Some((idle_since, open, *id, idle_timeout)),
                    _ => None,
                });
            let Some((idle_since, open, id, idle_timeout)) =
                room.max_by_key(|(since, _, id, _)| (*since, u64::MAX - *id))
            else {
                return;
            };
            if open == 0 && now.saturating_since(idle_since) > idle_timeout {
                self.forget(id);
                self.actions.push_back(Action::Close { connection: id });
                continue;
            }
            let Some((_, request)) = host.queue.pop_first() else {
                return;
            };
            self.queued.remove(&request);
            let Some(Connection {
                state: State::Up { open, .. },
                ..
            }) = self.connections.get_mut(&id)
            else {
                unreachable!("connection {id} is not up");
            };
            *open += 1;
            self.actions.push_back(Action::Assign {
                request,
                connection: id,
            });
        }
    }
}
