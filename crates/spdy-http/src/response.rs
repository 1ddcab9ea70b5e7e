//! Responses. (Contract)
use http::response::Parts;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::version::Version;
/// Why a block is no response: stream PROTOCOL_ERROR.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadResponse {
    /// A header that must be there is not.
    #[error("no {name}")]
    Missing { name: &'static str },
}
/// The header block of a response.
pub fn encode(version: Version, head: &Parts) -> HeaderBlock { let _ = (version, head); todo!() }
/// The response of a header block.
pub fn decode(version: Version, block: &HeaderBlock) -> Result<Parts, BadResponse> { let _ = (version, block); todo!() }
