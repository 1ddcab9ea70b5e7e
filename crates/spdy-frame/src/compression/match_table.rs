//! Finds earlier occurrences of four bytes in the window: the encoder's match search.
//!
//! ```text
//! hash of four bytes ──▶ | last place | the one before | before that | first |   16 bits each
//! ```
//!
//! Each hash has one word with its last four places, the newest in the lowest bits, so that a lookup is one load and an
//! insertion is one shift. A place is a position in the stream modulo 2^16.
//!
//! A stream starts with the words of the dictionary, which all streams share. Its own first places are stored in lists: a session
//! that sends one or two responses and then waits does not need 16 KiB of words. When the lists are full, the stream gets its own
//! words.

use crate::compression::deflate_encoder::{MIN_FOUND_MATCH, u32_at};
use crate::compression::dictionary::dictionary;
use crate::version::Version;

/// Places of one hash.
pub(crate) const WAYS: usize = 4;

const HASH_BITS: u32 = 11;

/// Places that are stored in lists before a stream gets its own words: enough for two usual responses.
const MAX_LISTED: usize = 512;

/// Number of lists. Several hashes share a list.
const LISTS: usize = 256;

/// The last places of each hash: 16 KiB.
type Words = [u64; 1 << HASH_BITS];

/// The last places of each sequence of four bytes.
pub(crate) struct MatchTable {
    dictionary: &'static Words,
    entered: Entered,
}

/// The places that were inserted after those of the dictionary.
enum Entered {
    Listed(Lists),
    /// These words include the places of the dictionary.
    Words(Box<Words>),
}

/// Lists of places, each with its newest one first.
struct Lists {
    /// Index in `places` of the newest place of each list, plus 1; 0 for an empty list.
    heads: Vec<u16>,
    /// All places, in the order of insertion.
    places: Vec<ListedPlace>,
}

#[derive(Clone, Copy)]
struct ListedPlace {
    hash: u16,
    place: u16,
    /// The next older place of the same list, as an index like those in `heads`.
    older: u16,
}

impl MatchTable {
    /// The table of a new stream: the places of the dictionary, computed at compile time.
    pub(crate) const fn new(version: Version) -> Self {
        static V2: Words = words_of(dictionary(Version::V2));
        static V3: Words = words_of(dictionary(Version::V3));
        Self {
            dictionary: match version {
                Version::V2 => &V2,
                Version::V3 | Version::V31 => &V3,
            },
            entered: Entered::Listed(Lists {
                heads: Vec::new(),
                places: Vec::new(),
            }),
        }
    }

    /// The last places with the same hash as `bytes`, the newest in the low 16 bits.
    #[inline]
    pub(crate) fn candidates(&self, bytes: u32) -> u64 {
        let hash = hash(bytes);
        match &self.entered {
            Entered::Words(words) => words[hash],
            Entered::Listed(lists) => lists.before(self.dictionary[hash], hash),
        }
    }

    #[inline]
    pub(crate) fn insert(&mut self, bytes: u32, place: u16) {
        let hash = hash(bytes);
        match &mut self.entered {
            Entered::Words(words) => enter(&mut words[hash], place),
            Entered::Listed(lists) if lists.places.len() < MAX_LISTED => lists.insert(hash, place),
            Entered::Listed(lists) => {
                let mut words = lists.to_words(self.dictionary);
                enter(&mut words[hash], place);
                self.entered = Entered::Words(words);
            }
        }
    }
}

impl Lists {
    /// The listed places of `hash`, newest first, followed by those of `word`.
    fn before(&self, word: u64, hash: usize) -> u64 {
        let mut next = self.heads.get(hash % LISTS).map_or(0, |head| *head);
        let (mut found, mut count) = (0, 0);
        while let Some(listed) = usize::from(next).checked_sub(1).map(|at| self.places[at]) {
            if usize::from(listed.hash) == hash {
                found |= u64::from(listed.place) << (16 * count);
                count += 1;
                if count == WAYS {
                    return found;
                }
            }
            next = listed.older;
        }
        found | word << (16 * count)
    }

    fn insert(&mut self, hash: usize, place: u16) {
        if self.heads.is_empty() {
            self.heads.resize(LISTS, 0);
        }
        let older = self.heads[hash % LISTS];
        if self.places.len() == self.places.capacity() {
            self.places.reserve_exact(MAX_LISTED / 8);
        }
        self.places.push(ListedPlace {
            hash: hash as u16,
            place,
            older,
        });
        self.heads[hash % LISTS] = self.places.len() as u16;
    }

    /// The words of the `dictionary` with all listed places added.
    #[cold]
    fn to_words(&self, dictionary: &Words) -> Box<Words> {
        let Ok(mut words) = Box::<Words>::try_from(dictionary.to_vec().into_boxed_slice()) else {
            unreachable!("there are as many words as in the dictionary");
        };
        for listed in &self.places {
            enter(&mut words[usize::from(listed.hash)], listed.place);
        }
        words
    }
}

const fn words_of(text: &[u8]) -> Words {
    let mut words = [0; 1 << HASH_BITS];
    let mut at = 0;
    while at + MIN_FOUND_MATCH <= text.len() {
        enter(&mut words[hash(u32_at(text, at))], at as u16);
        at += 1;
    }
    words
}

#[inline]
const fn enter(word: &mut u64, place: u16) {
    *word = *word << 16 | place as u64;
}

#[inline]
const fn hash(bytes: u32) -> usize {
    (bytes.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes on the wire must not depend on where places are stored.
    #[test]
    fn listed_places_are_those_of_words() {
        for version in [Version::V2, Version::V3] {
            let mut table = MatchTable::new(version);
            let mut words = *table.dictionary;
            let mut state = 1_u32;
            for place in 0..2 * MAX_LISTED as u16 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                // Few different bytes, so that one hash has many places.
                let bytes = state >> 25;
                for bytes in [bytes, state] {
                    assert_eq!(
                        table.candidates(bytes),
                        words[hash(bytes)],
                        "place {place}, seed 1"
                    );
                }
                table.insert(bytes, place);
                enter(&mut words[hash(bytes)], place);
                let is_listed = matches!(table.entered, Entered::Listed(_));
                assert_eq!(is_listed, usize::from(place) < MAX_LISTED);
            }
        }
    }
}
