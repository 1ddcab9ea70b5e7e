//! One-way sessions: the frames of one producer in one direction, with one compression context.

use serde::Deserialize;

use crate::fields::Fields;
use crate::hex::Hex;
use crate::vectors;

/// One direction of a session, from its first byte.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// Name of the vector.
    pub id: String,
    /// "2", "3" or "3.1".
    pub version: String,
    /// Every byte.
    pub bytes: Vec<u8>,
    /// What the bytes hold.
    pub frames: Vec<SequenceFrame>,
}

/// A frame in a [`Sequence`].
#[derive(Clone, Debug, Deserialize)]
pub struct SequenceFrame {
    /// Its name in the script that every producer followed.
    pub label: String,
    /// Where it begins in the bytes.
    pub offset: usize,
    /// Its bytes.
    pub hex: Hex,
    /// What it means.
    pub fields: Fields,
}

/// All one-way sessions.
#[must_use]
pub fn all() -> Vec<Sequence> {
    #[derive(Deserialize)]
    struct File {
        sequences: Vec<Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        id: String,
        version: String,
        file: String,
        frames: Vec<SequenceFrame>,
    }
    let entries = vectors::json::<File>("spec/sequences.json").sequences;
    let sequence = |Entry {
                        id,
                        version,
                        file,
                        frames,
                    }| {
        let bytes = vectors::bytes(&format!("spec/{file}"));
        Sequence {
            id,
            version,
            bytes,
            frames,
        }
    };
    entries.into_iter().map(sequence).collect()
}
