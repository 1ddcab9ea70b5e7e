//! Admits connections within limits: waits for a free slot, applies the limits of an address, and frees the slot when the
//! connection ends.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use spdy_clock::Instant;
use spdy_net_core::connection_slot::ConnectionSlot;
use spdy_net_core::limit::{ConnectionLimit, LimitHits};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::admission::idle_eviction::SlotTable;
use crate::admission::limits::AdmissionLimits;
use crate::admission::source_table::SourceTable;
use crate::log_throttle::LogThrottle;

/// How long an evicted connection has to close, before another is evicted.
const EVICTION_TIMEOUT: Duration = Duration::from_secs(1);

/// How a connection's peer behaved. Addresses with too many abusive connections are refused for a time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Conduct {
    /// It stayed within the limits.
    Fair,
    /// It exceeded a limit, and the connection was closed for this.
    Abusive,
}

impl From<()> for Conduct {
    fn from((): ()) -> Self {
        Self::Fair
    }
}

/// Admits the connections of one or several listeners. Clones share the slots and limits.
#[derive(Clone, Debug)]
pub struct Admission {
    limits: AdmissionLimits,
    places: Arc<Semaphore>,
    table: Arc<Mutex<Table>>,
    /// Limits how often it is logged that all slots are in use.
    full_log: Arc<LogThrottle>,
    hits: LimitHits,
    /// The time origin of [`now`](Self::now).
    began: tokio::time::Instant,
}

#[derive(Debug)]
struct Table {
    sources: SourceTable,
    slots: SlotTable,
}

impl Default for Admission {
    fn default() -> Self {
        Self::new(AdmissionLimits::default(), LimitHits::default())
    }
}

impl Admission {
    /// Applies `limits`, and counts each connection that reaches one in `hits`.
    #[must_use]
    pub fn new(limits: AdmissionLimits, hits: LimitHits) -> Self {
        Self {
            limits,
            places: Arc::new(Semaphore::new(
                limits.connections.min(Semaphore::MAX_PERMITS),
            )),
            table: Arc::new(Mutex::new(Table {
                sources: SourceTable::new(limits),
                slots: SlotTable::default(),
            })),
            full_log: Arc::default(),
            hits,
            began: tokio::time::Instant::now(),
        }
    }

    /// The time on the clock that all of its listeners share.
    pub(crate) fn now(&self) -> Instant {
        Instant::ZERO + self.began.elapsed()
    }

    /// Waits for a free slot for one more connection, and takes it.
    ///
    /// If all slots are taken and `evict_idle` is set, this evicts an idle connection, now and after each [`EVICTION_TIMEOUT`].
    /// Slots are given in the order of the calls.
    pub(crate) async fn wait_for_place(&self) -> OwnedSemaphorePermit {
        if let Ok(permit) = self.places.clone().try_acquire_owned() {
            return permit;
        }
        self.hits.count(ConnectionLimit::MaxConnections);
        if self.full_log.is_due(self.now()) {
            let connections = self.limits.connections;
            tracing::warn!(
                connections,
                "all connection slots are in use: new connections wait"
            );
        }
        // The same future in each iteration, so that it keeps its position in the queue.
        let mut acquiring = std::pin::pin!(self.places.clone().acquire_owned());
        loop {
            if self.limits.evict_idle && self.lock().slots.evict_longest_idle() {
                self.hits.count(ConnectionLimit::IdleEviction);
            }
            if let Ok(permit) = tokio::time::timeout(EVICTION_TIMEOUT, &mut acquiring).await {
                return permit.unwrap_or_else(|error| {
                    unreachable!("the semaphore is never closed: {error}")
                });
            }
        }
    }

    /// True if a slot is free and `address` has used less than half of its limit. Otherwise a sender that forges this address could
    /// use up the rest and lock the real client out.
    pub(crate) fn has_headroom(&self, now: Instant, address: IpAddr) -> bool {
        self.places.available_permits() > 0 && self.lock().sources.has_headroom(now, address)
    }

    /// Counts a connection that reached `limit` before it was admitted.
    pub(crate) fn count(&self, limit: ConnectionLimit) {
        self.hits.count(limit);
    }

    /// Admits a connection from `address` at `now`. It counts as open until the permit is dropped.
    ///
    /// # Errors
    ///
    /// The limit that the address has exceeded.
    pub fn admit(&self, now: Instant, address: IpAddr) -> Result<AdmissionPermit, ConnectionLimit> {
        let mut table = self.lock();
        let checked = table.sources.admit(now, address);
        checked.inspect_err(|limit| self.hits.count(*limit))?;
        Ok(self.issue_permit(table, address, true))
    }

    /// Admits a connection from the trusted proxy at `address`. It carries many clients, so the limits of one address do not apply.
    pub(crate) fn admit_trusted_proxy(&self, address: IpAddr) -> AdmissionPermit {
        self.issue_permit(self.lock(), address, false)
    }

    fn issue_permit(
        &self,
        mut table: MutexGuard<'_, Table>,
        address: IpAddr,
        is_counted: bool,
    ) -> AdmissionPermit {
        let (number, slot) = table.slots.take(address);
        AdmissionPermit {
            admission: self.clone(),
            address,
            is_counted,
            number,
            slot,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }
}

/// A connection that was admitted. Dropping it frees the connection's slot.
#[derive(Debug)]
pub struct AdmissionPermit {
    admission: Admission,
    address: IpAddr,
    /// True if it counts towards the limits of its address.
    is_counted: bool,
    number: u64,
    slot: ConnectionSlot,
}

impl AdmissionPermit {
    /// The connection's slot, by which the connection reports if it is idle, and is notified that it must close.
    #[must_use]
    pub fn slot(&self) -> ConnectionSlot {
        self.slot.clone()
    }

