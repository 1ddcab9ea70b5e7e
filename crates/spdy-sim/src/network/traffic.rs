//! What crossed the network, as a capture on the client's machine would count it.

use std::time::Duration;

use spdy_clock::Instant;
use spdy_netem::path::Direction;

/// Counts of one run. An uplink packet counts when the client sends it, also if the link then drops it; a
/// downlink packet counts when it reaches the client: what `tshark` on the client sees.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Traffic {
    /// IP packets from the client, name look-ups included.
    pub packets_up: u64,
    /// IP packets to the client.
    pub packets_down: u64,
    /// Their bytes, IP headers included.
    pub bytes_up: u64,
    /// Their bytes, IP headers included.
    pub bytes_down: u64,
    /// Packets that a full queue dropped, both ways.
    pub queue_drops: u64,
    /// Packets that chance took, both ways.
    pub losses: u64,
    /// Connections that the client began, of TCP or QUIC.
    pub connections: u64,
    /// Name look-ups that the client began.
    pub lookups: u64,
    /// When the first and the last packet were seen at the client.
    pub first_and_last: Option<(Instant, Instant)>,
}

impl Traffic {
    /// From the first packet to the last.
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
