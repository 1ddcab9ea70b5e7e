//! Queues that decide about a packet when the link is free for it.

use spdy_clock::Instant;

use super::codel::CoDelQueue;
use super::fifo::{Ticket, WaitingPacket};
use super::fq_codel::FqCoDel;

/// A queue that decides about a packet when the link is free for it.
#[derive(Clone, Debug)]
pub enum ManagedQueue {
    /// One flow.
    CoDel(CoDelQueue),
    /// A queue for each flow.
    FqCoDel(FqCoDel),
}

impl ManagedQueue {
    /// An empty queue with CoDel.
    #[must_use]
    pub fn codel() -> Self {
        Self::CoDel(CoDelQueue::default())
    }

    /// An empty queue with FQ-CoDel.
    #[must_use]
    pub fn fq_codel() -> Self {
        Self::FqCoDel(FqCoDel::default())
    }

    /// Adds a packet. The tickets of packets that a full queue drops are added to `dropped`; the new packet may be one of them.
    pub fn push(&mut self, packet: WaitingPacket, dropped: &mut Vec<Ticket>) {
        match self {
            Self::CoDel(queue) => queue.push(packet, dropped),
            Self::FqCoDel(queue) => queue.push(packet, dropped),
        }
    }

    /// Removes the packet that is sent at `now`. The tickets of packets that are dropped before it are added to `dropped`. Calls come in
    /// order of `now`.
    pub fn pop(&mut self, now: Instant, dropped: &mut Vec<Ticket>) -> Option<WaitingPacket> {
        match self {
            Self::CoDel(queue) => queue.pop(now, dropped),
            Self::FqCoDel(queue) => queue.pop(now, dropped),
        }
    }

    /// True if no packet waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        match self {
            Self::CoDel(queue) => queue.is_empty(),
            Self::FqCoDel(queue) => queue.is_empty(),
        }
    }
}
