//! A body under a content coding that was chosen for one client.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, header};
use http_body::Frame;
use spdy::body::{Body, BoxError};

use crate::coding::{Coding, Encoder};

/// What is shorter gains nothing by being compressed.
const LEAST_BYTES: u64 = 256;

/// Kinds that get smaller, beside text and what is written as JSON or XML.
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
    if headers.contains_key(header::CONTENT_ENCODING) || len.is_some_and(|len| len < LEAST_BYTES) {
        return false;
    }
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    let is = |name: &str| essence.eq_ignore_ascii_case(name);
    let begins = |start: &str| {
        let it = essence.get(..start.len());
        it.is_some_and(|it| it.eq_ignore_ascii_case(start))
    };
    let ends = |end: &str| {
        let at = essence.len().checked_sub(end.len());
        let it = at.and_then(|at| essence.get(at..));
        it.is_some_and(|it| it.eq_ignore_ascii_case(end))
    };
    begins("text/") && !is("text/event-stream")
        || ends("+json")
        || ends("+xml")
        || COMPRESSIBLE.iter().any(|name| is(name))
}

/// `body` under `coding`, piece by piece.
#[must_use]
pub fn encoded(body: Body, coding: Coding) -> Body {
    match coding {
        Coding::Identity => body,
        _ => Body::wrap(EncodedBody {
            body,
            encoder: Some(Encoder::new(coding)),
        }),
    }
}

struct EncodedBody {
    body: Body,
    /// `None` at the end.
    encoder: Option<Encoder>,
}

impl http_body::Body for EncodedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            let this = &mut *self;
            let Some(encoder) = &mut this.encoder else {
                return Poll::Ready(None);
            };
            let frame = std::task::ready!(Pin::new(&mut this.body).poll_frame(cx));
            let coded = match frame {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => encoder.write(&data),
                    Err(_) => continue, // trailers say nothing of a body that is another now
                },
                Some(Err(error)) => {
                    this.encoder = None;
                    return Poll::Ready(Some(Err(error)));
                }
                None => this.encoder.take().map(Encoder::finish).unwrap_or_default(),
            };
            if !coded.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(coded.into()))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.encoder.is_none()
    }
}
