//! Finds earlier occurrences of four bytes in the window: the encoder's match search.
//!
//! ```text
//! hash of four bytes ──▶ | last place | the one before | before that | first |   16 bits each
//! ```
//!
//! Each hash has one word that holds its last four places, the newest lowest, so that to look up is one
//! load and to enter one shift. Places are counted modulo 2^16.
//!
//! A stream begins with the words of the dictionary, which all streams share. Its own first places are in a list, for a session that
//! sends one or two responses and waits needs no 16 KiB of words. When the list is full, the stream gets words of its own.

use crate::compression::deflate_encoder::{MIN_FOUND_MATCH, u32_at};
use crate::compression::dictionary::dictionary;
use crate::version::Version;

/// Places of one hash.
pub(crate) const WAYS: usize = 4;

const HASH_BITS: u32 = 11;

/// Places that are listed, before a stream has words of its own: those of two usual responses.
const MAX_LISTED: usize = 512;

/// Lists of places. The hashes of one list differ.
const LISTS: usize = 256;

/// The last places of each hash: 16 KiB.
type Words = [u64; 1 << HASH_BITS];

/// The last places of all four bytes.
pub(crate) struct MatchTable {
    dictionary: &'static Words,
    entered: Entered,
}

/// What was entered beside the dictionary.
enum Entered {
    Listed(Lists),
    /// The words of the dictionary are among them.
    Words(Box<Words>),
}

/// Lists of places, each with its newest one first.
struct Lists {
    /// Where in `places` each list begins, from 1 on; 0 for none.
    heads: Vec<u16>,
    /// In the order in which they were entered.
    places: Vec<ListedPlace>,
}

#[derive(Clone, Copy)]
struct ListedPlace {
    hash: u16,
    place: u16,
    /// The next one of the list, counted like `heads`.
    older: u16,
}

impl MatchTable {
    /// What a stream begins with: the places of the dictionary, computed by the compiler.
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

    /// The last places whose bytes hash as these do, the newest in the low 16 bits.
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
    /// The listed places of `hash`, and behind them those of `word`.
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

    /// The words of a stream that began with those of the `dictionary`.
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

    /// The bytes on the wire must not depend on where places are.
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
