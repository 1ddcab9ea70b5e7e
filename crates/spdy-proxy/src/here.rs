//! What was here when it was looked for to be fetched ahead. Pages of one site name the same things, and to look for one of them takes
//! longer than to rewrite what names it: so it is not looked for again at once.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use spdy_clock::Instant;

use crate::fields;
use crate::remembered::Remembered;
use crate::wanted::Wanted;

/// For how long one is not looked for again.
const HERE_FOR: Duration = Duration::from_secs(1);
/// Things of which that is remembered.
const MAX_THINGS: usize = 4096;

/// The things that are here, each by a number. Two of one number are taken for one: then the other may not be fetched ahead for a while.
#[derive(Debug)]
pub(crate) struct Here(Mutex<Remembered<u64>>);

/// Who looks for things, by all that what is here may be chosen by.
#[derive(Debug)]
pub(crate) struct Seeker(DefaultHasher);

impl Seeker {
    /// Who asked for `wanted` and is `told` so of it, after so many `purges`.
    pub(crate) fn of(wanted: &Wanted, told: &HeaderMap, purges: u64) -> Self {
        let mut hasher = DefaultHasher::new();
        (&wanted.site.name, wanted.site.rules.tag(), purges).hash(&mut hasher);
        (&wanted.authority, fields::scheme_of(wanted.arrival)).hash(&mut hasher);
        for (name, value) in told {
            (name, value).hash(&mut hasher);
        }
        Self(hasher)
    }

    /// The number of what is at `path`, loaded as `load` tells.
    pub(crate) fn number(&self, path: &str, load: &impl Hash) -> u64 {
        let mut hasher = self.0.clone();
        (path, load).hash(&mut hasher);
        hasher.finish()
    }
}

impl Here {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Remembered::new(HERE_FOR, MAX_THINGS)))
    }

    /// Whether the thing of this number was here a moment ago.
    pub(crate) fn has(&self, number: u64, now: Instant) -> bool {
        self.things(|things| things.has(&number, now))
    }

    /// The thing of this number is here.
    pub(crate) fn note(&self, number: u64, now: Instant) {
        self.things(|things| things.note(&number, now));
    }

    fn things<T>(&self, ask: impl FnOnce(&mut Remembered<u64>) -> T) -> T {
        ask(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
