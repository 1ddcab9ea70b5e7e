//! The parsers of `spdy-inspect`: capture files, packets, and the raw bytes of a connection.
//!
//! - How a file is split changes nothing.
//! - How TCP splits the bytes of a connection changes nothing.
//! - No more memory is held than the limits allow.

use bytes::{BufMut, BytesMut};
use spdy_frame::version::Version;
use spdy_inspect::capture::{Reader, Record};
use spdy_inspect::event::EventKind;
use spdy_inspect::inspector::{Inspector, Options};
use spdy_inspect::limits::Limits;

use crate::choices::Choices;
use crate::memory;

/// Bytes of heap for an inspection: inflaters of about 50 KiB for each direction of each connection, and what
/// the limits allow to be buffered.
const MAX_HEAP_BYTES: usize = 8 << 20;

fn options(choices: &mut Choices<'_>) -> Options {
    Options {
        limits: Limits {
            record_bytes: 64 << 10,
            interfaces: 4,
            connections: 8,
            held_bytes: choices.pick(&[64 << 10, 100]),
            total_held_bytes: choices.pick(&[128 << 10, 200]),
            waiting_bytes: choices.pick(&[64 << 10, 100]),
            http_head_bytes: 4 << 10,
            handshake_message_bytes: 8 << 10,
            secrets: 10,
            streams: 8,
            findings: 8,
            payload_shown_bytes: choices.pick(&[0, 16]),
        },
        version: choices.pick(&[
            None,
            Some(Version::V2),
            Some(Version::V3),
            Some(Version::V31),
        ]),
        ..Options::default()
    }
}

/// Decodes the wire as a capture file, whole and split.
pub fn check_file(input: &[u8]) {
    let (mut choices, file) = Choices::split(input);
    let options = options(&mut choices);
    memory::at_most(MAX_HEAP_BYTES + 200 * file.len(), || {
        let whole = read(&options, &[file]);
        assert_eq!(read(&options, &choices.cut(file)), whole, "cut");
    });
}

/// The report of a capture in `pieces`, and its end.
fn read(options: &Options, pieces: &[&[u8]]) -> (Vec<String>, String) {
    let mut inspector = Inspector::new(options.clone());
    let mut reader = Reader::new(options.limits.clone());
    let mut report = Vec::new();
    for piece in pieces {
        reader.push(piece);
        while let Ok(Some(record)) = reader.poll() {
            if let Record::Packet { bytes, .. } = &record {
                assert!(bytes.len() <= options.limits.record_bytes);
            }
            inspector.record(&record);
            drain(&mut inspector, options, &mut report);
        }
    }
    let end = format!(
        "{:?} {:?} {:?}",
        reader.poll(),
        reader.finish(),
        inspector.counts()
    );
    inspector.finish();
    drain(&mut inspector, options, &mut report);
    (report, end)
}

/// Uses the wire as the two raw streams of a connection, unchanged and in TCP segments.
pub fn check_streams(input: &[u8]) {
    let (mut choices, wire) = Choices::split(input);
    let options = options(&mut choices);
    let client_len = usize::from(u16::from_be_bytes([choices.byte(), choices.byte()]));
    let (client, server) = wire.split_at(client_len.min(wire.len()));
    memory::at_most(MAX_HEAP_BYTES + 400 * wire.len(), || {
        let mut inspector = Inspector::new(options.clone());
        inspector.streams(client, server);
        drain(&mut inspector, &options, &mut Vec::new());

        // Buffered bytes are checked once per segment, so a low limit would depend on how they were split.
        let mut options = options.clone();
        options.limits.waiting_bytes = 64 << 10;
        let whole = segments(&options, &[client], &[server]);
        let cut = segments(&options, &choices.cut(client), &choices.cut(server));
        assert_eq!(cut, whole, "cut");
    });
}

/// The report of a connection whose client sends all its bytes before its server does.
fn segments(options: &Options, client: &[&[u8]], server: &[&[u8]]) -> Vec<String> {
    const SYN: u8 = 2;
    const ACK: u8 = 16;
    /// Longer ones would not fit into a packet.
    const LONGEST: usize = 60_000;
    let mut inspector = Inspector::new(options.clone());
    let mut report = Vec::new();
    let mut send = |by_client: bool, seq: u32, flags: u8, payload: &[u8]| {
        inspector.record(&packet(by_client, seq, flags, payload));
        drain(&mut inspector, options, &mut report);
    };
    send(true, 0, SYN, &[]);
    send(false, 0, SYN | ACK, &[]);
    for (by_client, pieces) in [(true, client), (false, server)] {
        let mut seq = 1;
        for piece in pieces {
            for piece in piece.chunks(LONGEST) {
                send(by_client, seq, ACK, piece);
                seq += piece.len() as u32;
            }
        }
    }
    inspector.finish();
    drain(&mut inspector, options, &mut report);
    report
}

/// An IPv4 packet with a TCP segment (RFC 791 §3.1, RFC 9293 §3.1).
fn packet(by_client: bool, seq: u32, flags: u8, payload: &[u8]) -> Record {
    const LINKTYPE_RAW: u32 = 101;
    let ends = [([10, 0, 0, 1], 40_000_u16), ([10, 0, 0, 2], 443)];
    let [from, to] = if by_client { ends } else { [ends[1], ends[0]] };
    let mut bytes = BytesMut::new();
    bytes.put_u16(0x4500);
    bytes.put_u16((40 + payload.len()) as u16);
    bytes.put_u64(0x0000_0000_4006_0000);
    bytes.put_slice(&from.0);
    bytes.put_slice(&to.0);
    bytes.put_u16(from.1);
    bytes.put_u16(to.1);
    bytes.put_u32(seq);
    bytes.put_u32(0);
    bytes.put_slice(&[0x50, flags]);
    bytes.put_u16(0xffff);
    bytes.put_u32(0);
    bytes.put_slice(payload);
    Record::Packet {
        unix_nanos: 0,
        link: LINKTYPE_RAW,
        bytes: bytes.freeze(),
        cut: false,
    }
}

fn drain(inspector: &mut Inspector, options: &Options, report: &mut Vec<String>) {
    while let Some(mut event) = inspector.poll_event() {
        if let EventKind::SessionEnd(summary) = &mut event.what {
            assert!(summary.findings.len() <= options.limits.findings);
            assert!(summary.streams.len() <= options.limits.streams);
            // Their number depends on how the input was split.
            summary.segments = Default::default();
        }
        report.push(format!("{event:?}"));
    }
}
