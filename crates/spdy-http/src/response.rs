//! A response's head and its header block (SPDY/3.1 §3.2.2).
//!
//! ```text
//! 200 OK                    :status   200 OK
//! content-type: text/css <-> :version  HTTP/1.1
//!                           content-type  text/css
//! ```
//!
//! The reason is written in every version, because Undertow reads a bare `200` as 500, and ignored when
//! read, because nginx leaves it out.

pub use http::response::Parts as Head;
use http::response::Parts;
use http::{Method, Response, StatusCode};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::version::Version;

use crate::block_writer::BlockWriter;
use crate::header_names::{Names, is_hop_by_hop};
use crate::headers::{BadHeader, append, quote};

/// Why a block is no response: the stream is reset with PROTOCOL_ERROR.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadResponse {
    /// `:status` is missing.
    #[error("missing {name}")]
    Missing {
        /// The name.
        name: &'static str,
    },
    /// The status is not three digits and, after a space, a reason.
    #[error("status is {value:?}, expected three digits")]
    Status {
        /// As it came, cut to 64 bytes.
        value: String,
    },
    /// A name with a colon that no response has.
    #[error("{name:?} is not allowed in a response")]
    Unknown {
        /// The name, cut to 64 bytes.
        name: String,
    },
    /// A pair that HTTP cannot carry.
    #[error(transparent)]
    Header(#[from] BadHeader),
}

/// The header block of a response. Hop-by-hop headers are left out.
#[must_use]
pub fn encode(version: Version, head: &Parts) -> HeaderBlock {
    write(version, head, true)
}

/// The second block of a push in two blocks: the first already said the version.
pub(crate) fn encode_without_version(version: Version, head: &Parts) -> HeaderBlock {
    write(version, head, false)
}

fn write(version: Version, head: &Parts, with_version: bool) -> HeaderBlock {
    let mut block = BlockWriter::for_headers(&head.headers);
    write_into(version, head, with_version, &mut block);
    block.finish()
}

/// The pairs of a response, behind what is already in `block`.
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

/// The response of a header block. Hop-by-hop headers are left out.
///
/// The text wants a version; one that is missing is let pass, as most clients do (choice): nothing
/// depends on it.
///
/// # Errors
///
/// [`BadResponse`]: no status, a status that is no number, a pair HTTP cannot carry.
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

/// Whether a block says a status, and so is the head of a response.
#[must_use]
pub fn has_status(version: Version, block: &HeaderBlock) -> bool {
    block.value(Names::of(version).status).is_some()
}

/// Whether a response of `status` to `method` has no body, whatever its headers say (RFC 9110 §6.4.1).
#[must_use]
pub fn has_no_body(method: &Method, status: StatusCode) -> bool {
    *method == Method::HEAD
        || status.is_informational()
        || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// `200` or `200 OK`: three digits, then the end or a space.
fn status(value: &[u8]) -> Result<StatusCode, BadResponse> {
    match value {
        [a, b, c] | [a, b, c, b' ', ..] => StatusCode::from_bytes(&[*a, *b, *c]).ok(),
        _ => None,
    }
    .ok_or_else(|| BadResponse::Status {
        value: quote(value),
    })
}
