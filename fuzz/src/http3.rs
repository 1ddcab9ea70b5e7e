//! The laws of HTTP/3 (`spdy-net/src/http3`): frames, header blocks and the frames of a control stream, without QUIC.
//!
//! - Any cut of a stream gives the same frames, the same words and the same end.
//! - A frame that is stored whole is within its limit, and is decoded to the same after encoding.
//! - A header block that is taken is within its limit, and what we write of its fields is read as those fields.
//! - A request or a response that is taken is written as fields that are taken as the same.

use bytes::Bytes;
use spdy_net::http3::fuzz_api::{self, DecodedStream, Field};

use crate::choices::Choices;
use crate::memory;

/// Which bytes these are.
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
    /// All of them; a choice is a place in this.
    pub const ALL: [Self; 4] = [Self::Exchange, Self::ToServer, Self::ToClient, Self::Block];
}

const DATA: u64 = 0;
const HEADERS: u64 = 1;

/// Reads the wire in the chosen way, whole and cut.
pub fn check(input: &[u8]) {
    let (mut choices, wire) = Choices::split(input);
    let way = choices.pick(&StreamKind::ALL);
    let limit = choices.pick(&[64 * 1024, 500, 100]);
    // Each field of a block counts 32 at least, and takes some 64 to hold, more in a map; all of it a few times over.
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
    assert_eq!(read(way, &pieces, limit), whole, "cut into {pieces:x?}");
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
    // After a fault in the content of a frame, that frame is the last.
    let back = read(way, &[&again], limit);
    assert_eq!((&back.frames, &back.events), (&whole.frames, &whole.events));
}

fn block(block: &[u8], limit: usize) {
    let Ok(fields) = fuzz_api::decode(block, limit) else {
        return;
    };
    assert!(fuzz_api::section_len(&fields) <= limit as u64, "{fields:?}");
    let written = fuzz_api::encode(&fields);
    // Heads of strings are six bytes each at most; Huffman's code is taken where it is shorter.
    let bytes: usize = fields
        .iter()
        .map(|(name, value)| name.len() + value.len() + 12)
        .sum();
    assert!(written.len() <= bytes + 2, "{fields:?}");
    assert_eq!(fuzz_api::decode(&written, limit).as_ref(), Ok(&fields));
    messages(&fields);
}

/// The fields as what they may be the head of.
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
