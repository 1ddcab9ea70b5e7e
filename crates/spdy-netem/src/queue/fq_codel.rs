//! FQ-CoDel: a queue with CoDel for each flow, and turns between the flows (RFC 8290), as in Linux.
//!
//! ```text
//!               | hash of the flow |      new flows   [3] [871]    served first, once with a quantum of bytes
//! packet --->   |  1,024 queues    | -->  old flows   [17] [4]     then in turn, a quantum of bytes for each
//! ```
//!
//! A flow that sends less than its share has no queue when its next packet comes, so it is new again and served first.
//!
//! Linux also limits memory to 32 MB. Here 10,240 packets of at most 1,500 bytes reach the limit of packets first.

use std::collections::VecDeque;

use spdy_clock::Instant;

use super::codel::CoDel;
use super::fifo::{Backlog, Fifo, Ticket, WaitingPacket};

/// Number of queues (RFC 8290 §5.2).
pub const QUEUES: usize = 1_024;
/// Bytes that a flow may send in its turn: a packet of Ethernet (RFC 8290 §5.2).
pub const QUANTUM_BYTES: i64 = 1_514;
/// Capacity of all queues together, packets (RFC 8290 §5.2).
pub const CAPACITY_PACKETS: usize = 10_240;
/// Most packets that a full queue drops at once (RFC 8290 §5.2).
pub const DROP_BATCH_PACKETS: usize = 64;

#[derive(Clone, Debug, Default)]
struct Flow {
    fifo: Fifo,
    codel: CoDel,
    /// Bytes that it may still send in this turn; negative if its last packet was longer.
    credit_bytes: i64,
    /// It is in the list of new or of old flows.
    is_listed: bool,
}

/// A queue for each flow.
#[derive(Clone, Debug)]
pub struct FqCoDel {
    flows: Vec<Flow>,
    new_flows: VecDeque<usize>,
    old_flows: VecDeque<usize>,
    total: Backlog,
}

impl Default for FqCoDel {
    fn default() -> Self {
        Self {
            flows: vec![Flow::default(); QUEUES],
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            total: Backlog::default(),
        }
    }
}

impl FqCoDel {
    pub(super) fn push(&mut self, packet: WaitingPacket, dropped: &mut Vec<Ticket>) {
        let number = packet.flow.queue_of(QUEUES);
        let flow = &mut self.flows[number];
        flow.fifo.push(packet, &mut self.total);
        if !flow.is_listed {
            flow.is_listed = true;
            flow.credit_bytes = QUANTUM_BYTES;
            self.new_flows.push_back(number);
        }
        if self.total.packets > CAPACITY_PACKETS {
            self.drop_from_fattest(dropped);
        }
    }

    pub(super) fn pop(&mut self, now: Instant, dropped: &mut Vec<Ticket>) -> Option<WaitingPacket> {
        loop {
            let is_new = !self.new_flows.is_empty();
            let list = if is_new {
                &mut self.new_flows
            } else {
                &mut self.old_flows
            };
            let number = list.pop_front()?;
            let flow = &mut self.flows[number];
            if flow.credit_bytes <= 0 {
                flow.credit_bytes += QUANTUM_BYTES;
                self.old_flows.push_back(number);
                continue;
            }
            let packet = flow
                .codel
                .pop(now, &mut flow.fifo, &mut self.total, dropped);
            match packet {
                Some(packet) => {
                    flow.credit_bytes -= packet.queued_bytes() as i64; // at most 65,549
                    let list = if is_new {
                        &mut self.new_flows
                    } else {
                        &mut self.old_flows
                    };
                    list.push_front(number);
                    return Some(packet);
                }
                // An empty new flow becomes an old one, so that it cannot always be served before those (RFC 8290 §4.2).
                None if is_new && !self.old_flows.is_empty() => self.old_flows.push_back(number),
                None => flow.is_listed = false,
            }
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.total.packets == 0
    }

    /// Drops half of the bytes of the flow with the most bytes, at most [`DROP_BATCH_PACKETS`] packets (RFC 8290 §4.1).
    fn drop_from_fattest(&mut self, dropped: &mut Vec<Ticket>) {
        // The first of several: `max_by_key` returns the last.
        let fattest = self
            .flows
            .iter_mut()
            .rev()
            .max_by_key(|flow| flow.fifo.bytes);
        let flow = fattest.expect("there are queues");
        let half = flow.fifo.bytes / 2;
        let before = flow.fifo.bytes;
        let mut packets = 0;
        while packets < DROP_BATCH_PACKETS
            && (packets == 0 || before - flow.fifo.bytes < half)
            && let Some(packet) = flow.fifo.pop(&mut self.total)
        {
            dropped.push(packet.ticket);
            packets += 1;
        }
        flow.codel.count_overflow(packets as u32); // at most a batch
    }
}
