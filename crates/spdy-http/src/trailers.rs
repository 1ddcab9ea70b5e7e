//! Trailers: headers of HEADERS frames after a message's head was delivered, at any position (SPDY/3.1 §2.6.7).
//!
//! ```text
//! SYN_REPLY  :status 200, a: 1         the head, delivered at once
//! HEADERS    b: 2                 }
//! DATA       ...                  }    the body, and after its last byte the trailers: b: 2, c: 3
//! HEADERS    c: 3                 }
//! DATA       ..., FIN             }
//! ```
//!
//! The spec allows HEADERS between SYN_REPLY and the first DATA to add to the response's own headers. It does not define how a
//! receiver knows that they will follow. A receiver that merges them into the head must delay every response until its first DATA:
//! minutes for an event stream, forever for the response to a CONNECT (its DATA waits for ours). With a timeout instead, the
//! response would depend on how the transport split the bytes. So the head is the first block alone, and later headers are
//! delivered later, without losing a name (choice; Chromium resets the stream because of such HEADERS, only Firefox merged them).
//! The same applies to requests after their SYN_STREAM.
//!
//! One rule of the spec for HEADERS before DATA is enforced: they must not repeat a name.

use http::{HeaderMap, header};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::version::Version;

use crate::block_writer::BlockWriter;
use crate::header_names::{Names, is_hop_by_hop};
use crate::headers::{BadHeader, append, quote};

/// Why HEADERS are not valid trailers: the stream is reset with PROTOCOL_ERROR.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadTrailers {
    /// A name with a colon; in SPDY/2 a name of the message's first line, before DATA.
    #[error("{name:?} is not allowed in trailers")]
    Unknown {
        /// The name, truncated to 64 bytes.
        name: String,
    },
    /// HEADERS before the first DATA repeated a name.
    #[error("header {name:?} occurs twice")]
    Repeated {
        /// The name, truncated to 64 bytes.
        name: String,
    },
    /// A pair that is not valid in HTTP.
    #[error(transparent)]
    Header(#[from] BadHeader),
}

/// Adds the pairs of a HEADERS frame to `trailers`. `head` is the block of the message's head, until DATA arrives:
/// after DATA a name may be repeated, as in HTTP/1.1.
///
/// Hop-by-hop headers are left out, and so are `host` and `content-length`: only the head states the destination and
/// the length of a message (RFC 9110 §6.5.1). A name with a colon is not an HTTP name and is rejected at any
/// position. The SPDY/2 names for the parts of a first line (`url`, `version` ...) are plain names; after DATA they
/// have no special meaning.
///
/// # Errors
///
/// [`BadTrailers`]; the content of `trailers` is then unspecified.
pub fn add(
    version: Version,
    head: Option<&HeaderBlock>,
    trailers: &mut HeaderMap,
    block: &HeaderBlock,
) -> Result<(), BadTrailers> {
    let names = Names::of(version);
    for (name, value) in block.iter() {
        if is_hop_by_hop(name) {
            continue;
        }
        let text = String::from_utf8_lossy(name);
        let is_skipped = [header::HOST, header::CONTENT_LENGTH]
            .iter()
            .any(|skipped| skipped.as_str() == text);
        let of_first_line = head.is_some() && names.contains(&text) && !is_skipped;
        if name.starts_with(b":") || of_first_line {
            return Err(BadTrailers::Unknown { name: quote(name) });
        }
        if let Some(head) = head
            && (head.get(&text).is_some() || trailers.contains_key(&text[..]))
        {
            return Err(BadTrailers::Repeated { name: quote(name) });
        }
        if !is_skipped {
            append(trailers, block, name, value)?;
        }
    }
    Ok(())
}

/// Encodes trailers as a header block.
#[must_use]
pub fn encode(version: Version, trailers: &HeaderMap) -> HeaderBlock {
    let mut block = BlockWriter::for_headers(trailers);
    block.headers(version, trailers);
    block.finish()
}
