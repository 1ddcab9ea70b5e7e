//! Finds earlier occurrences of four bytes in the window: the encoder's match search.
//!
//! ```text
//! hash of four bytes ──▶ | last place | the one before | before that | first |   16 bits each
//! ```
//!
//! Each hash has one word that holds its last four places, the newest lowest, so that to look up is one
//! load and to enter one shift. Places are counted modulo 2^16.

use crate::compression::deflate_encoder::{MIN_FOUND_MATCH, u32_at};
use crate::compression::dictionary::dictionary;
use crate::version::Version;

/// Places of one hash.
pub(crate) const WAYS: usize = 4;

const HASH_BITS: u32 = 11;

/// 16 KiB of places.
#[derive(Clone)]
pub(crate) struct MatchTable {
    positions: [u64; 1 << HASH_BITS],
}

impl MatchTable {
    /// What a stream begins with: the places of the dictionary. Computed by the compiler, shared by all
    /// streams, copied by each.
    pub(crate) fn of(version: Version) -> &'static Self {
        static V2: MatchTable = MatchTable::filled(dictionary(Version::V2));
        static V3: MatchTable = MatchTable::filled(dictionary(Version::V3));
        match version {
            Version::V2 => &V2,
            Version::V3 | Version::V31 => &V3,
        }
    }

    const fn filled(text: &[u8]) -> Self {
        let mut places = Self {
            positions: [0; 1 << HASH_BITS],
        };
        let mut at = 0;
        while at + MIN_FOUND_MATCH <= text.len() {
            places.insert(u32_at(text, at), at as u16);
            at += 1;
        }
        places
    }

    /// The last places whose bytes hash as these do, the newest in the low 16 bits.
    #[inline]
    pub(crate) const fn candidates(&self, bytes: u32) -> u64 {
        self.positions[hash(bytes)]
    }

    #[inline]
    pub(crate) const fn insert(&mut self, bytes: u32, place: u16) {
        let places = &mut self.positions[hash(bytes)];
        *places = *places << 16 | place as u64;
    }
}

#[inline]
const fn hash(bytes: u32) -> usize {
    (bytes.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize
}
