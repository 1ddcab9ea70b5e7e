//! Bodies: bytes in memory, a stream's DATA, or any `http_body::Body`.

use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt;
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, StreamBody};
use spdy_http::content_length::LengthMismatch;

use crate::receive_body::ReceiveBody;

pub use crate::error::BoxError;

/// One body type for every protocol: `Send` and `Unpin`, its data in [`Bytes`].
///
/// A received body returns credit to the peer as it is read: a slow reader stops the sender, not the session. Dropping a response's
/// unread body cancels its stream.
pub struct Body(Kind);

enum Kind {
    Empty,
    Full(Bytes),
    Received(ReceiveBody),
    Wrapped(Pin<Box<dyn http_body::Body<Data = Bytes, Error = BoxError> + Send>>),
}

/// The body has more bytes than the limit of [`Body::collect_up_to`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("body is longer than {limit} bytes")]
pub struct TooLong {
    /// The limit, bytes.
    pub limit: usize,
}

impl Body {
    /// An empty body.
    #[must_use]
    pub const fn empty() -> Self {
        Self(Kind::Empty)
    }

    /// A body in memory; its length is known.
    #[must_use]
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        if bytes.is_empty() {
            Self::empty()
        } else {
            Self(Kind::Full(bytes))
        }
    }

    /// A copy of the body, if it is in memory. A request needs it to be sent again.
    #[must_use]
    pub fn try_clone(&self) -> Option<Self> {
        match &self.0 {
            Kind::Empty => Some(Self(Kind::Empty)),
            Kind::Full(bytes) => Some(Self(Kind::Full(bytes.clone()))),
            Kind::Received(_) | Kind::Wrapped(_) => None,
        }
    }

    /// True if all of the body is in memory.
    #[must_use]
    pub const fn is_in_memory(&self) -> bool {
        matches!(self.0, Kind::Empty | Kind::Full(_))
    }

    /// Wraps any other body. A `Body` is returned unchanged.
    #[must_use]
    pub fn wrap<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let mut slot = Some(body);
        if let Some(body) = (&mut slot as &mut dyn Any).downcast_mut::<Option<Self>>() {
            return body.take().unwrap_or_default();
        }
        match slot {
            Some(body) if body.is_end_stream() => Self::empty(),
            Some(body) => Self(Kind::Wrapped(Box::pin(body.map_err(Into::into)))),
            None => Self::empty(),
        }
    }

    /// A body of the items of a stream, in order; it ends when the stream does.
    #[must_use]
    pub fn from_stream<S, E>(stream: S) -> Self
    where
        S: futures_util::Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        Self(Kind::Wrapped(Box::pin(StreamBody::new(
            stream.map_ok(Frame::data).map_err(Into::into),
        ))))
    }

    /// The received DATA of a stream.
    pub(crate) fn received(body: ReceiveBody) -> Self {
        Self(Kind::Received(body))
    }

    /// Takes the bytes of a body in memory and leaves it empty; returns no bytes for any other body.
    pub(crate) fn take_full(&mut self) -> Bytes {
        match &mut self.0 {
            Kind::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                self.0 = Kind::Empty;
                bytes
            }
            Kind::Empty | Kind::Received(_) | Kind::Wrapped(_) => Bytes::new(),
        }
    }

    /// The next piece of the body, never empty; `None` at its end. Trailers are skipped: `http_body_util::BodyExt::frame`
    /// returns them too. Cancel safe.
    ///
    /// The sender of a received body gets credit for each piece that this returns, so a slow reader slows the sender down.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), spdy::BoxError> {
    /// # let mut body = spdy::Body::from("hello");
    /// let mut bytes = 0;
    /// while let Some(piece) = body.receive().await {
    ///     bytes += piece?.len();
    /// }
    /// assert_eq!(bytes, 5);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn receive(&mut self) -> Option<Result<Bytes, BoxError>> {
        loop {
            match self.frame().await?.map(Frame::into_data) {
                Ok(Ok(data)) if !data.is_empty() => return Some(Ok(data)),
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Reads the body to its end.
    ///
    /// # Errors
    ///
    /// [`TooLong`] above `limit` bytes, or the body's own error.
    pub async fn collect_up_to(mut self, limit: usize) -> Result<Bytes, BoxError> {
        let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
        let mut length = 0;
        while let Some(data) = self.receive().await {
            let data = data?;
            length += data.len();
            if length > limit {
                return Err(TooLong { limit }.into());
            }
            // A single piece is returned as it is; only several pieces must be joined.
            if first.is_empty() && rest.is_empty() {
                first = data;
            } else {
                if rest.is_empty() {
                    rest.extend_from_slice(&std::mem::take(&mut first));
                }
                rest.extend_from_slice(&data);
            }
        }
        Ok(if rest.is_empty() {
            first
        } else {
            rest.freeze()
        })
    }

    /// The content-length of a received message and the number of received bytes, if they differ.
    ///
    /// Excess bytes are detected at once, missing bytes at the end of the body. A client gets the body anyway: content-length is
    /// only advice here, and only FIN ends a body.
    #[must_use]
    pub fn length_mismatch(&self) -> Option<LengthMismatch> {
        match &self.0 {
            Kind::Received(body) => body.length_mismatch(),
            Kind::Empty | Kind::Full(_) | Kind::Wrapped(_) => None,
        }
    }
}

impl Body {
    /// How long the sender of a received body was blocked so far because this end did not read other streams of the session. A body
    /// timeout should not count this time.
    #[must_use]
    pub fn backpressure_time(&self) -> Duration {
        match &self.0 {
            Kind::Received(body) => body.backpressure_time(),
            Kind::Empty | Kind::Full(_) | Kind::Wrapped(_) => Duration::ZERO,
        }
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::empty()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Empty => f.write_str("Body(empty)"),
            Kind::Full(bytes) => write!(f, "Body({} bytes)", bytes.len()),
            Kind::Received(body) => write!(f, "Body(received, ended: {})", body.is_end_stream()),
            Kind::Wrapped(_) => f.write_str("Body(wrapped)"),
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::full(bytes)
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Self::full(text)
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self::full(text)
    }
}

impl From<&'static [u8]> for Body {
    fn from(bytes: &'static [u8]) -> Self {
        Self::full(bytes)
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self::full(bytes)
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Kind::Empty => Poll::Ready(None),
            Kind::Full(_) => Poll::Ready(Some(Ok(Frame::data(self.take_full())))),
            Kind::Received(body) => body
                .poll_frame(cx)
                .map(|frame| frame.map(|frame| frame.map_err(Into::into))),
            Kind::Wrapped(body) => body.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Empty => true,
            Kind::Full(bytes) => bytes.is_empty(),
            Kind::Received(body) => body.is_end_stream(),
            Kind::Wrapped(body) => body.is_end_stream(),
        }
    }

    /// Exact for bytes in memory. Unknown for a received body: its content-length may be wrong.
    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Received(body) if body.is_end_stream() => SizeHint::with_exact(0),
            Kind::Received(_) => SizeHint::default(),
            Kind::Wrapped(body) => body.size_hint(),
        }
    }
}
