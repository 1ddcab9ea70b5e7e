//! Purges that must still be written to the log, and recently written ones.
//!
//! A purge is never lost because of a missing answer: it stays here until it is in the log. Until then this cache uses no object
//! that it matches. Above a limit, the purges are merged into one that matches everything.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use spdy_cache::shared_tier::PurgeTarget;

use crate::purge_entry::PurgeEvent;
use crate::purge_log::PurgeSubject;

/// Limit of waiting purges.
pub(crate) const MAX_WAITING: usize = 1024;
/// Number of purges that are written again if the log is lost, with all entries that other caches had not read yet.
const MAX_SENT: usize = 256;
/// How long they are remembered; by then the other caches have read them.
const RESEND_WINDOW: Duration = Duration::from_secs(600);

/// The waiting purges, in order, and those that were written.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    waiting: VecDeque<PurgeEvent>,
    sent: VecDeque<(Instant, PurgeEvent)>,
    /// Number of all events so far.
    count: u64,
}

impl Outbox {
    /// Adds an event; returns its number.
    pub(crate) fn push(&mut self, what: PurgeEvent) -> u64 {
        if self.waiting.len() >= MAX_WAITING {
            let is_hard = |what: &PurgeEvent| matches!(what, PurgeEvent::Purge { soft: false, .. });
            let soft = !is_hard(&what) && !self.waiting.iter().any(is_hard);
            self.waiting.clear();
            self.waiting.push_back(PurgeEvent::Purge {
                target: PurgeTarget::all(),
                soft,
            });
        } else {
            self.waiting.push_back(what);
        }
        self.count += 1;
        self.count
    }

    /// The number of the last event.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The next event to write.
    pub(crate) fn next(&self) -> Option<PurgeEvent> {
        self.waiting.front().cloned()
    }

    /// Records that it was written at `now`. If none is waiting, returns the number up to which all are written.
    pub(crate) fn mark_sent(&mut self, what: &PurgeEvent, now: Instant) -> Option<u64> {
        // While it was in flight, all may have been merged into one.
        if self.waiting.front() == Some(what)
            && let Some(what) = self.waiting.pop_front()
        {
            self.sent.push_back((now, what));
            if self.sent.len() > MAX_SENT {
                self.sent.pop_front();
            }
        }
        self.waiting.is_empty().then_some(self.count)
    }

    /// Queues recent purges again, because the log was lost.
    pub(crate) fn resend(&mut self, now: Instant) {
        let sent = self.sent.drain(..);
        let late = sent.filter(|(at, _)| now.saturating_duration_since(*at) < RESEND_WINDOW);
        let late: Vec<PurgeEvent> = late.map(|(_, what)| what).collect();
        for what in late.into_iter().rev() {
            self.waiting.push_front(what);
        }
    }

    /// Adds a reset of a part, unless one is already waiting: clients can cause resets, and must not fill the log with them.
    pub(crate) fn push_part_reset(&mut self, part: u8) {
        let part_reset = PurgeEvent::PartReset { part };
        // The first may be in flight: other caches may already have read it, and have written objects since.
        if !self.waiting.iter().skip(1).any(|what| *what == part_reset) {
            self.push(part_reset);
        }
    }

    /// True if a waiting event matches the object.
    pub(crate) fn matches(&self, subject: &PurgeSubject<'_>) -> bool {
        self.waiting.iter().any(|what| subject.matches(what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn purged(prefix: &'static str, soft: bool) -> PurgeEvent {
        PurgeEvent::Purge {
            target: PurgeTarget::Prefix(prefix.into()),
            soft,
        }
    }

    fn all(outbox: &mut Outbox, now: Instant) -> Vec<PurgeEvent> {
        let mut all = Vec::new();
        while let Some(what) = outbox.next() {
            outbox.mark_sent(&what, now);
            all.push(what);
        }
        all
    }

    #[test]
    fn recent_purges_are_resent_when_the_log_is_lost() {
        let mut outbox = Outbox::default();
        let start = Instant::now();
        outbox.push(purged("a", false));
        assert_eq!(all(&mut outbox, start).len(), 1);
        outbox.push(purged("b", false));
        assert_eq!(all(&mut outbox, start + RESEND_WINDOW).len(), 1);
        outbox.push(purged("c", true));
        outbox.resend(start + RESEND_WINDOW);
        let now = start + RESEND_WINDOW;
        assert_eq!(
            all(&mut outbox, now),
            [purged("b", false), purged("c", true)]
        );
    }

    #[test]
    fn too_many_waiting_purges_become_one_purge_of_everything() {
        for (last_is_soft, soft) in [(true, true), (false, false)] {
            let mut outbox = Outbox::default();
            for _ in 0..MAX_WAITING {
                outbox.push(purged("a", true));
            }
            assert_eq!(outbox.waiting.len(), MAX_WAITING);
            let last = outbox.push(purged("b", last_is_soft));
            assert_eq!(last, MAX_WAITING as u64 + 1);
            let target = PurgeTarget::all();
            assert_eq!(outbox.next(), Some(PurgeEvent::Purge { target, soft }));
            let what = outbox.next().expect("an event is waiting");
            assert_eq!(outbox.mark_sent(&what, Instant::now()), Some(last));
        }
    }

    #[test]
    fn a_part_reset_is_queued_once_behind_other_purges() {
        let mut outbox = Outbox::default();
        for _ in 0..MAX_WAITING {
            outbox.push_part_reset(3);
            outbox.push_part_reset(4);
        }
        let part_reset = |part| PurgeEvent::PartReset { part };
        assert_eq!(
            outbox.waiting,
            [part_reset(3), part_reset(4), part_reset(3)]
        );
    }

    #[test]
    fn a_purge_replaced_while_sending_is_marked_correctly() {
        let mut outbox = Outbox::default();
        outbox.push(purged("a", false));
        let in_flight = outbox.next().expect("an event is waiting");
        for _ in 0..MAX_WAITING {
            outbox.push(purged("b", false));
        }
        assert_eq!(outbox.mark_sent(&in_flight, Instant::now()), None);
        assert!(outbox.next().is_some());
    }
}