    /// Records that the connection has ended, and the `conduct` of its peer.
    pub(crate) fn ended(self, conduct: Conduct) {
        let now = self.admission.now();
        self.finish_at(now, conduct);
    }

    /// Like [`ended`](Self::ended), at `now`.
    fn finish_at(self, now: Instant, conduct: Conduct) {
        if conduct == Conduct::Abusive && self.is_counted {
            self.admission
                .lock()
                .sources
                .record_abuse(now, self.address);
        }
    }
}

impl Drop for AdmissionPermit {
    fn drop(&mut self) {
        let mut table = self.admission.lock();
        if self.is_counted {
            table.sources.release(self.address);
        }
        table.slots.release(self.address, self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(change: impl FnOnce(&mut AdmissionLimits)) -> Admission {
        let mut limits = AdmissionLimits::default();
        change(&mut limits);
        Admission::new(limits, LimitHits::default())
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn one_connection_too_many_from_an_address_is_closed_and_others_are_not() {
        let door = door(|limits| limits.per_address = 2);
        let (one, other) = (ip("192.0.2.1"), ip("192.0.2.2"));
        let first = door.admit(ms(0), one).expect("the first");
        let _second = door.admit(ms(0), one).expect("the second");
        let met = door.admit(ms(0), one).expect_err("one too many");
        assert_eq!(met, ConnectionLimit::ConnectionsPerAddress);
        assert_eq!(door.hits.of(met), 1);
        door.admit(ms(0), other).expect("another address");
        first.finish_at(ms(1), Conduct::Fair);
        door.admit(ms(1), one).expect("one connection has ended");
    }

    #[test]
    fn a_trusted_proxy_has_no_limits_per_address() {
        let door = door(|limits| (limits.per_address, limits.abuses) = (1, 1));
        let proxy = ip("192.0.2.1");
        let all: Vec<_> = (0..3).map(|_| door.admit_trusted_proxy(proxy)).collect();
        for admitted in all {
            admitted.finish_at(ms(0), Conduct::Abusive);
        }
        let counted = door
            .admit(ms(1), proxy)
            .expect("the connection was not counted");
        drop(door.admit_trusted_proxy(proxy));
        let met = door
            .admit(ms(1), proxy)
            .expect_err("one connection is open");
        assert_eq!(met, ConnectionLimit::ConnectionsPerAddress);
        drop(counted);
    }

    #[tokio::test]
    async fn full_table_evicts_the_longest_idle_of_the_busiest_address() {
        use futures_util::FutureExt;
        let door = door(|limits| limits.connections = 5);
        let mut held = Vec::new();
        for (address, count) in [("192.0.2.1", 1), ("192.0.2.2", 3), ("192.0.2.3", 1)] {
            for _ in 0..count {
                let permit = door.wait_for_place().await;
                let admitted = door.admit(ms(0), ip(address)).expect("a place");
                held.push((admitted, permit));
            }
        }
        let slot = |n: usize| held[n].0.slot();
        let evicted = || (0..5).filter(|n| held[*n].0.slot().evicted().now_or_never().is_some());
        // For the second address, the first connection is busy, and the second was busy recently.
        let _busy = slot(1).exchange();
        drop(slot(2).exchange());
        assert_eq!(
            evicted().count(),
            0,
            "all slots are in use and no connection waits"
        );
        let mut first = Box::pin(door.wait_for_place());
        assert!((&mut first).now_or_never().is_none());
        assert_eq!(evicted().collect::<Vec<_>>(), [3]);
        let mut next = Box::pin(door.wait_for_place());
        assert!((&mut next).now_or_never().is_none());
        assert_eq!(evicted().collect::<Vec<_>>(), [2, 3]);
        // The other addresses have one connection each, and that of the first has been idle for longest.
        let mut last = Box::pin(door.wait_for_place());
        assert!((&mut last).now_or_never().is_none());
        assert_eq!(evicted().collect::<Vec<_>>(), [0, 2, 3]);
        assert_eq!(door.hits.of(ConnectionLimit::IdleEviction), 3);
        assert_eq!(door.hits.of(ConnectionLimit::MaxConnections), 3);
    }

    #[tokio::test]
    async fn no_connection_is_evicted_when_evict_idle_is_off() {
        use futures_util::FutureExt;
        let door = door(|limits| (limits.connections, limits.evict_idle) = (1, false));
        let _permit = door.wait_for_place().await;
        let admitted = door.admit(ms(0), ip("192.0.2.1")).expect("a place");
        assert!(door.wait_for_place().now_or_never().is_none());
        assert!(admitted.slot().evicted().now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_waiting_connection_is_counted_and_admitted_later() {
        use futures_util::FutureExt;
        let door = door(|limits| limits.connections = 1);
        let first = door.wait_for_place().await;
        assert_eq!(door.hits.of(ConnectionLimit::MaxConnections), 0);
        let mut second = Box::pin(door.wait_for_place());
        assert!((&mut second).now_or_never().is_none());
        assert_eq!(door.hits.of(ConnectionLimit::MaxConnections), 1);
        drop(first);
        assert!((&mut second).now_or_never().is_some());
    }
}
