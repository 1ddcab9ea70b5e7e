//! URLs whose objects are invalid until the cluster has deleted them.
//!
//! ```text
//!  number   1       2       3       4
//!         store   delete  store   delete ──▶ one queue, in this order
//!           └ deleted since: not written; the third is not written either
//! ```
//!
//! A queued store has the number of the last delete before it. If its URL was deleted later, it is not written: that delete is
//! still pending, or did not fit into the queue.

use std::collections::BTreeMap;

use crate::key_names::IndexKey;
use crate::part_health::PARTS;

/// Limit of pending URLs in each part of the cluster. Above it, all objects of the part become invalid.
pub(crate) const MAX_PENDING_DELETES: usize = 4096;

/// Number of a delete, ascending.
pub(crate) type DeleteSeq = u64;

/// The pending deletes of each part. Once the cluster has deleted a URL, it may be stored again.
#[derive(Debug, Default)]
pub(crate) struct PendingDeletes {
    parts: [BTreeMap<IndexKey, PendingDelete>; PARTS],
    last: DeleteSeq,
}

#[derive(Clone, Copy, Debug)]
struct PendingDelete {
    seq: DeleteSeq,
    /// True if the delete is in its queue.
    is_queued: bool,
}

impl PendingDeletes {
    /// Adds a delete; `false` if there was no room, and all other deletes of its part were dropped.
    pub(crate) fn add(&mut self, place: &IndexKey) -> bool {
        self.last += 1;
        let waiting = PendingDelete {
            seq: self.last,
            is_queued: false,
        };
        let part = &mut self.parts[place.part];
        let has_room = part.len() < MAX_PENDING_DELETES || part.contains_key(place);
        if !has_room {
            part.clear();
        }
        part.insert(place.clone(), waiting);
        has_room
    }

    pub(crate) fn has(&self, place: &IndexKey) -> bool {
        self.seq(place).is_some()
    }

    /// The number of the last delete.
    pub(crate) fn last(&self) -> DeleteSeq {
        self.last
    }

    /// The number of the pending delete of `place`; `None` if there is none.
    pub(crate) fn seq(&self, place: &IndexKey) -> Option<DeleteSeq> {
        let waiting = self.parts[place.part].get(place);
        waiting.map(|waiting| waiting.seq)
    }

    /// To be called when the cluster has executed the delete `seq`.
    pub(crate) fn remove(&mut self, place: &IndexKey, seq: DeleteSeq) {
        if self.seq(place) == Some(seq) {
            self.parts[place.part].remove(place);
        }
    }

    /// Sets whether the delete `seq` is in its queue.
    pub(crate) fn set_queued(&mut self, place: &IndexKey, seq: DeleteSeq, is_queued: bool) {
        if let Some(waiting) = self.parts[place.part].get_mut(place)
            && waiting.seq == seq
        {
            waiting.is_queued = is_queued;
        }
    }

    /// The deletes of a part that are in no queue.
    pub(crate) fn unqueued(&self, part: usize) -> Vec<(IndexKey, DeleteSeq)> {
        let waiting = self.parts[part].iter();
        let unqueued = waiting.filter(|(_, waiting)| !waiting.is_queued);
        unqueued
            .map(|(place, waiting)| (place.clone(), waiting.seq))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(number: usize, part: usize) -> IndexKey {
        IndexKey {
            index: format!("{{{number}}}"),
            part,
        }
    }

    #[test]
    fn a_delete_requested_during_a_delete_stays_pending() {
        let (mut deletes, place) = (PendingDeletes::default(), place(0, 0));
        assert!(deletes.add(&place));
        let seq = deletes.seq(&place).expect("a delete is pending");
        assert!(deletes.add(&place));
        deletes.remove(&place, seq);
        assert!(deletes.has(&place));
        let seq = deletes.seq(&place).expect("a delete is pending");
        deletes.remove(&place, seq);
        assert!(!deletes.has(&place));
    }

    #[test]
    fn overflow_of_a_part_is_reported_and_clears_only_that_part() {
        let mut deletes = PendingDeletes::default();
        let other_part = place(0, 8);
        assert!(deletes.add(&other_part));
        for number in 0..MAX_PENDING_DELETES {
            assert!(deletes.add(&place(number, 7)));
        }
        assert!(deletes.add(&place(0, 7)), "it is in");
        let more = place(MAX_PENDING_DELETES, 7);
        assert!(!deletes.add(&more));
        assert!(deletes.has(&other_part));
        let seq = deletes.last();
        assert_eq!(deletes.unqueued(7), [(more, seq)]);
    }

    #[test]
    fn a_queued_delete_is_requeued_only_after_failure() {
        let (mut deletes, place) = (PendingDeletes::default(), place(0, 3));
        deletes.add(&place);
        let first = deletes.last();
        deletes.set_queued(&place, first, true);
        assert_eq!(deletes.unqueued(3), []);
        deletes.add(&place);
        let second = deletes.last();
        assert_eq!(deletes.unqueued(3), [(place.clone(), second)]);
        deletes.set_queued(&place, second, true);
        deletes.set_queued(&place, first, false);
        assert_eq!(deletes.unqueued(3), [], "that was the first");
        deletes.set_queued(&place, second, false);
        assert_eq!(deletes.unqueued(3).len(), 1);
    }
}
