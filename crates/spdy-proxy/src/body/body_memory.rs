//! Memory for responses in flight: limits the total of what is recorded for the cache and not stored yet.
//!
//! A recording claims its announced length before it begins, claims more as it grows, and returns what it drops. If a claim fails, the
//! recording is no longer kept: its origin is then read at the pace of its readers (body/shared_body.rs). So lack of memory refuses no
//! request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::telemetry::counters::{CounterFamily, Counters};

/// The key that sets the limit, as counters call it.
const LIMIT: &str = "in_flight_mib";

/// The memory budget of all recordings.
#[derive(Debug)]
pub struct BodyMemory {
    limit: usize,
    claimed: AtomicUsize,
    counters: Counters,
}

/// The memory that one recording has reserved. Dropping it returns all of it.
#[derive(Debug)]
pub struct MemoryReservation {
    of: Arc<BodyMemory>,
    bytes: usize,
}

impl BodyMemory {
    /// Memory for `limit` bytes; `counters` count when it is not enough.
    #[must_use]
    pub fn new(limit: usize, counters: Counters) -> Arc<Self> {
        Arc::new(Self {
            limit,
            claimed: AtomicUsize::new(0),
            counters,
        })
    }

    /// Bytes that are claimed; never more than the limit.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.claimed.load(Ordering::Relaxed)
    }

    /// A claim to this many bytes; `None`, which is counted, if there is no memory for them.
    #[must_use]
    pub fn reserve(self: &Arc<Self>, bytes: usize) -> Option<MemoryReservation> {
        let of = self.clone();
        let mut claim = MemoryReservation { of, bytes: 0 };
        claim.grow_to(bytes).then_some(claim)
    }
}

impl MemoryReservation {
    /// Claims memory up to `bytes`; `false`, which is counted, if there is no room: the claim is then unchanged.
    #[must_use]
    pub fn grow_to(&mut self, bytes: usize) -> bool {
        let missing = bytes.saturating_sub(self.bytes);
        let BodyMemory { limit, claimed, .. } = &*self.of;
        let more = |now: usize| now.checked_add(missing).filter(|sum| sum <= limit);
        let granted = claimed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        match granted {
            Ok(_) => self.bytes += missing,
            Err(_) => self.of.counters.count(CounterFamily::Limits, LIMIT),
        }
        granted.is_ok()
    }

    /// Returns the memory above `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        let surplus = self.bytes.saturating_sub(bytes);
        self.bytes -= surplus;
        self.of.claimed.fetch_sub(surplus, Ordering::Relaxed);
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_share_the_limit_and_are_released() {
        let counters = Counters::default();
        let all = BodyMemory::new(100, counters.clone());
        let mut one = all.reserve(60).expect("the limit is not reached");
        let mut other = all
            .reserve(0)
            .expect("a reservation of 0 bytes always succeeds");
        assert!(other.grow_to(40));
        assert_eq!(
            (all.bytes(), counters.read(CounterFamily::Limits)),
            (100, vec![])
        );
        assert!(!other.grow_to(41) && all.reserve(1).is_none() && all.reserve(0).is_some());
        assert_eq!(counters.read(CounterFamily::Limits), [("in_flight_mib", 2)]);
        one.shrink_to(10);
        assert!(
            other.grow_to(90),
            "one past the limit is refused, and not the limit itself"
        );
        assert_eq!(all.bytes(), 100);
        other.shrink_to(95);
        assert_eq!(all.bytes(), 100, "it has less than that already");
        drop((one, other));
        assert_eq!(all.bytes(), 0);
    }
}
