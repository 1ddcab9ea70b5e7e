//! Tracks which parts of the cluster answer, so that no request waits for those that do not.
//!
//! ```text
//!  available ──FAILURES in a row, or a probe failed──▶ unavailable: only probes are sent to it
//!      ▲                                                  │
//!      └────────────── PROBES in a row answered ──────────┘
//! ```
//!
//! Requests do not detect that a part is back: only the probes of the background task do.

/// Number of parts.
pub(crate) const PARTS: usize = 16;
/// Limit of failed requests in a row.
const FAILURES: u32 = 3;
/// Successful probes in a row after which a part is used again, so that an unstable part stays unused for longer.
const PROBES: u32 = 2;

/// The health of all parts. Before the first probe they are unavailable.
#[derive(Debug)]
pub(crate) struct PartHealth {
    parts: [PartState; PARTS],
    /// The last reported state: true if all parts answer.
    last_logged: Option<bool>,
}

#[derive(Clone, Copy, Debug)]
enum PartState {
    Available { failures: u32 },
    Unavailable { answered: u32 },
}

/// A change to report.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum HealthChange {
    /// Some part is unavailable, while all were available before.
    Lost,
    /// All parts are available, while some were unavailable before.
    Recovered,
}

impl PartHealth {
    pub(crate) fn new() -> Self {
        Self {
            // One successful probe is enough for a part without history.
            parts: [PartState::Unavailable {
                answered: PROBES - 1,
            }; PARTS],
            last_logged: None,
        }
    }

    /// True if a part may be used.
    pub(crate) fn answers(&self, part: usize) -> bool {
        matches!(self.parts[part], PartState::Available { .. })
    }

    /// Number of parts that may be used.
    pub(crate) fn available(&self) -> usize {
        (0..PARTS).filter(|part| self.answers(*part)).count()
    }

    /// Records if a request was answered.
    pub(crate) fn record_request(&mut self, part: usize, was_answered: bool) {
        if let PartState::Available { failures } = &mut self.parts[part] {
            *failures = if was_answered { 0 } else { *failures + 1 };
            if *failures >= FAILURES {
                self.parts[part] = PartState::Unavailable { answered: 0 };
            }
        }
    }

    /// Records if a probe was answered.
    pub(crate) fn record_probe(&mut self, part: usize, was_answered: bool) {
        self.parts[part] = match (self.parts[part], was_answered) {
            (PartState::Unavailable { answered }, true) if answered + 1 < PROBES => {
                PartState::Unavailable {
                    answered: answered + 1,
                }
            }
            (PartState::Available { failures }, true) => PartState::Available { failures },
            (PartState::Unavailable { .. }, true) => PartState::Available { failures: 0 },
            (_, false) => PartState::Unavailable { answered: 0 },
        };
    }

    /// The change to report now, once.
    pub(crate) fn take_change(&mut self) -> Option<HealthChange> {
        let all = self.available() == PARTS;
        let before = self.last_logged.replace(all);
        match (before, all) {
            (Some(true) | None, false) => Some(HealthChange::Lost),
            (Some(false), true) => Some(HealthChange::Recovered),
            (Some(true) | None, true) | (Some(false), false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probed(parts: &mut PartHealth, is_up: impl Fn(usize) -> bool) {
        (0..PARTS).for_each(|part| parts.record_probe(part, is_up(part)));
    }

    #[test]
    fn three_failures_disable_a_part_until_two_probes_succeed() {
        let mut parts = PartHealth::new();
        assert!(!parts.answers(0), "the state is unknown at the start");
        probed(&mut parts, |_| true);
        assert_eq!((parts.available(), parts.take_change()), (PARTS, None));
        for _ in 0..FAILURES - 1 {
            parts.record_request(3, false);
        }
        parts.record_request(3, true);
        for _ in 0..FAILURES - 1 {
            parts.record_request(3, false);
        }
        assert!(parts.answers(3), "not in a row");
        parts.record_request(3, false);
        assert!(!parts.answers(3));
        assert_eq!(parts.take_change(), Some(HealthChange::Lost));
        probed(&mut parts, |_| true);
        assert!(!parts.answers(3), "one is none");
        probed(&mut parts, |_| true);
        assert!(parts.answers(3));
        assert_eq!(parts.take_change(), Some(HealthChange::Recovered));
    }

    #[test]
    fn health_changes_are_reported_once() {
        let mut parts = PartHealth::new();
        probed(&mut parts, |_| true);
        assert_eq!(parts.take_change(), None);
        probed(&mut parts, |part| part > 5);
        assert_eq!(parts.take_change(), Some(HealthChange::Lost));
        for _ in 0..5 {
            probed(&mut parts, |_| false);
            assert_eq!(parts.take_change(), None);
        }
        probed(&mut parts, |part| part > 5);
        probed(&mut parts, |_| true);
        assert_eq!((parts.available(), parts.take_change()), (PARTS - 6, None));
        probed(&mut parts, |_| true);
        assert_eq!(parts.take_change(), Some(HealthChange::Recovered));
    }

    #[test]
    fn a_part_that_never_answered_is_lost() {
        let mut parts = PartHealth::new();
        probed(&mut parts, |_| false);
        assert_eq!(parts.take_change(), Some(HealthChange::Lost));
    }
}
