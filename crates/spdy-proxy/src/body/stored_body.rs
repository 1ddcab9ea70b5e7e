//! Reads a stored body piece by piece. The cache counts it while the reader reads (spdy-cache/tiers/memory_store.rs), even after eviction.
//! So the memory of slow readers is within the cache's limit.

use std::collections::VecDeque;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use spdy::body::{Body, BoxError};
use spdy_cache::body::Body as CacheBody;

/// A part of a response.
#[derive(Debug)]
pub enum BodyPart {
    /// The text between ranges.
    Text(Bytes),
    /// A range of the stored body, in bytes.
    Range(Range<u64>),
}

/// Reads all of `body`.
#[must_use]
pub fn read_all(body: &CacheBody) -> Body {
    range(body, 0..body.len())
}

/// The bytes of `range` of `body`, whose length is known. A single piece holds no more than itself.
///
/// # Panics
///
/// If `range` ends past the body: ranges are made for its length.
#[must_use]
pub fn range(body: &CacheBody, range: Range<u64>) -> Body {
    let mut pieces = body.slice(range.clone());
    let (first, second) = (pieces.next(), pieces.next());
    match second {
        None => Body::full(first.unwrap_or_default()),
        Some(_) => read_parts(body, [BodyPart::Range(range)]),
    }
}

/// `parts` of `body`, in their order.
///
/// # Panics
///
/// When it is read, if a range ends past the body.
#[must_use]
pub fn read_parts(body: &CacheBody, parts: impl IntoIterator<Item = BodyPart>) -> Body {
    let parts: VecDeque<BodyPart> = parts.into_iter().collect();
    let remaining = parts.iter().map(BodyPart::len).sum();
    Body::wrap(StoredBodyReader {
        body: body.clone(),
        parts,
        remaining,
    })
}

impl BodyPart {
    fn len(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::Range(range) => range.end.saturating_sub(range.start),
        }
    }
}

struct StoredBodyReader {
    body: CacheBody,
    parts: VecDeque<BodyPart>,
    /// Bytes in `parts`.
    remaining: u64,
}

impl StoredBodyReader {
    fn next(&mut self) -> Option<Bytes> {
        loop {
            let piece = match self.parts.front_mut()? {
                BodyPart::Text(text) => std::mem::take(text),
                BodyPart::Range(range) => {
                    let piece = self.body.slice(range.clone()).next().unwrap_or_default();
                    range.start += piece.len() as u64;
                    piece
                }
            };
            if !piece.is_empty() {
                self.remaining -= piece.len() as u64;
                return Some(piece);
            }
            self.parts.pop_front();
        }
    }
}

impl http_body::Body for StoredBodyReader {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(self.next().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.remaining == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use spdy_cache::body::CHUNK_BYTES;

    use super::*;

    fn body_of_len(len: usize) -> CacheBody {
        let bytes: Vec<u8> = (0..len).map(|at| (at * 31 + at / 256) as u8).collect();
        CacheBody::copy_of(&bytes)
    }

    fn read(body: Body) -> Vec<u8> {
        let announced = http_body::Body::size_hint(&body).exact();
        let all = body.collect_up_to(usize::MAX).now_or_never();
        let all = all
            .expect("the body has arrived")
            .expect("the body is complete")
            .to_vec();
        assert_eq!(announced, Some(all.len() as u64));
        all
    }

    #[test]
    fn range_body_has_exact_bytes_and_size_hint() {
        for len in [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES] {
            let body = body_of_len(len);
            let all: Vec<u8> = body.chunks().flatten().copied().collect();
            assert_eq!(read(read_all(&body)), all);
            for (from, to) in [(0, len / 2), (len / 2, len), (len / 3, len * 2 / 3)] {
                let bytes = read(range(&body, from as u64..to as u64));
                assert_eq!(bytes, &all[from..to], "{from} to {to} of {len}");
            }
        }
    }

    #[test]
    fn multipart_bodies_are_read_in_order() {
        let body = body_of_len(2 * CHUNK_BYTES + 7);
        let all: Vec<u8> = body.chunks().flatten().copied().collect();
        let multipart = read_parts(
            &body,
            [
                BodyPart::Text("before".into()),
                BodyPart::Range(10..CHUNK_BYTES as u64 + 10),
                BodyPart::Text("".into()),
                BodyPart::Range(5..5),
                BodyPart::Text("after".into()),
            ],
        );
        let expected = [b"before", &all[10..CHUNK_BYTES + 10], b"after"].concat();
        assert_eq!(read(multipart), expected);
    }

    #[test]
    fn stored_body_is_counted_until_reader_drops() {
        let (long, short) = (body_of_len(CHUNK_BYTES + 1), body_of_len(CHUNK_BYTES));
        let (reader, of_short) = (read_all(&long), read_all(&short));
        assert!(long.is_shared() && !short.is_shared());
        drop(reader);
        assert!(!long.is_shared());
        assert_eq!(read(of_short).len(), CHUNK_BYTES);
    }
}
