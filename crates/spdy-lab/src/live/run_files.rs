//! Files of a browser's load for other programs: a HAR, a capture that contains its secrets, a screenshot and a filmstrip.
//!
//! ```text
//!  interface "client"   packets in a capture at the client          up: when sent    down: when received
//!  interface "taken"    packets to the client that the link dropped                  down: when they would have been sent
//!  secrets              TLS and QUIC of every connection, before the first packet
//! ```
//!
//! So every packet occurs once; a dropped one has the reason as a comment. HAR and capture have the same time of day.

use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use spdy_inspect::pcapng_writer::{PacketDirection, PcapngWriter};
use spdy_netem::path::Direction;
use spdy_tun::capture::{Capture, CapturedPacket, DropReason, PacketOutcome};

use crate::live::filmstrip::Filmstrip;

/// Maximum bytes of stored packets of a load, with their metadata.
pub const CAPTURE_BYTES: usize = 256 << 20;

/// Sources of the files of one load, besides its recording, which is the HAR.
#[derive(Clone, Debug)]
pub struct RunFiles {
    /// The packets of the link.
    pub capture: Capture,
    /// The time of day at the origin of the capture's instants.
    pub origin: SystemTime,
    /// Secrets of TLS and QUIC that decrypt it, in the format of `SSLKEYLOGFILE`; empty without encryption.
    pub key_log: Vec<u8>,
    /// The window when the page was quiet, if the browser rendered one.
    pub png: Option<Vec<u8>>,
    /// The window at each change.
    pub filmstrip: Filmstrip,
}

impl RunFiles {
    /// Number of packets past [`CAPTURE_BYTES`], which are not stored.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.capture.left_out()
    }

    /// Writes the packets with their secrets to `out`, one by one: the file is never in memory.
    ///
    /// # Errors
    ///
    /// Errors of `out`.
    pub fn write_pcapng(&self, out: impl Write) -> io::Result<()> {
        let mut file = PcapngWriter::new(out, concat!("spdy ", env!("CARGO_PKG_VERSION")))?;
        let client = file.interface("client", "every packet at the client's device")?;
        let taken = file.interface("taken", "packets to the client that the link dropped")?;
        if !self.key_log.is_empty() {
            file.tls_secrets(&self.key_log)?;
        }
        let since_1970 = self.origin.duration_since(SystemTime::UNIX_EPOCH);
        let since_1970 = since_1970.unwrap_or(Duration::ZERO); // a clock before 1970 has no valid time of day
        let mut seen: Vec<_> = self.capture.packets().iter().filter_map(seen).collect();
        seen.sort_by_key(|seen| seen.at);
        for PacketRecord { at, packet, reason } in seen {
            let nanos = since_1970 + Duration::from_nanos(at.as_nanos());
            let nanos = u64::try_from(nanos.as_nanos()).unwrap_or(u64::MAX);
            let (interface, passes) = match (packet.way, reason) {
                (Direction::Up, _) => (client, PacketDirection::Out),
                (Direction::Down, None) => (client, PacketDirection::In),
                (Direction::Down, Some(_)) => (taken, PacketDirection::In),
            };
            file.packet(interface, nanos, passes, &packet.packet, reason)?;
        }
        file.finish().map(drop)
    }
}

/// A packet in the file.
struct PacketRecord<'a> {
    at: spdy_clock::Instant,
    packet: &'a CapturedPacket,
    /// Why it did not arrive.
    reason: Option<&'static str>,
}

/// Returns `None` for a packet that was in transit at the end of the capture.
fn seen(packet: &CapturedPacket) -> Option<PacketRecord<'_>> {
    let reason = match packet.outcome {
        PacketOutcome::Dropped(DropReason::Queue) => Some("dropped by the queue of the link"),
        PacketOutcome::Dropped(DropReason::Lost) => Some("dropped by the link: random loss"),
        PacketOutcome::Dropped(DropReason::Refused) => Some("dropped by the receiver's device"),
        PacketOutcome::InFlight | PacketOutcome::Delivered(_) => None,
    };
    let at = match (packet.way, packet.outcome) {
        (Direction::Up, _) | (Direction::Down, PacketOutcome::Dropped(_)) => packet.read,
        (Direction::Down, PacketOutcome::Delivered(at)) => at,
        (Direction::Down, PacketOutcome::InFlight) => return None,
    };
    Some(PacketRecord { at, packet, reason })
}

#[cfg(test)]
mod tests {
    use spdy_clock::Instant;
    use spdy_inspect::capture::{Reader, Record};
    use spdy_inspect::limits::Limits;
    use spdy_netem::path::PathConfig;
    use spdy_netem::queue::QueueConfig;
    use spdy_tun::emulator::Emulator;

    use super::*;

    #[test]
    fn each_packet_is_captured_once_at_receipt_or_drop() {
        const MS: Duration = Duration::from_millis(1);
        let config = PathConfig {
            queue: QueueConfig::packets(2),
            ..PathConfig::new(8_000_000, 8_000, 20 * MS)
        };
        let mut emulator = Emulator::new(&config, 1, Instant::ZERO);
        emulator.start_capture(10_000);
        for number in 0..3 {
            emulator.offer(
                Instant::from_millis(1),
                Direction::Down,
                &[0x40 + number; 50],
            );
        }
        emulator.offer(Instant::from_millis(2), Direction::Up, &[0x43; 50]);
        let end = Instant::from_millis(500);
        while let Some(delivery) = emulator.poll_delivery(end) {
            emulator.handle_written(&delivery, delivery.due, true);
        }
        emulator.offer(end, Direction::Down, &[0x44; 50]);
        let run_files = RunFiles {
            capture: emulator.end_capture(),
            origin: SystemTime::UNIX_EPOCH + 7 * MS,
            key_log: b"keys".to_vec(),
            png: None,
            filmstrip: Filmstrip::default(),
        };
        let mut file = Vec::new();
        run_files.write_pcapng(&mut file).unwrap();
        let mut reader = Reader::new(Limits::default());
        reader.push(&file);
        let mut records = Vec::new();
        while let Some(record) = reader.poll().unwrap() {
            records.push(match record {
                Record::Secrets(secrets) => (secrets[0], 0),
                Record::Packet {
                    unix_nanos, bytes, ..
                } => (bytes[0], unix_nanos / 1_000_000),
            });
        }
        let expected = [(b'k', 0), (0x42, 8), (0x43, 9), (0x40, 68), (0x41, 118)];
        assert_eq!(records, expected);
        let comment = b"dropped by the queue of the link";
        let count = file
            .windows(comment.len())
            .filter(|it| it == comment)
            .count();
        assert_eq!(count, 1);
    }
}
