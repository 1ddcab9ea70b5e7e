//! Properties of QPACK (`spdy-h3/src/qpack`): both machines with bytes of a peer, and one with the other.
//!
//! - Any split of instructions has the same result, and memory has a limit.
//! - An accepted section is within its limit.
//! - What one end encodes, the other decodes, in any order of arrival, with any loss of whole streams.

use std::collections::BTreeMap;

use bytes::Bytes;
use spdy_h3::fuzz_api::{Field, TableDecoder, TableEncoder, section_len};

use crate::choices::Choices;
use crate::memory;

/// The kind of bytes in the input.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PeerBytes {
    /// Of an encoder stream, and sections: a record is a kind, a length, and bytes.
    Encoder,
    /// Of a decoder stream.
    Decoder,
    /// Values of fields that one end sends to the other.
    Fields,
}

impl PeerBytes {
    /// All kinds; a choice is an index.
    pub const ALL: [Self; 3] = [Self::Encoder, Self::Decoder, Self::Fields];
}

/// Kinds of records of [`PeerBytes::Encoder`].
pub const INSTRUCTIONS: u8 = 0;
/// A section.
pub const SECTION: u8 = 1;

const CAPACITIES: [u64; 4] = [4096, 100, 300, 0];
const LIMIT: usize = 4096;

/// Passes the wire as the chosen kind to the machines.
pub fn check(input: &[u8]) {
    let (mut choices, wire) = Choices::split(input);
    let kind = choices.pick(&PeerBytes::ALL);
    let capacity = choices.pick(&CAPACITIES);
    // Blocked sections are not stored here. Two decoders have a table and a part of an instruction each.
    let held = 256 * 1024 + 200 * wire.len();
    memory::at_most(held, || match kind {
        PeerBytes::Encoder => encoder(capacity, &mut choices, wire),
        PeerBytes::Decoder => decoder(capacity, &mut choices, wire),
        PeerBytes::Fields => fields(capacity, &mut choices, wire),
    });
}

/// The records of the wire: a kind, a length, and bytes.
fn records(mut wire: &[u8]) -> Vec<(u8, &[u8])> {
    let mut records = Vec::new();
    while let [kind, len, rest @ ..] = wire {
        let (bytes, rest) = rest.split_at(usize::from(*len).min(rest.len()));
        records.push((*kind % 2, bytes));
        wire = rest;
    }
    records
}

fn encoder(capacity: u64, choices: &mut Choices<'_>, wire: &[u8]) {
    let (mut whole, mut split) = (TableDecoder::new(capacity), TableDecoder::new(capacity));
    for (stream, (kind, bytes)) in (0..).zip(records(wire)) {
        if kind == SECTION {
            let section = whole.section(4 * stream, bytes, LIMIT);
            assert_eq!(split.section(4 * stream, bytes, LIMIT), section);
            if let Ok(Some(fields)) = section {
                assert!(section_len(&fields) <= LIMIT as u64);
            }
            continue;
        }
        let read = whole.instructions(bytes);
        let pieces = choices.cut(bytes);
        let pieces: Result<u32, String> = pieces.iter().map(|it| split.instructions(it)).sum();
        assert_eq!(pieces, read);
        assert_eq!(split.insert_count(), whole.insert_count());
        if read.is_err() {
            return;
        }
    }
    assert_eq!(whole.output(), split.output());
}

fn request(values: &[u8]) -> Vec<Field> {
    let names = [
        ":authority",
        "user-agent",
        "authorization",
        "referer",
        "x-token",
    ];
    let pieces = values.chunks(7).zip(names.into_iter().cycle());
    let field =
        |(value, name): (&[u8], &'static str)| (Bytes::from(name), Bytes::copy_from_slice(value));
    pieces.map(field).collect()
}

fn decoder(capacity: u64, choices: &mut Choices<'_>, wire: &[u8]) {
    let ends = || {
        let mut encoder = TableEncoder::new(capacity, 2);
        for stream in 0..4_u8 {
            let values = [[b'a' + stream % 3; 24].as_slice(), b"0123456789abcdef"].concat();
            encoder.section(4 * u64::from(stream), &request(&values), true);
        }
        encoder
    };
    let (mut whole, mut split) = (ends(), ends());
    let read = whole.acknowledgments(wire);
    let pieces = choices.cut(wire);
    let pieces: Result<u32, String> = pieces.iter().map(|it| split.acknowledgments(it)).sum();
    assert_eq!(pieces, read);
    if read.is_ok() {
        let next = request(b"another value, and one more");
        assert_eq!(
            split.section(16, &next, true),
            whole.section(16, &next, true)
        );
    }
}

fn fields(capacity: u64, choices: &mut Choices<'_>, wire: &[u8]) {
    let blocked = choices.pick(&[100, 1, 0]);
    let (mut encoder, mut decoder) = (
        TableEncoder::new(capacity, blocked),
        TableDecoder::new(capacity),
    );
    let (mut instructions, mut waiting) = (Vec::new(), BTreeMap::new());
    for (stream, values) in (0..).zip(wire.chunks(40)) {
        let fields = request(values);
        let (inserts, section) = encoder.section(4 * stream, &fields, choices.flag());
        instructions.extend_from_slice(&inserts);
        waiting.insert(4 * stream, (fields, section));
        let arrived = choices.length().min(instructions.len());
        let read = decoder.instructions(&instructions[..arrived]);
        read.expect("valid instructions");
        instructions.drain(..arrived);
        let lost = choices.byte();
        if lost < 16
            && let Some((stream, _)) = waiting.pop_first()
        {
            decoder.cancel(stream);
        }
        receive(&mut decoder, &mut waiting);
        if choices.flag() {
            let read = encoder.acknowledgments(&decoder.output());
            read.expect("valid acknowledgments");
            encoder.all_sent();
        }
    }
    decoder
        .instructions(&instructions)
        .expect("valid instructions");
    receive(&mut decoder, &mut waiting);
    assert!(waiting.is_empty(), "{waiting:?}");
}

/// Decodes what does not have to wait.
fn receive(decoder: &mut TableDecoder, waiting: &mut BTreeMap<u64, (Vec<Field>, Bytes)>) {
    waiting.retain(|stream, (expected, section)| {
        let decoded = decoder.section(*stream, section, 64 * 1024);
        let decoded = decoded.expect("a valid section");
        if let Some(fields) = &decoded {
            assert_eq!(fields, expected);
        }
        decoded.is_none()
    });
}
