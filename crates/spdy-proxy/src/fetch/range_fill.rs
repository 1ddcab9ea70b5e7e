//! Requests for a part of a resource that is not stored: media begin with `Range: bytes=0-`, and parts are not stored.
//!
//! ```text
//!  bytes=0-…, a miss ──▶ has its client credit (fetch/range_fill_credit.rs)? ── no ──▶ the part is requested
//!     │ yes
//!     └────────────────▶ the whole is requested ── it can be kept ────▶ recorded and kept; the part is cut out of the recording
//!                                               └─ it cannot ─────────▶ the part is requested, and so for an hour: for all, or for
//!                                                                         requests with cookies, if it is for these
//!  any other range ──▶ the whole is coming, and is there as far as the range's first byte ──▶ cut out of the recording
//!                      └─ else ──▶ passed on
//! ```

use std::time::Duration;

use http::{HeaderMap, Response, StatusCode, header, response};
use http_body::Body as _;
use parking_lot::{Mutex, MutexGuard};
use spdy::body::Body;
use spdy_cache::cache_control::RequestControl;
use spdy_cache::cache_status::Forward;
use spdy_cache::freshness::Times;
use spdy_cache::key::Key;
use spdy_cache::lookup;
use spdy_cache::storable::Uncacheable;
use spdy_clock::Instant;

use crate::cache::shared_response::{CoalesceKey, SharedBodySource};
use crate::expiring_map::ExpiringMap;
use crate::fetch::origin_exchange::Fetch;
use crate::fetch::range_fill_credit::{self, RangeFill};
use crate::fetch::redirect_chain::RedirectChain;
use crate::proxy::Proxy;
use crate::request::proxy_request::ProxyRequest;
use crate::response::respond;
use crate::telemetry::counters::{CounterFamily, Outcome};

/// How long it is remembered that the whole of a resource is not stored.
const RANGE_FILL_BACKOFF: Duration = Duration::from_secs(60 * 60);
/// Most keys that are remembered.
const MAX_RANGE_FILL_BACKOFFS: usize = 4096;

/// Keys for which a range from the first byte does not request the whole.
#[derive(Debug)]
pub(crate) struct RangeFillBackoff(Mutex<BackoffKeys>);

#[derive(Debug)]
struct BackoffKeys {
    for_all: ExpiringMap<Key>,
    with_cookies: ExpiringMap<Key>,
}

impl Default for RangeFillBackoff {
    fn default() -> Self {
        let none = || ExpiringMap::new(RANGE_FILL_BACKOFF, MAX_RANGE_FILL_BACKOFFS);
        Self(Mutex::new(BackoffKeys {
            for_all: none(),
            with_cookies: none(),
        }))
    }
}

impl RangeFillBackoff {
    fn contains(&self, key: &Key, has_cookies: bool, now: Instant) -> bool {
        let mut futile = self.lock();
        futile.for_all.has(key, now) || has_cookies && futile.with_cookies.has(key, now)
    }

