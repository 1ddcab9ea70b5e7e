//! Requests. (Contract)
use http::request::Parts;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::version::Version;

/// Why a request cannot be written: our caller's fault.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Neither URI nor Host header name a host.
    #[error("no host: neither the uri nor a host header names one")]
    NoHost,
    /// The URI has no scheme.
    #[error("no scheme in the uri")]
    NoScheme,
}
/// Why a block is no request: a server answers 400.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadRequest {
    /// A header that must be there is not.
    #[error("no {name}")]
    Missing { name: &'static str },
}
/// The header block of a request.
pub fn encode(version: Version, head: &Parts) -> Result<HeaderBlock, RequestError> { let _ = (version, head); todo!() }
/// The request of a header block.
pub fn decode(version: Version, block: &HeaderBlock) -> Result<Parts, BadRequest> { let _ = (version, block); todo!() }
