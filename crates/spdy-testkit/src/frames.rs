//! Loads the test vectors of single frames without a header block, from many producers.

use serde::Deserialize;

use crate::fields::Fields;
use crate::hex::Hex;
use crate::vectors;

/// A test vector of one frame.
#[derive(Clone, Debug, Deserialize)]
pub struct FrameVector {
    /// Name of the vector.
    pub id: String,
    /// "2", "3" or "3.1".
    pub version: String,
    /// The whole frame.
    pub hex: Hex,
    /// Its fields; `None` for a frame that is shorter than its stated length.
    pub fields: Option<Fields>,
    /// How the bytes differ from the frame that the producer should have written; `None` if they do not.
    pub deviation: Option<Vec<String>>,
}

/// Loads all vectors of single frames.
///
/// # Panics
///
/// The file of the vectors is missing or malformed.
#[must_use]
pub fn all() -> Vec<FrameVector> {
    #[derive(Deserialize)]
    struct File {
        vectors: Vec<FrameVector>,
    }
    vectors::json::<File>("spec/frames.json").vectors
}
