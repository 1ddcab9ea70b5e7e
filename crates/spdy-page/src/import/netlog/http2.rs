//! Extracts bodies from the bytes of an HTTP/2 connection: DATA frames only (RFC 9113 §4.1, §6.1).
//!
//! ```text
//! +-----------------------------------------------+
//! |                 length (24)                   |
//! +---------------+---------------+---------------+
//! |   type (8)    |   flags (8)   |                    DATA is 0; END_STREAM 0x1, PADDED 0x8
//! +-+-------------+---------------+---------------+
//! |R|              stream identifier (31)         |
//! +=+=============================================+
//! | [pad length (8)]  data …          [padding]   |
//! +-----------------------------------------------+
//! ```
//!
//! Heads need the state of HPACK, and have their own events.

use std::collections::BTreeMap;

const HEAD_LEN: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const END_STREAM: u8 = 0x1;
const PADDED: u8 = 0x8;

/// The received data of one stream.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    /// The peer sent END_STREAM.
    pub(super) is_whole: bool,
}

/// The bodies of all streams in `received`, by stream; `None` without SETTINGS at the start, which HTTP/2 requires.
pub(super) fn bodies(received: &[u8]) -> Option<BTreeMap<u64, Body>> {
    const SETTINGS: u8 = 4;
    if received.get(3) != Some(&SETTINGS) {
        return None;
    }
    let mut bodies = BTreeMap::<u64, Body>::new();
    let mut rest = received;
    while let Some((head, after)) = rest.split_first_chunk::<HEAD_LEN>() {
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let (kind, flags) = (head[3], head[4]);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & 0x7fff_ffff;
        // The last frame may be cut; its received part counts.
        let payload = &after[..length.min(after.len())];
        rest = &after[payload.len()..];
        let ends = flags & END_STREAM != 0 && payload.len() == length;
        if kind == DATA {
            let body = bodies.entry(stream.into()).or_default();
            body.bytes
                .extend_from_slice(unpadded(payload, flags, length)?);
            body.is_whole |= ends;
        } else if kind == HEADERS && ends {
            bodies.entry(stream.into()).or_default().is_whole = true;
        }
    }
    Some(bodies)
}

/// The data of a frame of `length`; `None` if the padding exceeds the frame.
fn unpadded(payload: &[u8], flags: u8, length: usize) -> Option<&[u8]> {
    if flags & PADDED == 0 {
        return Some(payload);
    }
    let Some((&padding, data)) = payload.split_first() else {
        return Some(payload);
    };
    let len = (length - 1).checked_sub(usize::from(padding))?;
    Some(&data[..len.min(data.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let head = [0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream];
        [&head[..], payload].concat()
    }

    #[test]
    fn data_comes_together_by_stream_without_its_padding() {
        let wire = [
            frame(4, 0, 0, &[]),
            frame(HEADERS, 0x4, 1, b"hpack"),
            frame(DATA, 0, 1, b"ab"),
            frame(DATA, PADDED, 3, b"\x02xy\0\0"),
            frame(DATA, END_STREAM, 1, b"c"),
            frame(HEADERS, END_STREAM | 0x4, 5, b"304"),
            frame(DATA, END_STREAM, 3, b"cut off")[..12].to_vec(),
        ]
        .concat();
        let bodies = bodies(&wire).unwrap();
        let body = |stream: u64| (&bodies[&stream].bytes[..], bodies[&stream].is_whole);
        assert_eq!(body(1), (&b"abc"[..], true));
        assert_eq!(body(3), (&b"xycut"[..], false));
        assert_eq!(body(5), (&b""[..], true));
    }

    #[test]
    fn bytes_other_than_http_2_have_no_bodies() {
        assert_eq!(bodies(b"HTTP/1.1 200 OK\r\n\r\n"), None);
        let padding = [frame(4, 0, 0, &[]), frame(DATA, PADDED, 1, b"\x09ab")].concat();
        assert_eq!(bodies(&padding), None);
        assert_eq!(bodies(&frame(4, 0, 0, &[])), Some(BTreeMap::new()));
    }
}
