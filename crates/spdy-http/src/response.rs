//! A response's head and its header block (SPDY/3.1 §3.2.2).
//!
//! ```text
//! 200 OK                    :status   200 OK
//! content-type: text/css <-> :version  HTTP/1.1
//!                           content-type  text/css
//! ```
//!
//! The reason phrase is written in every version, because Undertow reads a bare `200` as 500. It is ignored when reading, because
//! nginx leaves it out.

pub use http::response::Parts as Head;
use http::response::Parts;
use http::{Method, Response, StatusCode};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::version::Version;

use crate::block_writer::BlockWriter;
use crate::header_names::{Names, is_hop_by_hop};
use crate::headers::{BadHeader, append, quote};

/// Why a block is not a valid response: the stream is reset with PROTOCOL_ERROR.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadResponse {
    /// `:status` is missing.
    #[error("missing {name}")]
    Missing {
        /// The name.
        name: &'static str,
    },
    /// The status is not three digits, optionally followed by a space and a reason phrase.
    #[error("status is {value:?}, expected three digits")]
    Status {
        /// The value as received, truncated to 64 bytes.
        value: String,
    },
    /// A name with a colon that is not allowed in a response.
    #[error("{name:?} is not allowed in a response")]
    Unknown {
        /// The name, truncated to 64 bytes.
        name: String,
    },
    /// A pair that is not valid in HTTP.
    #[error(transparent)]
    Header(#[from] BadHeader),
}

/// Encodes a response as a header block, without hop-by-hop headers.
#[must_use]
pub fn encode(version: Version, head: &Parts) -> HeaderBlock {
    write(version, head, true)
}

/// The second block of a push in two blocks: the version is already in the first.
pub(crate) fn encode_without_version(version: Version, head: &Parts) -> HeaderBlock {
    write(version, head, false)
}

fn write(version: Version, head: &Parts, with_version: bool) -> HeaderBlock {
    let mut block = BlockWriter::for_headers(&head.headers);
    write_into(version, head, with_version, &mut block);
    block.finish()
}

/// Appends the pairs of a response to `block`.
pub(crate) fn write_into(
    version: Version,
    head: &Parts,
    with_version: bool,
    block: &mut BlockWriter,
) {
    let names = Names::of(version);
    let reason = head.status.canonical_reason().unwrap_or("Unknown");
    block.pair(
        names.status,
        &[head.status.as_str().as_bytes(), b" ", reason.as_bytes()],
    );
    if with_version {
        block.pair(names.version, &[b"HTTP/1.1"]);
    }
    block.headers(version, &head.headers);
}

/// Decodes a response from a header block, without hop-by-hop headers.
///
/// The spec requires a version; a missing one is accepted, as by most clients (choice): nothing depends on it.
///
/// # Errors
///
/// [`BadResponse`], if there is no status, the status is not a number, or a pair is not valid in HTTP.
pub fn decode(version: Version, block: &HeaderBlock) -> Result<Parts, BadResponse> {
    read(version, block, |_| false)
}

/// Reads a response without the pairs whose names `skip` matches.
pub(crate) fn read(
    version: Version,
    block: &HeaderBlock,
    skip: impl Fn(&[u8]) -> bool,
) -> Result<Parts, BadResponse> {
    let names = Names::of(version);
    let (mut head, ()) = Response::new(()).into_parts();
    let mut has_status = false;
    for (name, value) in block.iter() {
        if name == names.status.as_bytes() {
            head.status = status(value)?;
            has_status = true;
        } else if name == names.version.as_bytes() {
            // The version of the peer has no other effect, so any value is accepted.
            if value == b"HTTP/1.0" {
                head.version = http::Version::HTTP_10;
            }
        } else if is_hop_by_hop(name) || skip(name) {
            // applies to one hop only
        } else if name.starts_with(b":") {
            return Err(BadResponse::Unknown { name: quote(name) });
        } else {
            append(&mut head.headers, block, name, value)?;
        }
    }
    if !has_status {
        return Err(BadResponse::Missing { name: names.status });
    }
    Ok(head)
}

/// True if a block has a status, so that it is the head of a response.
#[must_use]
pub fn has_status(version: Version, block: &HeaderBlock) -> bool {
    block.get(Names::of(version).status).is_some()
}

/// True if a response with `status` to `method` has no body, whatever its headers (RFC 9110 §6.4.1).
#[must_use]
pub fn has_no_body(method: &Method, status: StatusCode) -> bool {
    *method == Method::HEAD
        || status.is_informational()
        || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// Parses `200` or `200 OK`: three digits, then the end or a space.
fn status(value: &[u8]) -> Result<StatusCode, BadResponse> {
    match value {
        [a, b, c] | [a, b, c, b' ', ..] => StatusCode::from_bytes(&[*a, *b, *c]).ok(),
        _ => None,
    }
    .ok_or_else(|| BadResponse::Status {
        value: quote(value),
    })
}
