//! Header blocks compressed in many legal ways, and what is known of the dictionaries.

use serde::Deserialize;

use crate::fields::Header;
use crate::hex::Hex;
use crate::vectors;

/// Blocks that share one compression context, in order.
#[derive(Clone, Debug, Deserialize)]
pub struct ZlibVector {
    /// Name of the vector.
    pub id: String,
    /// "2" or "3".
    pub version: String,
    /// The blocks.
    pub blocks: Vec<ZlibBlock>,
}

/// One block.
#[derive(Clone, Debug, Deserialize)]
pub struct ZlibBlock {
    /// As on the wire.
    pub compressed: Hex,
    /// Inflated.
    pub plain: Hex,
    /// Read.
    pub headers: Vec<Header>,
}

/// All compression variants.
#[must_use]
pub fn all() -> Vec<ZlibVector> {
    #[derive(Deserialize)]
    struct File {
        vectors: Vec<ZlibVector>,
    }
    vectors::json::<File>("spec/zlib_variants.json").vectors
}

/// What is known of the dictionaries and of the streams that begin with them.
#[derive(Clone, Debug, Deserialize)]
pub struct Dictionaries {
    /// The two dictionaries.
    pub dictionaries: Vec<Dictionary>,
    /// How streams begin.
    pub zlib_stream_starts: Vec<StreamStart>,
}

/// A preset dictionary.
#[derive(Clone, Debug, Deserialize)]
pub struct Dictionary {
    /// "2", or "3 and 3.1".
    pub version: String,
    /// Bytes.
    pub length: usize,
    /// Adler-32, which is the dictionary id.
    pub adler32: Hex,
    /// CRC-32.
    pub crc32: Hex,
    /// The first bytes.
    pub first16: Hex,
    /// The last bytes.
    pub last16: Hex,
}

/// The first six bytes of a stream.
#[derive(Clone, Debug, Deserialize)]
pub struct StreamStart {
    /// "2" or "3".
    pub version: String,
    /// Window of the writer, 9 to 15.
    pub window_bits: u8,
    /// Level of the writer, 0 to 9.
    pub level: u8,
    /// zlib head and dictionary id.
    pub first6: Hex,
}

/// The facts about dictionaries.
#[must_use]
pub fn dictionaries() -> Dictionaries {
    vectors::json("spec/dictionaries.json")
}
