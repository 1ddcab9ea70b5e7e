//! Requests for a part of what is not kept: media begin with `Range: bytes=0-`, and nothing is kept of parts.
//!
//! ```text
//!  bytes=0-…, a miss ──▶ the whole is asked for ── it can be kept ────▶ recorded and kept; the part is cut out of the recording
//!                                               └─ it cannot ─────────▶ the part is asked for, and so for an hour
//!  any other range ──▶ the whole is coming, and is there as far as the range's first byte ──▶ cut out of the recording
//!                      └─ else ──▶ passed on
//! ```

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{HeaderMap, Response, StatusCode, header, response};
use http_body::Body as _;
use spdy::body::Body;
use spdy_cache::cache_status::Forward;
use spdy_cache::freshness::Times;
use spdy_cache::key::Key;
use spdy_cache::lookup;
use spdy_clock::Instant;

use crate::counters::Outcome;
use crate::fetched::Fetch;
use crate::followed::Followed;
use crate::proxy::{Proxy, Source};
use crate::remembered::Remembered;
use crate::respond;
use crate::wanted::Wanted;

/// For how long it is remembered of a thing that the whole of it is not kept.
const FUTILE_FOR: Duration = Duration::from_secs(60 * 60);
/// Things of which that is remembered.
const FUTILE_KEYS: usize = 4096;

/// What is not fetched whole for who wants its beginning.
#[derive(Debug)]
pub(crate) struct Wholes(Mutex<Remembered<Key>>);

impl Default for Wholes {
    fn default() -> Self {
        Self(Mutex::new(Remembered::new(FUTILE_FOR, FUTILE_KEYS)))
    }
}

impl Wholes {
    fn are_futile(&self, key: &Key, now: Instant) -> bool {
        self.lock().has(key, now)
    }

    fn note_futile(&self, key: &Key, now: Instant) {
        self.lock().note(key, now);
    }

    fn lock(&self) -> MutexGuard<'_, Remembered<Key>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Proxy {
    /// Whether the whole is asked for in place of the beginning that is wanted.
    pub(crate) fn begins_whole(&self, wanted: &Wanted) -> bool {
        lookup::may_begin_whole(self.policy(wanted.whose()), &wanted.ask)
            && !self.wholes.are_futile(&wanted.key, self.runtime.now())
    }

    /// The part that is wanted of what is coming for others, if it has come as far as where the part begins.
    pub(crate) fn part_of_coming(
        &self,
        wanted: &Wanted,
        forward: Forward,
    ) -> Option<Response<Body>> {
        let landing = self.flights.landed(&wanted.key)?;
        let Source::Coming(recording) = &landing.source else {
            return None;
        };
        let (policy, now) = (self.policy(wanted.whose()), self.hour());
        if !lookup::may_share_with(policy, &landing.stored, &wanted.ask, now) {
            return None;
        }
        let mut head = Response::new(()).into_parts().0;
        head.status = landing.stored.status();
        head.headers.clone_from(landing.stored.served());
        let (_, range) = respond::part(policy, wanted, &head, recording, now)?;
        if recording.here() <= range.start {
            return None;
        }
        let response = self.share(wanted, &landing, now, forward)?;
        Some(respond::marked(response, Outcome::COLLAPSED))
    }
}

impl Fetch {
    /// Whether the whole was asked for, by the fields `asked`, and came so that it will not be kept, while a part is wanted.
    pub(crate) fn is_futile_whole(
        &self,
        at: &Wanted,
        asked: &HeaderMap,
        head: &response::Parts,
        body: &Body,
        times: Times,
        followed: &Followed,
    ) -> bool {
        let is_for_part = self.wanted.ask.headers.contains_key(header::RANGE)
            && !asked.contains_key(header::RANGE)
            && self.leader.is_some()
            && self.known.is_none();
        if !is_for_part {
            return false;
        }
        let of_host = at.moved.as_ref();
        let of_host = of_host.map(|(moved, _)| at.site.rules.limits(moved).max_bytes);
        let most = of_host
            .unwrap_or(u64::MAX)
            .min(self.proxy.object_bytes as u64);
        let fits = body.size_hint().exact().is_some_and(|len| len <= most);
        head.status == StatusCode::OK && !(fits && self.storable(head, times, followed).is_ok())
    }

    /// Asks for the part from now on, by the fields `headers`: the whole is not kept.
    pub(crate) fn ask_for_part(&mut self, headers: &mut HeaderMap) {
        self.give_up_sharing();
        let now = self.proxy.runtime.now();
        self.proxy.wholes.note_futile(&self.wanted.key, now);
        if let Some(range) = self.wanted.for_origin().remove(header::RANGE) {
            headers.insert(header::RANGE, range);
        }
    }
}
