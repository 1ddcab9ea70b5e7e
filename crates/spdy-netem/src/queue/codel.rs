//! CoDel: controlled delay (RFC 8289), as in Linux.
//!
//! A packet's delay is the time that it waited. If the delay of every packet of [`INTERVAL`] was at least [`TARGET`], CoDel drops a packet
//! when it would be sent, and then further ones, at intervals that become shorter with the square root of their number.
//!
//! ```text
//! delay |          .---'--.___              drop: when the delay was too long for an interval,
//!       |       .-'  |    |  |'--.          then after interval/sqrt(1), interval/sqrt(2), ..
//! target|----.-'-----|----|--|--|-'--.----
//!       |__.'________drop_drop___drop_'.___ time
//! ```

use std::time::Duration;

use spdy_clock::Instant;

use super::fifo::{Backlog, Fifo, Ticket, WaitingPacket};

/// Delay that a queue may always have (RFC 8289 §4.3).
pub const TARGET: Duration = Duration::from_millis(5);
/// How long the delay must be above [`TARGET`] before the first drop: about the longest round trip (RFC 8289 §4.3).
pub const INTERVAL: Duration = Duration::from_millis(100);
/// Linux's capacity of a queue with CoDel alone, packets (tc-codel(8)).
pub const CAPACITY_PACKETS: usize = 1_000;

/// A queue with at most this many bytes has no standing delay: it is one packet, which the link sends next.
const ONE_PACKET_BYTES: u64 = 1_514;
/// A new dropping state within this many intervals of the last drop continues at its rate (RFC 8289 §5.5).
const RESUME_INTERVALS: u32 = 16;

/// The decisions about one flow.
#[derive(Clone, Debug, Default)]
pub(super) struct CoDel {
    /// If the delay is above the target: when it was for a whole interval.
    first_above: Option<Instant>,
    /// The last packet was dropped, or the delay has not been below the target since.
    is_dropping: bool,
    /// Time of the next drop, or of the last planned one.
    drop_next: Instant,
    /// Drops of this dropping state.
    count: u32,
    /// `count` when this dropping state began.
    last_count: u32,
}

impl CoDel {
    /// Removes the next packet of `fifo` to send, and drops those before it that must be dropped. `total` has the packets of all flows.
    pub(super) fn pop(
        &mut self,
        now: Instant,
        fifo: &mut Fifo,
        total: &mut Backlog,
        dropped: &mut Vec<Ticket>,
    ) -> Option<WaitingPacket> {
        let Some(mut packet) = fifo.pop(total) else {
            self.is_dropping = false;
            return None;
        };
        let must_drop = self.must_drop(now, &packet, *total);
        if self.is_dropping {
            self.is_dropping = must_drop;
            while self.is_dropping && now >= self.drop_next {
                self.count = self.count.wrapping_add(1);
                packet = self.drop_and_pop(now, packet, fifo, total, dropped)?;
                if self.is_dropping {
                    self.drop_next += spacing(self.count);
                }
            }
        } else if must_drop {
            let next = self.drop_and_pop(now, packet, fifo, total, dropped);
            self.begin_dropping(now);
            packet = next?;
        }
        Some(packet)
    }

    /// Drops `packet` and removes the next one. Ends the dropping state if that one must not be dropped.
    fn drop_and_pop(
        &mut self,
        now: Instant,
        packet: WaitingPacket,
        fifo: &mut Fifo,
        total: &mut Backlog,
        dropped: &mut Vec<Ticket>,
    ) -> Option<WaitingPacket> {
        dropped.push(packet.ticket);
        let next = fifo.pop(total);
        self.is_dropping = match &next {
            Some(next) => self.must_drop(now, next, *total),
            None => {
                self.first_above = None;
                false
            }
        };
        next
    }

    fn begin_dropping(&mut self, now: Instant) {
        self.is_dropping = true;
        let last = self.count.wrapping_sub(self.last_count);
        let is_recent = now - self.drop_next < INTERVAL * RESUME_INTERVALS;
        self.count = if last > 1 && is_recent { last } else { 1 };
        self.last_count = self.count;
        self.drop_next = now + spacing(self.count);
    }

    /// True if the delay was above the target for an interval.
    fn must_drop(&mut self, now: Instant, packet: &WaitingPacket, total: Backlog) -> bool {
        if now - packet.since < TARGET || total.bytes <= ONE_PACKET_BYTES {
            self.first_above = None;
            return false;
        }
        let first_above = *self.first_above.get_or_insert(now + INTERVAL);
        now > first_above
    }

    /// Counts packets that a full queue dropped, so that the next drops come earlier.
    pub(super) const fn count_overflow(&mut self, packets: u32) {
        self.count = self.count.wrapping_add(packets);
    }
}

/// Time between two drops: the interval, divided by the square root of the number of drops.
fn spacing(count: u32) -> Duration {
    let interval_ns = INTERVAL.as_nanos() as u64;
    let nanos = (interval_ns * interval_ns / u64::from(count.max(1))).isqrt();
    Duration::from_nanos(nanos)
}

/// A queue with CoDel for all packets together.
#[derive(Clone, Debug, Default)]
pub struct CoDelQueue {
    fifo: Fifo,
    total: Backlog,
    codel: CoDel,
}

impl CoDelQueue {
    pub(super) fn push(&mut self, packet: WaitingPacket, dropped: &mut Vec<Ticket>) {
        if self.total.packets < CAPACITY_PACKETS {
            self.fifo.push(packet, &mut self.total);
        } else {
            dropped.push(packet.ticket);
        }
    }

    pub(super) fn pop(&mut self, now: Instant, dropped: &mut Vec<Ticket>) -> Option<WaitingPacket> {
        self.codel
            .pop(now, &mut self.fifo, &mut self.total, dropped)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.total.packets == 0
    }
}
