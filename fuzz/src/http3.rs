//! Properties of HTTP/3 (`spdy-h3/src`): frames, header blocks and the frames of a control stream, without QUIC.
//!
//! - Any split of a stream gives the same frames, the same events and the same end.
//! - A frame that is stored whole is within its limit, and is decoded to the same after encoding.
//! - An accepted header block is within its limit, and its fields round-trip.
//! - An accepted request or response round-trips.

use bytes::Bytes;
use spdy_h3::fuzz_api::{self, DecodedStream, Field};

use crate::choices::Choices;
use crate::memory;

/// The kind of bytes in the input.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StreamKind {
    /// A request's stream, in either direction.
    Exchange,
    /// The control stream of a client.
    ToServer,
    /// The control stream of a server.
    ToClient,
    /// A header block.
    Block,
}

impl StreamKind {
    /// All kinds; a choice is an index.
    pub const ALL: [Self; 4] = [Self::Exchange, Self::ToServer, Self::ToClient, Self::Block];
}

const DATA: u64 = 0;
const HEADERS: u64 = 1;

/// Decodes the wire as the chosen kind, whole and split.
pub fn check(input: &[u8]) {
    let (mut choices, wire) = Choices::split(input);
    let way = choices.pick(&StreamKind::ALL);
    let limit = choices.pick(&[64 * 1024, 500, 100]);
    // Each field of a block counts at least 32 bytes, and needs about 64, more in a map; a few copies exist at once.
    let held = 64 * 1024 + 24 * limit + 64 * wire.len();
    memory::at_most(held, || match way {
        StreamKind::Block => block(wire, limit),
        StreamKind::Exchange | StreamKind::ToServer | StreamKind::ToClient => {
            stream(way, limit, &mut choices, wire);
        }
    });
}

fn read(way: StreamKind, chunks: &[&[u8]], limit: usize) -> DecodedStream {
    match way {
        StreamKind::Exchange => DecodedStream::of_exchange(chunks, limit),
        _ => DecodedStream::of_control(chunks, way == StreamKind::ToClient),
    }
}

fn stream(way: StreamKind, limit: usize, choices: &mut Choices<'_>, wire: &[u8]) {
    let whole = read(way, &[wire], limit);
    let pieces = choices.cut(wire);
    assert_eq!(read(way, &pieces, limit), whole, "split into {pieces:x?}");
    let most = match way {
        StreamKind::Exchange => limit,
        _ => fuzz_api::MAX_CONTROL_FRAME_BYTES as usize,
    };
    let mut again = Vec::new();
    for (kind, payload) in &whole.frames {
        assert!(*kind == DATA || payload.len() <= most, "{kind:#x}");
        again.extend_from_slice(&fuzz_api::frame(*kind, payload));
        if *kind == HEADERS {
            block(payload, limit);
        }
    }
    // A frame with invalid content is the last one.
    let back = read(way, &[&again], limit);
    assert_eq!((&back.frames, &back.events), (&whole.frames, &whole.events));
}

fn block(block: &[u8], limit: usize) {
    let Ok(fields) = fuzz_api::decode(block, limit) else {
        return;
    };
    assert!(fuzz_api::section_len(&fields) <= limit as u64, "{fields:?}");
    let written = fuzz_api::encode(&fields);
    // A string has a prefix of at most six bytes; Huffman coding is used if it is shorter.
    let bytes: usize = fields
        .iter()
        .map(|(name, value)| name.len() + value.len() + 12)
        .sum();
    assert!(written.len() <= bytes + 2, "{fields:?}");
    assert_eq!(fuzz_api::decode(&written, limit).as_ref(), Ok(&fields));
    messages(&fields);
}

/// Decodes the fields as a request and as a response.
fn messages(fields: &[Field]) {
    if let Some(request) = fuzz_api::request(fields.to_vec()) {
        let written = fuzz_api::of_request(request.clone());
        let back = fuzz_api::request(written).unwrap_or_else(|| panic!("{request:?}"));
        assert_eq!(back.method(), request.method());
        assert_eq!(back.uri(), request.uri());
        assert_eq!(back.headers(), request.headers());
    }
    if let Some(response) = fuzz_api::response(fields.to_vec()) {
        let written = fuzz_api::of_response(response.clone());
        let back = fuzz_api::response(written).unwrap_or_else(|| panic!("{response:?}"));
        assert_eq!(back.status(), response.status());
        assert_eq!(back.headers(), response.headers());
    }
    if let Some(trailers) = fuzz_api::trailers(fields.to_vec()) {
        let pseudo = |(name, _): &(Bytes, Bytes)| name.starts_with(b":");
        assert!(!fields.iter().any(pseudo), "{trailers:?}");
    }
}
