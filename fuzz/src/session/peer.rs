//! A peer as a short script of frames, which mutations do not break apart.
//!
//! Random bytes rarely form complete frames, and an invalid compressed header block ends the session.
//! So the wire of a session's input may be a script with one line per frame:
//!
//! ```text
//! line     | flags:4 kind:4 | stream | n | n bytes ... |
//! ```
//!
//! Kinds are those of [`Line`], which documents the bytes. Blocks are stored in the zlib stream, not compressed, so
//! that any plain bytes can be sent.

use bytes::{BufMut, BytesMut};
use spdy_frame::dictionary::dictionary_id;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::version::Version;

/// Flag of a line: the frame ends its stream (or clears SETTINGS).
const FIN: u8 = 0x10;
/// Flag of a line: the unusual variant of the frame.
const ODD: u8 = 0x20;
/// Flag of a line: a larger variant.
const MUCH: u8 = 0x40;

/// The kind of a line, four bits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Line {
    /// Zeros on the stream, one for each byte; 300 for each with the flag `MUCH`. Odd: DATA of the bytes themselves.
    Data = 0,
    /// Two bytes for the parent and the priority, then a block. Odd: unidirectional.
    SynStream = 1,
    /// A block.
    SynReply = 2,
    /// A status.
    RstStream = 3,
    /// Five bytes an entry: id, value. Odd: flagged as persisted.
    Settings = 4,
    /// An id, the stream if there are no bytes.
    Ping = 6,
    /// A last-good of the stream.
    GoAway = 7,
    /// A block.
    Headers = 8,
    /// A delta, to stream 0 if odd.
    WindowUpdate = 9,
    /// The bytes, unchanged.
    Raw = 15,
}

/// The bytes that a peer of `version` sends for `script`.
#[must_use]
pub fn write(version: Version, mut script: &[u8]) -> BytesMut {
    let mut peer = Peer {
        version,
        out: BytesMut::new(),
        begun: false,
    };
    while let [first, stream, len, rest @ ..] = script {
        let (body, rest) = rest.split_at(usize::from(*len).min(rest.len()));
        peer.line(*first, u32::from(*stream), body);
        script = rest;
    }
    peer.out
}

/// A line of a script; the bytes of `body` beyond 255 are left out.
pub fn push(script: &mut Vec<u8>, line: Line, fin: bool, odd: bool, stream: u32, body: &[u8]) {
    let body = &body[..body.len().min(255)];
    let flags = if fin { FIN } else { 0 } | if odd { ODD } else { 0 };
    script.extend([line as u8 | flags, stream as u8, body.len() as u8]);
    script.extend(body);
}

struct Peer {
    version: Version,
    out: BytesMut,
    /// The zlib stream has started.
    begun: bool,
}

impl Peer {
    fn line(&mut self, first: u8, stream: u32, body: &[u8]) {
        let flag = |flag: u8| first & flag != 0;
        let fin = u8::from(flag(FIN));
        let v2 = self.version == Version::V2;
        let number = first & 15;
        let mut payload = BytesMut::new();
        match number {
            0 => {
                self.out.put_u32(stream);
                if flag(ODD) {
                    payload.put_slice(body);
                } else {
                    payload.put_bytes(0, body.len() * if flag(MUCH) { 300 } else { 1 });
                }
                self.out
                    .put_u32(u32::from(fin) << 24 | payload.len() as u32);
                return self.out.put_slice(&payload);
            }
            1 => {
                let [parent, priority] = body.first_chunk().copied().unwrap_or_default();
                payload.put_u32(stream);
                payload.put_u32(u32::from(parent));
                payload.put_u16(u16::from(priority) << 8);
                self.block(body.get(2..).unwrap_or_default(), &mut payload);
            }
            2 | 8 => {
                payload.put_u32(stream);
                payload.put_bytes(0, if v2 { 2 } else { 0 });
                self.block(body, &mut payload);
            }
            3 => {
                payload.put_u32(stream);
                payload.put_u32(body.first().map_or(5, |status| u32::from(*status)));
            }
            4 => {
                let entries = body.chunks_exact(5);
                payload.put_u32(entries.len() as u32);
                for entry in entries {
                    let (id, flags) = (entry[0], if flag(ODD) { 2 } else { 0 });
                    // SPDY/2 wrote the id backwards
                    payload.put_slice(&if v2 {
                        [id, 0, 0, flags]
                    } else {
                        [flags, 0, 0, id]
                    });
                    payload.put_slice(&entry[1..]);
                }
            }
            6 => payload.put_u32(number_of(body).unwrap_or(stream)),
            7 => {
                payload.put_u32(stream);
                if !v2 {
                    payload.put_u32(number_of(body).unwrap_or(0));
                }
            }
            9 => {
                payload.put_u32(if flag(ODD) { 0 } else { stream });
                payload.put_u32(number_of(body).unwrap_or(0));
            }
            15 => return self.out.put_slice(body),
            _ => payload.put_slice(body),
        }
        let one_way = number == 1 && flag(ODD);
        self.out.put_u16(0x8000 | self.version.wire());
        self.out.put_u16(u16::from(number));
        self.out.put_u8(fin | u8::from(one_way) << 1);
        self.out.put_uint(payload.len() as u64, 3);
        self.out.put_slice(&payload);
    }

    /// A block: of no bytes, a small one; of a first byte that is odd, the rest as it is; else one whose value
    /// is the rest.
    fn block(&mut self, body: &[u8], out: &mut BytesMut) {
        let mut plain = BytesMut::new();
        match body.split_first() {
            Some((first, rest)) if first % 2 == 1 => plain.put_slice(rest),
            seen => {
                let value = seen.map_or(&b"value"[..], |(_, rest)| rest);
                let value = value.iter().map(|byte| byte.clamp(&b' ', &b'~')).copied();
                let headers = HeaderBlock::from_iter([("name", value.collect::<Vec<u8>>())]);
                headers.encode(self.version, &mut plain);
            }
        }
        if !self.begun {
            self.begun = true;
            out.put_u16(0x78bb);
            out.put_u32(dictionary_id(self.version));
        }
        // A stored deflate block (RFC 1951 §3.2.4).
        out.put_u8(0);
        out.put_u16_le(plain.len() as u16);
        out.put_u16_le(!plain.len() as u16);
        out.put_slice(&plain);
    }
}

/// The number in up to four bytes; `None` for none.
fn number_of(body: &[u8]) -> Option<u32> {
    let of = |sum: u32, byte: &u8| sum << 8 | u32::from(*byte);
    (!body.is_empty()).then(|| body.iter().take(4).fold(0, of))
}
