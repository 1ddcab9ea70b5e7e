//! Encodes frames.

use bytes::{BufMut, Bytes, BytesMut};
use octets::{OctetsMut, varint_len};

/// Maximum length of a frame head: type and length of 8 bytes each.
pub(crate) const MAX_HEAD_BYTES: usize = 16;

/// Appends a QUIC variable-length integer.
pub(crate) fn put_varint(out: &mut BytesMut, value: u64) {
    let start = out.len();
    out.resize(start + varint_len(value), 0);
    OctetsMut::with_slice(&mut out[start..])
        .put_varint(value)
        .expect("the length was computed before");
}

/// Encodes a whole frame.
pub(crate) fn frame(kind: u64, payload: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(MAX_HEAD_BYTES + payload.len());
    put_head(&mut out, kind, payload.len());
    out.put_slice(payload);
    out.freeze()
}

/// Appends the head of a frame whose payload has `len_bytes`.
pub(crate) fn put_head(out: &mut BytesMut, kind: u64, len_bytes: usize) {
    put_varint(out, kind);
    put_varint(out, len_bytes as u64);
}
