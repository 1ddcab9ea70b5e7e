//! Decides when to replace the client: while the cluster goes down, the client may lose all connections, and then never recovers.
//!
//! ```text
//!            a round of probes                 as long as
//!  heard ───without an answer───▶ silent ───the timeout────▶ another client, twice the timeout
//!    ▲                            │    ▲                        │
//!    └──────── an answer ─────────┘    └────────────────────────┘
//! ```
//!
//! The `redis` crate's client requests the slot table from one of its connected nodes. If that node reports that other nodes have
//! all slots, and those are gone, the client has no connection left. A request that finds no connection makes it reconnect to the
//! configured nodes. But if a redirected request fails at that time, the client requests the slots again, from its connected nodes,
//! for ever: no request gets far enough to find no connection, and one core is busy.
//!
//! A new client knows only the configured nodes. Discovering the cluster takes time, so each client has a longer timeout than the
//! one before. The old client is not used in the meantime, but it did not answer before either.

use std::time::{Duration, Instant};

/// Timeout of the first client without an answer.
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum timeout of a client.
const MAX_TIMEOUT: Duration = Duration::from_secs(16);

#[derive(Debug)]
pub(crate) struct ClientRenewal {
    /// Since when this client has had no answer; `None` if it has one.
    silent_since: Option<Instant>,
    timeout: Duration,
}

impl ClientRenewal {
    pub(crate) fn new() -> Self {
        Self {
            silent_since: None,
            timeout: FIRST_TIMEOUT,
        }
    }

    /// Records a round of probes at `now`. Returns true if the client must be replaced.
    pub(crate) fn probed(&mut self, now: Instant, was_answered: bool) -> bool {
        if was_answered {
            *self = Self::new();
            return false;
        }
        let silent = *self.silent_since.get_or_insert(now);
        let is_due = now.duration_since(silent) >= self.timeout;
        if is_due {
            self.silent_since = Some(now);
            self.timeout = MAX_TIMEOUT.min(self.timeout * 2);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seconds at which the client is replaced, for rounds at these seconds.
    fn renewed(renewal: &mut ClientRenewal, begun: Instant, rounds: &[(u64, bool)]) -> Vec<u64> {
        let rounds = rounds.iter().filter(|(second, was_answered)| {
            renewal.probed(begun + Duration::from_secs(*second), *was_answered)
        });
        rounds.map(|(second, _)| *second).collect()
    }

    #[test]
    fn a_client_with_any_answer_is_not_renewed() {
        let rounds: Vec<_> = (0..100).map(|second| (second, second % 2 == 0)).collect();
        let renewed = renewed(&mut ClientRenewal::new(), Instant::now(), &rounds);
        assert_eq!(renewed, []);
    }

    #[test]
    fn renewal_timeouts_grow_to_a_maximum() {
        let rounds: Vec<_> = (0..=80).map(|second| (second, false)).collect();
        let (mut renewal, begun) = (ClientRenewal::new(), Instant::now());
        assert_eq!(
            renewed(&mut renewal, begun, &rounds),
            [1, 3, 7, 15, 31, 47, 63, 79]
        );
        // A client that got an answer has the same timeout as the first.
        let rounds = [(81, true), (90, false), (91, false), (92, false)];
        assert_eq!(renewed(&mut renewal, begun, &rounds), [91]);
    }

    #[test]
    fn a_long_round_counts_as_one_without_an_answer() {
        let rounds = [(0, true), (100, false), (101, false)];
        assert_eq!(
            renewed(&mut ClientRenewal::new(), Instant::now(), &rounds),
            [101]
        );
    }
}
