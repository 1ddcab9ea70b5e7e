//! Bodies: bytes in memory, a stream's DATA, or any `http_body::Body`. (Contract)

use bytes::Bytes;

/// A boxed error, as HTTP bodies carry it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// One body type for every protocol: implements `http_body::Body<Data = Bytes, Error = BoxError>`, Send, Unpin.
pub struct Body { _private: () }
impl Body {
    pub fn empty() -> Self { todo!() }
    /// All of it, in memory; its length is known.
    pub fn full(bytes: impl Into<Bytes>) -> Self { let _ = bytes.into(); todo!() }
    // pub fn wrap(body: impl http_body::Body<Data = Bytes> + Send + 'static) -> Self
}
