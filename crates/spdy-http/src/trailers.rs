//! Trailers: what HEADERS add to a message whose head was passed on, at any position (SPDY/3.1 §2.6.7).
//!
//! ```text
//! SYN_REPLY  :status 200, a: 1         the head, told at once
//! HEADERS    b: 2                 }
//! DATA       ...                  }    the body, and behind its last byte the trailers: b: 2, c: 3
//! HEADERS    c: 3                 }
//! DATA       ..., FIN             }
//! ```
//!
//! The text lets HEADERS between SYN_REPLY and the first DATA add to the response's own headers. It does not state
//! whether such HEADERS will come. A receiver that joins them to the head has to hold every response back until its
//! first DATA: minutes for a stream of events, for ever for the answer to a CONNECT (its DATA waits for ours). Or it
//! goes by time, so that the response depends on how the transport cut the bytes. So the head is what came in one
//! block, and later headers are passed on later, without losing a name (choice; Chromium resets the stream at such
//! HEADERS, Firefox alone merged them). The same holds for requests after their SYN_STREAM.
//!
//! One rule of the text for HEADERS before DATA stays: they may not repeat a name.

use http::{HeaderMap, header};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::version::Version;

use crate::block_writer::BlockWriter;
use crate::header_names::{Names, is_hop_by_hop};
use crate::headers::{BadHeader, append, quote};

/// Why HEADERS are no trailers: the stream is reset with PROTOCOL_ERROR.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadTrailers {
    /// A name with a colon; of SPDY/2 one of the message's first line, before DATA.
    #[error("{name:?} is not allowed in trailers")]
    Unknown {
        /// The name, cut to 64 bytes.
        name: String,
    },
    /// HEADERS before the first DATA gave a name again.
    #[error("header {name:?} occurs twice")]
    Repeated {
        /// The name, cut to 64 bytes.
        name: String,
    },
    /// A pair that HTTP cannot carry.
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
            && (head.value(&text).is_some() || trailers.contains_key(&text[..]))
        {
            return Err(BadTrailers::Repeated { name: quote(name) });
        }
        if !is_skipped {
            append(trailers, block, name, value)?;
        }
    }
    Ok(())
}

/// The header block of trailers.
#[must_use]
pub fn encode(version: Version, trailers: &HeaderMap) -> HeaderBlock {
    let mut block = BlockWriter::for_headers(trailers);
    block.headers(version, trailers);
    block.finish()
}
