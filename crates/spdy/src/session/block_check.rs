//! Whether a header block can be written at all.
//!
//! The encoder accepts any block, and panics over lengths that exceed its integers: 16 bits in SPDY/2. So
//! every block that a caller made passes here before it reaches the session.

use spdy_frame::header_block::{BlockLimits, HeaderBlock};
use spdy_frame::version::Version;

use crate::error::Error;

/// Plain bytes of one block that we write: what a peer with our own limits reads at most without giving
/// the session up, and compressed surely less than a frame can hold.
const MAX_PLAIN: usize = 1024 * 1024;

/// A block that is no longer fits into every version, whatever it is made of.
const FITS_ALWAYS: usize = u16::MAX as usize;

const LIMITS: BlockLimits = BlockLimits {
    plain_bytes: MAX_PLAIN,
    inflated_bytes: MAX_PLAIN,
    pairs: u16::MAX as usize,
    name_bytes: MAX_PLAIN,
    value_bytes: MAX_PLAIN,
    lowercase_names: false,
};

/// Checks a block that a caller put together: names, values and lengths.
///
/// # Errors
///
/// [`Error::Headers`] for what no peer would take: a name that is no lower-case token, a line end or an
/// empty component in a value, a name twice, too many bytes.
pub(crate) fn check(version: Version, headers: &HeaderBlock) -> Result<(), Error> {
    headers.check(version, &LIMITS).map_err(Error::Headers)
}

/// Checks a block that was made from `http`'s types, whose names and values are right: lengths alone.
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
