//! Removes connections that were idle for too long, at all origins. Otherwise an origin without further requests would
//! keep its connections until their servers close them, and a place in the pool for ever.

use std::time::Duration;

use spdy_clock::Instant;

use crate::pool::connection_pool::{Action, Connection, Pool, State};

/// When all origins are looked at.
#[derive(Debug)]
pub(super) struct Sweep {
    every: Duration,
    /// The last time, or when the first request came.
    since: Option<Instant>,
}

impl Pool {
    /// The same pool, which closes connections of all origins that were idle for too long, and forgets origins that nothing is left of:
    /// when a request comes, but not sooner than `every` after the last time. There is no timer; otherwise connections are
    /// looked at when their own origin is asked.
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
