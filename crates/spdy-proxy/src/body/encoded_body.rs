//! A body under a content coding that was chosen for one client.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, header};
use http_body::Frame;
use spdy::body::{Body, BoxError};

use crate::body::content_coding::Coding;
use crate::body::encoder::Encoder;

/// Compression does not make shorter bodies smaller.
const MIN_ENCODED_BYTES: u64 = 256;

/// Media types that compression makes smaller, beside text, JSON and XML.
const COMPRESSIBLE: [&str; 11] = [
    "application/javascript",
    "application/x-javascript",
    "application/json",
    "application/xml",
    "application/wasm",
    "image/bmp",
    "image/x-icon",
    "image/vnd.microsoft.icon",
    "font/ttf",
    "font/otf",
    "application/vnd.ms-fontobject",
];

/// Whether a body with these headers gets smaller by compression, and may be compressed.
#[must_use]
pub fn is_compressible(headers: &HeaderMap, len: Option<u64>) -> bool {
    let is_long = len.is_none_or(|len| len >= MIN_ENCODED_BYTES);
    !headers.contains_key(header::CONTENT_ENCODING) && is_long && is_text(headers)
}

/// Whether a body with these headers is text, which compression makes shorter.
#[must_use]
pub fn is_text(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    let is = |name: &str| essence.eq_ignore_ascii_case(name);
    let begins = |start: &str| {
        let part = essence.get(..start.len());
        part.is_some_and(|part| part.eq_ignore_ascii_case(start))
    };
    let ends = |end: &str| {
        let at = essence.len().checked_sub(end.len());
        let part = at.and_then(|at| essence.get(at..));
        part.is_some_and(|part| part.eq_ignore_ascii_case(end))
    };
    begins("text/") && !is("text/event-stream")
        || ends("+json")
        || ends("+xml")
        || COMPRESSIBLE.iter().any(|name| is(name))
}

/// `body` under `coding`, piece by piece.
#[must_use]
pub fn encode_body(body: Body, coding: Coding) -> Body {
    match coding {
        Coding::Identity => body,
        _ => Body::wrap(EncodedBody {
            body,
            encoder: Some(Encoder::new(coding)),
            must_yield: false,
        }),
    }
}

struct EncodedBody {
    body: Body,
    /// `None` at the end.
    encoder: Option<Encoder>,
    /// True if something was encoded since other tasks ran.
    must_yield: bool,
}

impl EncodedBody {
    /// The output for `piece`, and with the last piece also the end: otherwise the end would be sent as a separate piece.
    fn coded(&mut self, piece: &[u8]) -> Vec<u8> {
        let encoder = self.encoder.as_mut();
        let mut coded = encoder.map_or_else(Vec::new, |encoder| encoder.write(piece));
        if http_body::Body::is_end_stream(&self.body)
            && let Some(encoder) = self.encoder.take()
        {
            coded.extend(encoder.finish());
        }
        coded
    }
}

impl http_body::Body for EncodedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        // While encoding is slower than the input, the body is always ready, and its sender would collect all of it. So it yields after
        // each piece.
        if std::mem::take(&mut self.must_yield) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        loop {
            let this = &mut *self;
            if this.encoder.is_none() {
                return Poll::Ready(None);
            }
            let frame = std::task::ready!(Pin::new(&mut this.body).poll_frame(cx));
            let coded = match frame {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.coded(&data),
                    Err(_) => continue, // trailers do not apply to the encoded body
                },
                Some(Err(error)) => {
                    this.encoder = None;
                    return Poll::Ready(Some(Err(error)));
                }
                None => this.encoder.take().map(Encoder::finish).unwrap_or_default(),
            };
            if !coded.is_empty() {
                this.must_yield = this.encoder.is_some();
                return Poll::Ready(Some(Ok(Frame::data(coded.into()))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.encoder.is_none()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};
    use http_body::Body as _;

    use super::*;
    use crate::body::decoder::Decoder;

    /// Otherwise all input would be collected before any of it is sent.
    #[test]
    fn encoded_body_yields_after_each_piece() {
        let pieces = [vec![b'a'; 5000], vec![b'b'; 5000], vec![b'c'; 5000]];
        let incoming = futures_util::stream::iter(pieces.clone());
        let incoming = incoming.map(|piece| Ok::<_, BoxError>(Frame::data(Bytes::from(piece))));
        let body = Body::wrap(http_body_util::StreamBody::new(incoming));
        let mut body = std::pin::pin!(encode_body(body, Coding::Zstd));
        let mut decoder = Decoder::new(Coding::Zstd, 1 << 20);
        for piece in pieces {
            let frame = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx));
            let frame = frame.now_or_never().expect("the response has arrived");
            let coded = frame
                .expect("the body has more frames")
                .expect("the body is complete");
            let coded = coded.into_data().expect("the frame is data");
            let text = decoder.write(&coded).expect("the body is valid Zstandard");
            assert!(text == piece, "nothing waits for more");
            let turn = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).now_or_never();
            assert!(turn.is_none(), "the sender runs between polls");
        }
    }

    /// Otherwise the end would be a separate write, and a separate frame.
    #[test]
    fn last_piece_ends_the_stream() {
        let body = Body::full(Bytes::from(vec![b'a'; 5000]));
        let mut body = std::pin::pin!(encode_body(body, Coding::Zstd));
        let frame = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx));
        let frame = frame.now_or_never().expect("the frame is ready");
        let coded = frame
            .expect("the body has more frames")
            .expect("the body is complete");
        assert!(body.is_end_stream());
        let mut decoder = Decoder::new(Coding::Zstd, 1 << 20);
        let text = decoder.write(&coded.into_data().expect("the frame is data"));
        assert!(text.expect("the body is valid Zstandard") == vec![b'a'; 5000]);
        assert!(decoder.finish().expect("the body is complete").is_empty());
    }
}
