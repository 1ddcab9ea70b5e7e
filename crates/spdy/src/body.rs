//! Bodies: bytes in memory, a stream's DATA, or any `http_body::Body`.
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

/// A boxed error, as HTTP bodies carry it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// One body type for every protocol: Send and Unpin.
#[derive(Debug)]
pub struct Body { _private: () }
impl Body {
    pub fn empty() -> Self { todo!() }
    /// All of it, in memory; its length is known.
    pub fn full(bytes: impl Into<Bytes>) -> Self { let _ = bytes.into(); todo!() }
    /// Any other body. A `Body` comes through unchanged.
    pub fn wrap<B>(body: B) -> Self
    where B: http_body::Body<Data = Bytes> + Send + 'static, B::Error: Into<BoxError> { let _ = body; todo!() }
    /// The pieces of a stream, one after the other; ends when the stream does.
    pub fn from_stream<S, E>(stream: S) -> Self
    where S: futures_util::Stream<Item = Result<Bytes, E>> + Send + 'static, E: Into<BoxError> + 'static { let _ = stream; todo!() }
    /// Reads it to its end; fails past `limit` bytes.
    pub async fn collect_up_to(self, limit: usize) -> Result<Bytes, BoxError> { let _ = limit; todo!() }
    /// After the end of a response's body: its content-length and the bytes that came, if they differ.
    pub fn length_mismatch(&self) -> Option<(u64, u64)> { todo!() }
}
impl Default for Body { fn default() -> Self { Self::empty() } }
impl From<Bytes> for Body { fn from(bytes: Bytes) -> Self { Self::full(bytes) } }
impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;
    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> { let _ = cx; todo!() }
    fn is_end_stream(&self) -> bool { todo!() }
    fn size_hint(&self) -> SizeHint { todo!() }
}
