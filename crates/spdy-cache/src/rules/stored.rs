//! A stored response without its body: the head, its variant, and its lifetime.
//!
//! A [`Stored`] is created only by [`may_store`](crate::storable::may_store) and [`merge`](crate::validate::merge). If the body was
//! rewritten, it has two heads: `head`, as sent by the origin, determines freshness and validation; `served` is sent to clients,
//! which therefore have its validators ([`with_client_headers`](Stored::with_client_headers)).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use http::header::{DATE, LAST_MODIFIED};
use http::{HeaderMap, HeaderName, StatusCode};

use crate::rules::cache_control::ResponseControl;
use crate::rules::etag::EntityTag;
use crate::rules::freshness;
use crate::rules::freshness::{Lifetime, Times, since};
use crate::rules::policy::Policy;
use crate::rules::vary::SelectingField;

/// The source data, without the values derived from it: written by a tier on disk.
#[derive(Clone, Debug)]
pub(crate) struct StoredParts {
    pub(crate) status: StatusCode,
    /// Without hop-by-hop fields.
    pub(crate) headers: HeaderMap,
    pub(crate) served: Option<Box<HeaderMap>>,
    /// The caller's note; may be empty.
    pub(crate) note: Box<[u8]>,
    pub(crate) selecting: Vec<SelectingField>,
    pub(crate) times: Times,
}

/// A stored response, without its body.
#[derive(Debug)]
pub struct Stored {
    pub(crate) facts: StoredParts,
    pub(crate) control: ResponseControl,
    pub(crate) lifetime: Lifetime,
    initial_age: Duration,
    /// `Date`, or the time of arrival: of two responses for the same request, the later is used.
    pub(crate) date: SystemTime,
    pub(crate) last_modified: Option<SystemTime>,
    /// When a soft purge made it stale, seconds since 1970; 0 for never.
    expired_at: AtomicU64,
    memoized_check: OnceLock<bool>,
}

impl Clone for Stored {
    fn clone(&self) -> Self {
        Self {
            facts: self.facts.clone(),
            control: self.control.clone(),
            lifetime: self.lifetime,
            initial_age: self.initial_age,
            date: self.date,
            last_modified: self.last_modified,
            expired_at: AtomicU64::new(self.expired_at.load(Ordering::Relaxed)),
            memoized_check: OnceLock::new(), // a clone may be modified
        }
    }
}

/// So that a slice of references, of `Arc`s or of values can be passed as variants.
impl AsRef<Stored> for Stored {
    fn as_ref(&self) -> &Stored {
        self
    }
}

impl Stored {
    /// Computes the values derived from `facts`.
    pub(crate) fn new(policy: &Policy, facts: StoredParts, control: ResponseControl) -> Self {
        let StoredParts {
            status,
            ref headers,
            times,
            ..
        } = facts;
        Self {
            lifetime: freshness::lifetime(policy, status, headers, &control, times),
            initial_age: freshness::initial_age(headers, times),
            date: freshness::date_of(headers, &DATE, times.received).unwrap_or(times.received),
            last_modified: freshness::date_of(headers, &LAST_MODIFIED, times.received),
            expired_at: AtomicU64::new(0),
            memoized_check: OnceLock::new(),
            control,
            facts,
        }
    }

    /// Sets the headers for clients, which replace the origin's: for a rewritten body, with its own `ETag`.
    ///
    /// Conditional requests of clients are evaluated against these headers; validation at the origin uses the origin's. A merge
    /// with a 304 drops them: the caller must rewrite the new head again.
    ///
    /// Private fields of the response ([`ResponseControl::private_fields`]) are removed from them too.
    #[must_use]
    pub fn with_client_headers(mut self, mut headers: HeaderMap) -> Self {
        for name in self.control.private_fields() {
            headers.remove(name);
        }
        self.facts.served = Some(Box::new(headers));
        self.memoized_check = OnceLock::new();
        self
    }

