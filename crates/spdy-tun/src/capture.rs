//! The packets of a link, kept: each once, with the instants at which it came and went.
//!
//! ```text
//!  read from the sender's device ──► the link ──► written to the receiver's     Fate::Written(when)
//!                                        └──► taken: queue, chance, device      Fate::Taken(by)
//! ```
//!
//! That is more than a capture at either end tells: what the link took is in it, with the reason.

use spdy_clock::Instant;
use spdy_netem::path::Direction;

/// What the link did with a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PacketOutcome {
    /// It is on its way.
    InFlight,
    /// The receiver's device has it since then.
    Delivered(Instant),
    /// It never came.
    Dropped(DropReason),
}

/// What took a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DropReason {
    /// The queue was full.
    QueueFull,
    /// Chance.
    Lost,
    /// The receiver's device did not take it.
    Refused,
}

/// A packet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CapturedPacket {
    /// When it was read from the sender's device.
    pub read: Instant,
    /// Which way it went.
    pub way: Direction,
    /// What became of it.
    pub outcome: PacketOutcome,
    /// Its bytes, from the IP header on.
    pub packet: Vec<u8>,
}

/// What a packet takes beside its own bytes: when it came and went, and where it lies.
const RECORD_BYTES: usize = size_of::<CapturedPacket>();

/// Packets in the order in which they were read.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    packets: Vec<CapturedPacket>,
    bytes: usize,
    limit_bytes: usize,
    left_out: u64,
}

impl Capture {
    /// An empty one that keeps packets until they, and what is known of each, have `limit_bytes`.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            ..Self::default()
        }
    }

    /// What it kept.
    #[must_use]
    pub fn packets(&self) -> &[CapturedPacket] {
        &self.packets
    }

    /// Packets that had no room: from the first of them on, nothing was kept.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Keeps `packet`; its number, or `None` if there is no room.
    pub(crate) fn read(&mut self, now: Instant, way: Direction, packet: &[u8]) -> Option<usize> {
        let bytes = self.bytes + packet.len() + RECORD_BYTES;
        if bytes > self.limit_bytes || self.left_out > 0 {
            self.left_out += 1;
            return None;
        }
        self.bytes = bytes;
        self.packets.push(CapturedPacket {
            read: now,
            way,
            outcome: PacketOutcome::InFlight,
            packet: packet.to_vec(),
        });
        Some(self.packets.len() - 1)
    }

    pub(crate) fn written(&mut self, number: usize, now: Instant) {
        self.packets[number].outcome = PacketOutcome::Delivered(now);
    }

    pub(crate) fn record_drop(&mut self, number: usize, by: DropReason) {
        self.packets[number].outcome = PacketOutcome::Dropped(by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_past_the_byte_limit_are_only_counted() {
        let mut capture = Capture::new(150 + 2 * RECORD_BYTES);
        let mut read = |len| capture.read(Instant::ZERO, Direction::Up, &vec![0; len]);
        assert_eq!([read(100), read(50), read(0)], [Some(0), Some(1), None]);
        assert_eq!(read(0), None, "a capture has no gaps");
        assert_eq!((capture.packets().len(), capture.left_out()), (2, 2));
        let mut capture = Capture::new(149 + 2 * RECORD_BYTES);
        let mut read = |len| capture.read(Instant::ZERO, Direction::Up, &vec![0; len]);
        assert_eq!([read(100), read(50)], [Some(0), None]);
    }
}
