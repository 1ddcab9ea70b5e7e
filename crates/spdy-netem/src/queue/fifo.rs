//! Packets that wait in a queue, in the order of their arrival.

use std::collections::VecDeque;

use spdy_clock::Instant;

use super::flow::FlowKey;

/// Bytes of a link-layer header. Linux counts it in the length of a packet: queues before an Ethernet device have 1,514 bytes for an MTU of
/// 1,500.
const LINK_HEADER_BYTES: u64 = 14;

/// Number of a packet that waits in a queue.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Ticket(pub(crate) u64);

/// A packet that waits in a queue.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WaitingPacket {
    /// Its number.
    pub ticket: Ticket,
    /// Its flow.
    pub flow: FlowKey,
    /// Its length with the IP header.
    pub len_bytes: usize,
    /// When it arrived.
    pub since: Instant,
}

impl WaitingPacket {
    /// Its length in the accounts of a queue: with a link-layer header.
    pub(super) const fn queued_bytes(&self) -> u64 {
        self.len_bytes as u64 + LINK_HEADER_BYTES
    }
}

/// Packets in the order of their arrival, and their bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Fifo {
    packets: VecDeque<WaitingPacket>,
    pub(super) bytes: u64,
}

impl Fifo {
    pub(super) fn push(&mut self, packet: WaitingPacket, total: &mut Backlog) {
        self.bytes += packet.queued_bytes();
        total.bytes += packet.queued_bytes();
        total.packets += 1;
        self.packets.push_back(packet);
    }

    pub(super) fn pop(&mut self, total: &mut Backlog) -> Option<WaitingPacket> {
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.queued_bytes();
        total.bytes -= packet.queued_bytes();
        total.packets -= 1;
        Some(packet)
    }
}

/// Everything that waits in a queue, in all its flows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backlog {
    pub(super) bytes: u64,
    pub(super) packets: usize,
}
