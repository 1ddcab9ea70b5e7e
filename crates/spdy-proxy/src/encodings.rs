//! Bodies that are kept, under the codings that clients asked for: made once, and kept while there is room.
//!
//! What is kept of an answer is one body without a coding. The others are made of it, and can be made again: they have
//! room of their own, where the one that was used longest ago goes first.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use spdy_cache::body::{Body, Mark};
use spdy_cache::key::Key;

use crate::coding::{Coding, encode};

/// What one costs beside its bytes.
const OVERHEAD: usize = 256;

/// All of them.
#[derive(Debug)]
pub struct Encodings {
    state: Mutex<State>,
    limit: usize,
}

#[derive(Debug, Default)]
struct State {
    made: BTreeMap<(Key, Coding), Made>,
    /// By when each was used last.
    used: BTreeMap<u64, (Key, Coding)>,
    uses: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Made {
    of: Mark,
    bytes: Bytes,
    used: u64,
}

impl Made {
    fn weight(&self) -> usize {
        self.bytes.len() + OVERHEAD
    }
}

impl State {
    fn remove(&mut self, name: &(Key, Coding)) {
        if let Some(made) = self.made.remove(name) {
            self.used.remove(&made.used);
            self.bytes -= made.weight();
        }
    }

    fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }
}

impl Encodings {
    /// None yet, and room for `limit` bytes of them.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            state: Mutex::default(),
            limit,
        }
    }

    /// `body`, which is kept under `key`, under `coding`.
    #[must_use]
    pub fn of(&self, key: &Key, body: &Body, coding: Coding) -> Bytes {
        let name = (key.clone(), coding);
        if let Some(found) = self.find(&name, body) {
            return found;
        }
        // Not under the lock: two who come at once both make it, and the later one's stays.
        let pieces: Vec<Bytes> = body.chunks().cloned().collect();
        let bytes = encode(&pieces, coding);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.remove(&name);
        let used = state.next_use();
        let made = Made {
            of: body.mark(),
            bytes: bytes.clone(),
            used,
        };
        if made.weight() > self.limit {
            return bytes;
        }
        state.bytes += made.weight();
        state.used.insert(used, name.clone());
        state.made.insert(name, made);
        while state.bytes > self.limit
            && let Some((_, oldest)) = state.used.pop_first()
        {
            state.remove(&oldest);
        }
        bytes
    }

    fn find(&self, name: &(Key, Coding), body: &Body) -> Option<Bytes> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let used = state.next_use();
        let made = state
            .made
            .get_mut(name)
            .filter(|made| made.of.is_of(body))?;
        let before = std::mem::replace(&mut made.used, used);
        let bytes = made.bytes.clone();
        state.used.remove(&before);
        state.used.insert(used, name.clone());
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_key::key;

    #[test]
    fn what_is_made_is_made_once_for_a_body_and_anew_for_another() {
        let encodings = Encodings::new(10_000);
        let body = Body::copy_of(&[b'a'; 5_000]);
        let first = encodings.of(&key("/"), &body, Coding::Gzip);
        let again = encodings.of(&key("/"), &body.clone(), Coding::Gzip);
        assert!(std::ptr::eq(first.as_ptr(), again.as_ptr()));
        let other = Body::copy_of(&[b'b'; 5_000]);
        let made = encodings.of(&key("/"), &other, Coding::Gzip);
        assert_eq!(
            made,
            encode(&[other.chunks().next().unwrap().clone()], Coding::Gzip)
        );
    }

    #[test]
    fn the_one_used_longest_ago_makes_room() {
        let body = Body::copy_of(b"short");
        let weight = encode(&[Bytes::from_static(b"short")], Coding::Gzip).len() + OVERHEAD;
        let encodings = Encodings::new(2 * weight);
        let at = |target| encodings.of(&key(target), &body, Coding::Gzip);
        // What is held here stands where it is: nothing new can stand there.
        let (one, two) = (at("/1"), at("/2"));
        let is_same = |one: &Bytes, other: Bytes| one.as_ptr() == other.as_ptr();
        assert!(is_same(&one, at("/1")));
        at("/3");
        assert!(is_same(&one, at("/1")), "it was used");
        assert!(!is_same(&two, at("/2")), "it had to go");
        assert!(encodings.state.lock().unwrap().bytes <= 2 * weight);
    }
}
