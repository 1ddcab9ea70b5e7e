//! Selects the idle connection that is evicted when all slots are taken.
//!
//! Among the sources with an idle connection it selects the one with the most connections, and of those the connection
//! that is idle longest. So a few addresses cannot keep all others out by keeping connections open.

use spdy_net_core::connection_slot::ConnectionSlot;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::admission::source::Source;

/// The slots that are in use, by the widest source of each, in the order in which they were taken.
#[derive(Debug, Default)]
pub(super) struct SlotTable {
    taken: BTreeMap<Source, BTreeMap<u64, ConnectionSlot>>,
    next: u64,
    /// Counts each time that a connection becomes idle.
    sequence: Arc<AtomicU64>,
}

impl SlotTable {
    /// Adds a slot for a connection from `address`, and returns its number.
    pub(super) fn take(&mut self, address: IpAddr) -> (u64, ConnectionSlot) {
        let (number, seat) = (self.next, ConnectionSlot::new(self.sequence.clone()));
        self.next += 1;
        let seats = self.taken.entry(Source::widest(address)).or_default();
        seats.insert(number, seat.clone());
        (number, seat)
    }

    /// Removes the slot `number`, because its connection has ended.
    pub(super) fn release(&mut self, address: IpAddr, number: u64) {
        let source = Source::widest(address);
        if let Some(seats) = self.taken.get_mut(&source) {
            seats.remove(&number);
            if seats.is_empty() {
                self.taken.remove(&source);
            }
        }
    }

    /// Evicts an idle connection: it belongs to the source with the most connections among those that have an idle one, and is that
    /// source's connection that is idle longest. Returns `false` if no connection is idle.
    pub(super) fn evict_longest_idle(&self) -> bool {
        // A connection that received a request after `longest_idle` found it stays open, and the next one is tried.
        while let Some(seat) = self.longest_idle() {
            if seat.try_evict() {
                return true;
            }
        }
        false
    }

    /// Among the sources with an idle connection, that with the most connections; returns its connection that has been idle for
    /// longest.
    fn longest_idle(&self) -> Option<&ConnectionSlot> {
        let mut best: Option<(usize, Reverse<u64>, &ConnectionSlot)> = None;
        for seats in self.taken.values() {
            let held = seats.len();
            if best.as_ref().is_some_and(|(most, ..)| *most > held) {
                continue;
            }
            let idle = seats
                .values()
                .filter_map(|seat| Some((seat.idle_since()?, seat)));
            if let Some((since, seat)) = idle.min_by_key(|(since, _)| *since) {
                let candidate = (held, Reverse(since), seat);
                if best
                    .as_ref()
                    .is_none_or(|best| (best.0, best.1) < (candidate.0, candidate.1))
                {
                    best = Some(candidate);
                }
            }
        }
        best.map(|(.., seat)| seat)
    }
}
