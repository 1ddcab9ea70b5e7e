//! Counts on the command line.

use std::num::NonZeroUsize;

/// Reads how many of something there are to be, at least one.
pub(crate) fn at_least_one(text: &str) -> Result<NonZeroUsize, String> {
    let count = text.parse();
    count.map_err(|_| "want a whole number from 1 on, such as 4".to_owned())
}