    /// Records that the whole of `key` is not stored for this reason. A reason that is about one client only is not recorded.
    fn record(&self, key: &Key, why: Uncacheable, now: Instant) {
        match why {
            Uncacheable::RequestNoStore | Uncacheable::Authorization => {}
            Uncacheable::Cookie => self.lock().with_cookies.insert_key(key, now),
            _ => self.lock().for_all.insert_key(key, now),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BackoffKeys> {
        self.0.lock()
    }
}

impl Proxy {
    /// Whether the whole is requested instead of the range from the first byte.
    pub(crate) fn should_fill(&self, wanted: &ProxyRequest) -> bool {
        let said = &wanted.ask.headers;
        let has_cookies = said.contains_key(header::COOKIE);
        let now = self.runtime.now();
        lookup::may_fill_range(self.policy(wanted.origin_kind()), &wanted.ask)
            && !RequestControl::parse(said).no_store
            && !self
                .range_fill_backoff
                .contains(&wanted.key, has_cookies, now)
    }

    /// The requested part of a shared response that is still arriving, if the first byte of the part has arrived.
    pub(crate) fn respond_range_of_shared(
        &self,
        wanted: &ProxyRequest,
        forward: Forward,
    ) -> Option<Response<Body>> {
        let landing = self
            .coalescer
            .shared_response(&CoalesceKey::of(&wanted.key))?;
        let SharedBodySource::Incoming(recording) = &landing.source else {
            return None;
        };
        let (policy, now) = (self.policy(wanted.origin_kind()), self.wall_now());
        if !lookup::may_share_with(policy, &landing.stored, &wanted.ask, now, now) {
            return None;
        }
        let mut head = Response::new(()).into_parts().0;
        head.status = landing.stored.status();
        head.headers.clone_from(landing.stored.served());
        let (_, range) = respond::part(policy, wanted, &head, recording, now)?;
        if recording.here() <= range.start {
            return None;
        }
        let response = self.respond_shared(wanted, &landing, now, forward)?;
        Some(respond::with_outcome(response, Outcome::COALESCED))
    }
}

impl Fetch {
    /// Whether to request the whole resource instead of the part that the client wants.
    pub(crate) fn is_fill(&self) -> bool {
        let is_part_wanted = self.wanted.ask.headers.contains_key(header::RANGE);
        is_part_wanted && self.leader.is_some() && self.known.is_none()
    }

    /// Starts to request the whole resource instead of the part. Past the client's credit it requests only the part, and other clients that
    /// wait request the whole with their own credit.
    pub(crate) fn start(&mut self) -> Option<RangeFill> {
        if !self.is_fill() {
            return None;
        }
        let (proxy, now) = (&self.proxy, self.proxy.runtime.now());
        let fill = proxy.range_fills.begin(self.wanted.from, now);
        if fill.is_none() {
            proxy
                .counters
                .count(CounterFamily::Limits, range_fill_credit::LIMIT);
            self.leader = None;
        }
        fill
    }

    /// Why the whole that was requested with the fields `asked` will not be stored, if a part is wanted.
    pub(crate) fn reject_reason(
        &self,
        at: &ProxyRequest,
        asked: &HeaderMap,
        head: &response::Parts,
        body: &Body,
        times: Times,
        followed: &RedirectChain,
    ) -> Option<Uncacheable> {
        let is_for_part = self.is_fill() && !asked.contains_key(header::RANGE);
        if !is_for_part || head.status != StatusCode::OK {
            return None;
        }
        let of_host = at.moved.as_ref();
        let of_host = of_host.map(|(moved, _)| at.site.rules.limits(moved).max_bytes);
        let most = of_host
            .unwrap_or(u64::MAX)
            .min(self.proxy.max_object_bytes as u64);
        match body.size_hint().exact() {
            Some(len) if len <= most => self.check_storable(head, times, followed).err(),
            _ => Some(Uncacheable::BodyTooLarge),
        }
    }

    /// Requests the part from now on, with the client's fields in `headers`, because the whole is not stored for this reason.
    pub(crate) fn fall_back_to_range(&mut self, headers: &mut HeaderMap, why: Uncacheable) {
        let now = self.proxy.runtime.now();
        self.proxy
            .range_fill_backoff
            .record(&self.wanted.key, why, now);
        match why {
            // Other clients may have it: the next follower leads.
            Uncacheable::Cookie | Uncacheable::RequestNoStore | Uncacheable::Authorization => {
                self.leader = None;
            }
            _ => self.stop_coalescing(),
        }
        let mut said = self.wanted.origin_headers();
        for name in [
            header::RANGE,
            header::IF_MATCH,
            header::IF_NONE_MATCH,
            header::IF_MODIFIED_SINCE,
            header::IF_UNMODIFIED_SINCE,
        ] {
            if let Some(value) = said.remove(&name) {
                headers.insert(name, value);
            }
        }
    }
}
