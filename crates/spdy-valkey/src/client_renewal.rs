//! When to replace the client: while the cluster goes down, it may lose all connections, and then it never recovers.
//!
//! ```text
//!            a round of probes                 as long as
//!  heard ───without an answer───▶ silent ───the patience───▶ another client, twice the patience
//!    ▲                            │    ▲                        │
//!    └──────── an answer ─────────┘    └────────────────────────┘
//! ```
//!
//! The `redis` crate's client requests the slot table from some node that it is connected to. If that node reports that others have all
//! slots, and those are gone, the client is left without a connection. A request without a connection makes it go back to the nodes of
//! its configuration. But if a request that was redirected from node to node fails just then, the client requests the slots again, from
//! its connected nodes, for ever: no request gets as far as to find no connection, and one core is busy.
//!
//! A new client knows only the nodes of the configuration. It takes a while to discover the cluster, so each has a longer timeout than
//! the one before. No other client is used in the meantime, but none answered before either.

use std::time::{Duration, Instant};

/// How long the first client may go without an answer.
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
/// How long any may.
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

    /// A round of probes has ended `now`; whether there is to be another client.
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

    /// Seconds at which there is another client, of rounds at these ones.
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
        // A client that had an answer is as good as the first.
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
