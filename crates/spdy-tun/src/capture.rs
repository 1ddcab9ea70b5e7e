//! Captures the packets of a link: each once, with the times at which it entered and left the link.
//!
//! ```text
//!  read from the sender's device ──► the link ──► written to the receiver's     Delivered(when)
//!                                        └──► dropped: queue, loss, device      Dropped(reason)
//! ```
//!
//! Unlike a capture at either end, it includes the packets that the link dropped, with the reason.

use spdy_clock::Instant;
use spdy_netem::path::Direction;

/// The fate of a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PacketOutcome {
    /// The packet is in flight.
    InFlight,
    /// The packet was written to the receiver's device at this time.
    Delivered(Instant),
    /// The packet was dropped.
    Dropped(DropReason),
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DropReason {
    /// The queue was full, or CoDel dropped the packet.
    Queue,
    /// Random loss.
    Lost,
    /// The receiver's device rejected it.
    Refused,
}

/// A captured packet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CapturedPacket {
    /// When it was read from the sender's device.
    pub read: Instant,
    /// Direction of the packet.
    pub way: Direction,
    /// The fate of the packet.
    pub outcome: PacketOutcome,
    /// The packet's bytes, from the IP header on.
    pub packet: Vec<u8>,
}

/// Memory of a packet's metadata, bytes.
const RECORD_BYTES: usize = size_of::<CapturedPacket>();

/// Captured packets, in the order in which they were read.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    packets: Vec<CapturedPacket>,
    bytes: usize,
    limit_bytes: usize,
    left_out: u64,
}

impl Capture {
    /// An empty capture that stores packets until they and their metadata use `limit_bytes`.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            ..Self::default()
        }
    }

    /// The stored packets.
    #[must_use]
    pub fn packets(&self) -> &[CapturedPacket] {
        &self.packets
    }

    /// Number of packets that were not stored: after the first that does not fit, no packet is stored.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Stores `packet`. Returns its index, or `None` if there is no room.
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
