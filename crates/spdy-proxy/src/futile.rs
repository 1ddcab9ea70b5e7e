//! What was fetched ahead in vain: it is not fetched ahead again for a while, so that the second fetch, by who asks for it, is paid once.
//!
//! What nobody may keep, or what is stale as soon as it is here, is likely so an hour later. What failed may be well again soon, and what
//! found no room is no matter of the thing at all.

use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use spdy_cache::key::Key;
use spdy_clock::Instant;

use crate::fetch::{Got, Worth};
use crate::remembered::Remembered;

/// For how long it is remembered of a thing that it was of no use.
const FUTILE_FOR: Duration = Duration::from_secs(60 * 60);
/// And that it failed.
const FAILED_FOR: Duration = Duration::from_secs(10);
/// Things of which either is remembered.
const FUTILE_KEYS: usize = 4096;

/// All of them.
#[derive(Debug)]
pub(crate) struct FutileThings(Mutex<Things>);

#[derive(Debug)]
struct Things {
    of_no_use: Remembered<Key>,
    failed: Remembered<Key>,
}

impl FutileThings {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Things {
            of_no_use: Remembered::new(FUTILE_FOR, FUTILE_KEYS),
            failed: Remembered::new(FAILED_FOR, FUTILE_KEYS),
        }))
    }

    /// Whether it would be in vain to fetch `key` ahead.
    pub(crate) fn has(&self, key: &Key, now: Instant) -> bool {
        let mut things = self.lock();
        things.of_no_use.has(key, now) || things.failed.has(key, now)
    }

    /// This came of fetching `key` ahead.
    pub(crate) fn note(&self, key: &Key, got: &Got, now: Instant) {
        let mut things = self.lock();
        match got {
            Got::Nothing(Worth::Kept) => {}
            Got::Nothing(Worth::None) => things.of_no_use.note(key, now),
            Got::Nothing(Worth::Failed) | Got::Answer(_) => things.failed.note(key, now),
        }
    }

    /// What was purged, by the beginning of its keys, may be of use now.
    pub(crate) fn purge(&self, prefix: &[u8]) {
        let first = Key::at_prefix(Bytes::copy_from_slice(prefix));
        let is_meant = |key: &Key| key.as_bytes().starts_with(prefix);
        let mut things = self.lock();
        things.of_no_use.forget_from(&first, is_meant);
        things.failed.forget_from(&first, is_meant);
    }

    fn lock(&self) -> MutexGuard<'_, Things> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use http::Response;
    use spdy::body::Body;

    use super::*;
    use crate::counters::Outcome;
    use crate::test_key::key;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// All that came of one fetch was of no use for an hour, also when its origin was away for five seconds.
    #[test]
    fn what_failed_is_left_for_seconds_and_what_is_of_no_use_for_an_hour_or_until_it_is_purged() {
        let things = FutileThings::new();
        let answer = |outcome| Got::answer(Response::new(Body::empty()), outcome);
        things.note(&key("/kept"), &Got::Nothing(Worth::Kept), at(0));
        things.note(&key("/private"), &Got::Nothing(Worth::None), at(0));
        things.note(&key("/overloaded"), &Got::Nothing(Worth::Failed), at(0));
        things.note(&key("/away"), &answer(Outcome::UNREACHABLE), at(0));
        let left = |seconds| {
            let all = ["/kept", "/private", "/overloaded", "/away"];
            let left = all
                .into_iter()
                .filter(|target| things.has(&key(target), at(seconds)));
            left.collect::<Vec<_>>()
        };
        assert_eq!(left(9), ["/private", "/overloaded", "/away"]);
        assert_eq!(left(3599), ["/private"]);
        assert_eq!(left(3600), [""; 0]);
        things.note(&key("/private"), &Got::Nothing(Worth::None), at(3600));
        things.purge(key("/private").as_bytes());
        assert_eq!(left(3600), [""; 0]);
    }
}
