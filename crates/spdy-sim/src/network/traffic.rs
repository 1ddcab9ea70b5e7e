//! Traffic of the network, as a capture on the client's machine counts it.

use std::time::Duration;

use spdy_clock::Instant;
use spdy_netem::path::Direction;

/// Counts of one run, as `tshark` on the client sees them. An uplink packet counts when the client sends it, even if the link then
/// drops it. A downlink packet counts when it reaches the client.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Traffic {
    /// IP packets from the client, including name lookups.
    pub packets_up: u64,
    /// IP packets to the client.
    pub packets_down: u64,
    /// Their bytes, IP headers included.
    pub bytes_up: u64,
    /// Their bytes, IP headers included.
    pub bytes_down: u64,
    /// Packets that a full queue dropped, in both directions.
    pub queue_drops: u64,
    /// Packets lost by random loss, in both directions.
    pub losses: u64,
    /// Number of connections that the client started, of TCP or QUIC.
    pub connections: u64,
    /// Number of name lookups that the client started.
    pub lookups: u64,
    /// Times of the first and the last packet at the client.
    pub first_and_last: Option<(Instant, Instant)>,
}

impl Traffic {
    /// From the first packet to the last packet.
    #[must_use]
    pub fn time_on_wire(&self) -> Duration {
        self.first_and_last
            .map_or(Duration::ZERO, |(first, last)| last - first)
    }

    pub(crate) fn count(&mut self, now: Instant, way: Direction, len_bytes: usize) {
        let (packets, bytes) = match way {
            Direction::Up => (&mut self.packets_up, &mut self.bytes_up),
            Direction::Down => (&mut self.packets_down, &mut self.bytes_down),
        };
        *packets += 1;
        *bytes += len_bytes as u64;
        let first = self.first_and_last.map_or(now, |(first, _)| first);
        self.first_and_last = Some((first, now));
    }
}
