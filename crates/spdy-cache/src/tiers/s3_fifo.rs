//! Chooses which of a site's objects to evict: S3-FIFO (Yang et al., SOSP 2023), by bytes.
//!
//! ```text
//!  new ──▶ small: a tenth ──▶ used again? ── yes ──▶ main ──▶ used since? ── yes ──▶ once more round
//!                                   │ no                           │ no
//!                                   ▼                              ▼
//!                                 ghost (names only)              gone
//!  new, and in ghost ──────────────────────────────▶ main
//! ```
//!
//! Most objects in a cache are requested once; they leave by the small queue without displacing others. Uses are only counted up to
//! 3, on the object itself: a hit moves nothing and takes no lock.

use std::collections::{BTreeMap, HashMap, VecDeque};

/// An object's ID in its store, never reused.
pub(crate) type Id = u64;

/// The queue of an object, and the position in it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct QueuePosition {
    pub(crate) in_main: bool,
    sequence: u64,
}

/// The queues of one site.
#[derive(Debug, Default)]
pub(crate) struct S3Fifo {
    small: BTreeMap<u64, Id>,
    main: BTreeMap<u64, Id>,
    small_bytes: u64,
    main_bytes: u64,
    ghost: Ghost,
    next_turn: u64,
}

/// The decision about the object at the end of a queue.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Eviction {
    /// It stays, at this position, with this number of uses left.
    Keep(QueuePosition, u8),
    /// It is evicted.
    Evict,
}

impl S3Fifo {
    pub(crate) fn bytes(&self) -> u64 {
        self.small_bytes + self.main_bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.small.is_empty() && self.main.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.small.len() + self.main.len()
    }

    /// Inserts a new object; `hash` is the hash of its key.
    pub(crate) fn insert(&mut self, id: Id, hash: u64, weight: u64) -> QueuePosition {
        let is_ghost = self.ghost.contains(hash);
        self.insert_at(id, weight, is_ghost)
    }

    pub(crate) fn insert_at(&mut self, id: Id, weight: u64, in_main: bool) -> QueuePosition {
        let turn = self.next_turn;
        self.next_turn += 1;
        let (queue, bytes) = match in_main {
            true => (&mut self.main, &mut self.main_bytes),
            false => (&mut self.small, &mut self.small_bytes),
        };
        queue.insert(turn, id);
        *bytes += weight;
        QueuePosition {
            in_main,
            sequence: turn,
        }
    }

    pub(crate) fn take(&mut self, place: QueuePosition, weight: u64) {
        let (queue, bytes) = match place.in_main {
            true => (&mut self.main, &mut self.main_bytes),
            false => (&mut self.small, &mut self.small_bytes),
        };
        let removed = queue.remove(&place.sequence);
        assert!(removed.is_some(), "nothing at {place:?}");
        *bytes -= weight;
    }

    /// The next candidate for eviction or promotion; `None` if there is none.
    pub(crate) fn last(&self) -> Option<Id> {
        let (first, second) = match self.small_bytes * 10 >= self.bytes() {
            true => (&self.small, &self.main),
            false => (&self.main, &self.small),
        };
        let oldest = |queue: &BTreeMap<u64, Id>| queue.first_key_value().map(|(_, id)| *id);
        oldest(first).or_else(|| oldest(second))
    }

    /// Moves the object that [`last`](Self::last) returned to the other queue, so that neither queue blocks the other.
    pub(crate) fn requeue(&mut self, id: Id, place: QueuePosition, weight: u64) -> QueuePosition {
        self.take(place, weight);
        self.insert_at(id, weight, !place.in_main)
    }

    /// Decides about the object that [`last`](Self::last) returned. An evicted object must still be removed by
    /// [`take`](Self::take).
    pub(crate) fn decide(
        &mut self,
        id: Id,
        place: QueuePosition,
        uses: u8,
        hash: u64,
        weight: u64,
    ) -> Eviction {
        if uses == 0 {
            if !place.in_main {
                self.ghost.add(hash, self.len());
            }
            return Eviction::Evict;
        }
        self.take(place, weight);
        let remaining_uses = if place.in_main { uses - 1 } else { 0 };
        Eviction::Keep(self.insert_at(id, weight, true), remaining_uses)
    }
}

/// Hashes of objects that left the small queue recently.
///
/// The hash has a constant key: a deliberate collision only gains a place in the main queue, once.
#[derive(Debug, Default)]
struct Ghost {
    order: VecDeque<u64>,
    /// Number of occurrences of each hash in `order`; never iterated.
    count: HashMap<u64, u32>,
}

impl Ghost {
    fn add(&mut self, hash: u64, room: usize) {
        self.order.push_back(hash);
        *self.count.entry(hash).or_default() += 1;
        while self.order.len() > room.max(1) {
            let Some(oldest) = self.order.pop_front() else {
                return;
            };
            if let Some(count) = self.count.get_mut(&oldest) {
                *count -= 1;
                if *count == 0 {
                    self.count.remove(&oldest);
                }
            }
        }
    }

    /// True if it left recently; entries are only removed by age.
    fn contains(&self, hash: u64) -> bool {
        self.count.contains_key(&hash)
    }
}
