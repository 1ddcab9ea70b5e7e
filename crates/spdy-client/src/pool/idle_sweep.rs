//! Removes connections of all origins that were idle for too long. Otherwise an origin without further requests would keep its
//! connections until their servers close them, and would stay in the pool forever.

use std::time::Duration;

use spdy_clock::Instant;

use crate::pool::connection_pool::{Action, Pool};
use crate::pool::connection_state::{Connection, State};

/// Schedule of the sweep over all origins.
#[derive(Debug)]
pub(super) struct Sweep {
    every: Duration,
    /// Time of the last sweep, or of the first request.
    since: Option<Instant>,
}

impl Pool {
    /// Enables closing idle connections of all origins, and removing origins without connections and requests: when a request is
    /// queued, but at most once per `every`. There is no timer. Without this, idle connections are checked only when their own
    /// origin gets a request.
    #[must_use]
    pub fn with_sweep_interval(mut self, every: Duration) -> Self {
        self.sweep = Some(Sweep { every, since: None });
        self
    }

    pub(super) fn sweep(&mut self, now: Instant) {
        let Some(sweep) = &mut self.sweep else {
            return;
        };
        if now.saturating_since(*sweep.since.get_or_insert(now)) < sweep.every {
            return;
        }
        sweep.since = Some(now);
        let connections = self.connections.iter();
        let idle = connections.filter(|(_, connection)| connection.is_idle_for_too_long(now));
        let idle: Vec<_> = idle.map(|(id, _)| *id).collect();
        for id in idle {
            self.forget(id);
            self.actions.push_back(Action::Close { connection: id });
        }
        self.hosts
            .retain(|_, host| !host.queue.is_empty() || !host.connections.is_empty());
    }
}

impl Connection {
    fn is_idle_for_too_long(&self, now: Instant) -> bool {
        match self.state {
            State::Up {
                open: 0,
                idle_since,
                idle_timeout,
                ..
            } => now.saturating_since(idle_since) > idle_timeout,
            State::Up { .. } | State::Connecting | State::Draining => false,
        }
    }
}