    /// Sets a note of the caller about the body. This crate does not read it. A merge with a 304 drops it.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<Box<[u8]>>) -> Self {
        self.facts.note = note.into();
        self
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.facts.status
    }

    /// The origin's fields, without hop-by-hop fields, and with a `Date`.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.facts.headers
    }

    /// The headers for clients: those of [`with_client_headers`](Self::with_client_headers), or the origin's.
    #[must_use]
    pub fn served(&self) -> &HeaderMap {
        self.facts.served.as_deref().unwrap_or(&self.facts.headers)
    }

    /// The note of [`with_note`](Self::with_note); may be empty.
    #[must_use]
    pub fn note(&self) -> &[u8] {
        &self.facts.note
    }

    /// The result of `check` on the client headers and the body. It is computed on the first call only, because neither changes.
    /// Reserved for one check of the caller; this crate does not use it.
    pub fn memoized_check(&self, check: impl FnOnce() -> bool) -> bool {
        *self.memoized_check.get_or_init(check)
    }

    /// The directives for this cache.
    #[must_use]
    pub fn control(&self) -> &ResponseControl {
        &self.control
    }

    /// Its freshness lifetime, and the source of that.
    #[must_use]
    pub fn lifetime(&self) -> Lifetime {
        self.lifetime
    }

    /// When it was requested and received.
    #[must_use]
    pub fn times(&self) -> Times {
        self.facts.times
    }

    /// Its age (RFC 9111 §4.2.3).
    #[must_use]
    pub fn age(&self, now: SystemTime) -> Duration {
        self.initial_age + since(now, self.facts.times.received)
    }

    /// How long it has been stale; `None` while it is fresh.
    #[must_use]
    pub fn staleness(&self, now: SystemTime) -> Option<Duration> {
        let by_age = self.age(now).checked_sub(self.lifetime.duration);
        match self.expired_at() {
            None => by_age,
            Some(at) => Some(since(now, at).max(by_age.unwrap_or_default())),
        }
    }

    /// True if it was fresh for a request that was made at `requested_at`, before the response arrived. If the origin takes longer
    /// than the lifetime, the response is stale on arrival, but only because its age counts from the request (RFC 9111 §4.2.3).
    #[must_use]
    pub fn was_fresh(&self, requested_at: SystemTime) -> bool {
        let Times {
            requested,
            received,
        } = self.facts.times;
        if requested_at >= received || self.expired_at().is_some() {
            return false;
        }
        let times = Times {
            requested,
            received: requested_at.max(requested),
        };
        freshness::initial_age(&self.facts.headers, times) < self.lifetime.duration
    }

    /// Seconds for which it stays fresh, negative if it is stale: the `ttl` of `Cache-Status`.
    #[must_use]
    pub fn ttl(&self, now: SystemTime) -> i64 {
        let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        match self.staleness(now) {
            Some(stale) => -seconds(stale),
            None => seconds(self.lifetime.duration.saturating_sub(self.age(now))),
        }
    }

    /// Makes it stale from `now` on: a soft purge. It may still be served stale if that is allowed, and validation makes it fresh
    /// again.
    pub fn expire(&self, now: SystemTime) {
        let seconds = since(now, SystemTime::UNIX_EPOCH).as_secs().max(1);
        // If it was purged before, the earlier time stays.
        let _ = self
            .expired_at
            .compare_exchange(0, seconds, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// When a soft purge made it stale.
    pub(crate) fn expired_at(&self) -> Option<SystemTime> {
        match self.expired_at.load(Ordering::Relaxed) {
            0 => None,
            at => Some(SystemTime::UNIX_EPOCH + Duration::from_secs(at)),
        }
    }

    /// True if it matches a request with these fields (RFC 9111 §4.1).
    #[must_use]
    pub fn matches(&self, request: &HeaderMap) -> bool {
        self.facts
            .selecting
            .iter()
            .all(|field| field.matches(request))
    }

    /// The variant of a request with these fields, among the variants of this response: requests for the same variant
    /// get the same bytes.
    #[must_use]
    pub fn variant_of(&self, request: &HeaderMap) -> Vec<u8> {
        let mut variant = Vec::new();
        for field in &self.facts.selecting {
            let request_field = SelectingField::of_request(field.name.clone(), request);
            variant.extend(field.name.as_str().as_bytes());
            // Neither names nor values of fields contain this byte; a missing field differs from an empty one.
            variant.push(if request_field.is_named() { b'\n' } else { 0 });
            variant.extend(request_field.normal_form());
            variant.push(0);
        }
        variant
    }

    /// True if it matches the same requests as `other`, so that the newer replaces the older.
    #[must_use]
    pub fn replaces(&self, other: &Self) -> bool {
        self.facts.selecting == other.facts.selecting
    }

    /// The origin's entity tag.
    pub(crate) fn entity_tag(&self) -> Option<EntityTag<'_>> {
        EntityTag::of(&self.facts.headers)
    }

    /// True if it can be validated at the origin.
    #[must_use]
    pub fn has_validator(&self) -> bool {
        self.entity_tag().is_some() || self.last_modified.is_some()
    }

    /// True if it can be used for a later request: it was fresh on arrival, can be validated, or may be served stale.
    #[must_use]
    pub fn is_reusable(&self, policy: &Policy) -> bool {
        let received = self.facts.times.received;
        let is_usable = self.staleness(received).is_none() && !self.control.no_cache.is_all();
        is_usable
            || self.has_validator()
            || self.stale_while_revalidate(policy).is_some()
            || self.stale_if_error(policy).is_some()
    }

    /// How long after it became stale it may be served while it is fetched again; `None` for never (RFC 5861 §3).
    #[must_use]
    pub fn stale_while_revalidate(&self, policy: &Policy) -> Option<Duration> {
        let directive = self.control.stale_while_revalidate.value();
        self.stale_window(directive, policy.stale_while_revalidate)
    }

    /// How long after it became stale it may be served if the origin fails; `None` for never (RFC 5861 §4).
    #[must_use]
    pub fn stale_if_error(&self, policy: &Policy) -> Option<Duration> {
        let directive = self.control.stale_if_error.value();
        self.stale_window(directive, policy.stale_if_error)
    }

    /// An origin that sends `s-maxage` forbids stale responses (RFC 9111 §4.2.4) unless it allows them in the same
    /// field: frameworks write `s-maxage=60, stale-while-revalidate=600`, and that is applied literally.
    fn stale_window(&self, directive: Option<Duration>, default: Duration) -> Option<Duration> {
        if self.must_validate_when_stale() {
            return None;
        }
        let default = Some(default).filter(|_| !self.requires_revalidation());
        directive.or(default).filter(|window| !window.is_zero())
    }

    /// True if the origin explicitly forbids stale responses (RFC 9111 §5.2.2.2, §5.2.2.4, §5.2.2.8).
    fn must_validate_when_stale(&self) -> bool {
        let control = &self.control;
        control.must_revalidate || control.proxy_revalidate || control.no_cache.is_all()
    }

    /// True if only the origin itself can allow a stale response.
    pub(crate) fn requires_revalidation(&self) -> bool {
        self.must_validate_when_stale() || self.control.s_maxage != Default::default()
    }

    /// Estimated memory, bytes: names, values, and tables.
    #[must_use]
    pub fn weight(&self) -> usize {
        let served = self.facts.served.as_deref().map_or(0, head_bytes);
        let selecting: usize = self
            .facts
            .selecting
            .iter()
            .map(SelectingField::weight)
            .sum();
        size_of::<Self>()
            + 2 * size_of::<HeaderMap>()
            + head_bytes(&self.facts.headers)
            + served
            + self.facts.note.len()
            + selecting
    }

    /// Names of the fields that select it among variants.
    pub fn selecting_names(&self) -> impl Iterator<Item = &HeaderName> {
        self.facts.selecting.iter().map(|field| &field.name)
    }
}

/// Memory of a field in addition to its bytes: its entries in the map, and the reference counts of its bytes.
const FIELD_OVERHEAD: usize = 160;

fn head_bytes(headers: &HeaderMap) -> usize {
    let field = |(name, value): (&HeaderName, &http::HeaderValue)| {
        name.as_str().len() + value.len() + FIELD_OVERHEAD
    };
    headers.iter().map(field).sum()
}
