//! A range of a body that is still arriving.

use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use spdy::body::{Body, BoxError};

/// The bytes of `range` of `body`, which must contain them all. The reader does not wait for the bytes after the range.
pub(crate) fn cut_range(body: Body, range: Range<u64>) -> Body {
    Body::wrap(RangeBody {
        body: Some(body),
        skipped: range.start,
        remaining: range.end - range.start,
    })
}

struct RangeBody {
    /// `None` after the end of the range.
    body: Option<Body>,
    /// Bytes before the range that have not arrived yet.
    skipped: u64,
    /// Bytes of the range that have not arrived yet.
    remaining: u64,
}

impl RangeBody {
    /// The bytes of `piece` that are in the range.
    fn cut(&mut self, mut piece: Bytes) -> Bytes {
        let before = self.skipped.min(piece.len() as u64);
        self.skipped -= before;
        // Both are at most the length of the piece.
        let mut piece = piece.split_off(before as usize);
        piece.truncate(self.remaining.min(piece.len() as u64) as usize);
        self.remaining -= piece.len() as u64;
        piece
    }
}

impl http_body::Body for RangeBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        loop {
            let Some(body) = this.body.as_mut().filter(|_| this.remaining > 0) else {
                this.body = None;
                return Poll::Ready(None);
            };
            let frame = match ready!(Pin::new(body).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                end => return Poll::Ready(end),
            };
            // Trailers belong to the full body.
            let Ok(piece) = frame.into_data() else {
                continue;
            };
            let piece = this.cut(piece);
            if !piece.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
        }
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
    use super::*;

    #[tokio::test]
    async fn range_is_cut_across_piece_boundaries() {
        let pieces = ["", "01", "234", "5", "6789"];
        for (range, expected) in [
            (0..10, "0123456789"),
            (0..1, "0"),
            (2..5, "234"),
            (1..7, "123456"),
            (9..10, "9"),
            (4..4, ""),
        ] {
            let all =
                pieces.map(|piece| Ok::<_, std::io::Error>(Bytes::from_static(piece.as_bytes())));
            let all = Body::from_stream(futures_util::stream::iter(all));
            let part = cut_range(all, range.clone());
            let len = http_body::Body::size_hint(&part).exact();
            assert_eq!(len, Some(range.end - range.start));
            let bytes = part.collect_up_to(10).await.expect("the body is complete");
            assert_eq!(bytes, expected, "{range:?}");
        }
    }
}
