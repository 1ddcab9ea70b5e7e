//! Checks that a header block can be encoded.
//!
//! The encoder accepts any block, and panics if a length exceeds its integers: 16 bits in SPDY/2. So every block from a caller is
//! checked here before it is passed to the session.

use spdy_frame::header_block::{BlockLimits, HeaderBlock};
use spdy_frame::version::Version;

use crate::error::Error;

/// Limit of the plain bytes of a block that we send. A peer with our own limits accepts at most this much before it ends the
/// session, and the compressed block certainly fits into a frame.
const MAX_PLAIN: usize = 1024 * 1024;

/// A block up to this size can be encoded in every version, with any pairs.
const FITS_ALWAYS: usize = u16::MAX as usize;

fn limits() -> BlockLimits {
    let mut limits = BlockLimits::default();
    limits.plain_bytes = MAX_PLAIN;
    limits.inflated_bytes = MAX_PLAIN;
    limits.pairs = u16::MAX as usize;
    limits.name_bytes = MAX_PLAIN;
    limits.value_bytes = MAX_PLAIN;
    limits.lowercase_names = false;
    limits
}

/// Checks the names, values and lengths of a block that a caller built.
///
/// # Errors
///
/// [`Error::Headers`] for a block that no peer accepts: a name that is not a lower-case token, a line end or an empty component in
/// a value, a duplicate name, too many bytes.
pub(crate) fn check(version: Version, headers: &HeaderBlock) -> Result<(), Error> {
    headers.check(version, &limits()).map_err(Error::Headers)
}

/// Checks only the lengths of a block that was converted from `http`'s types, whose names and values are valid.
///
/// # Errors
///
/// [`Error::Headers`] if it is too long.
pub(crate) fn check_length(version: Version, headers: &HeaderBlock) -> Result<(), Error> {
    if headers.plain_len(version) <= FITS_ALWAYS {
        return Ok(());
    }
    check(version, headers)
}
