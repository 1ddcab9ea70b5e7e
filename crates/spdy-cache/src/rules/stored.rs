//! The stored part of an answer beside its body: the head, its variant, and its lifetime.
//!
//! A [`Stored`] is made by [`may_store`](crate::storable::may_store) and [`merge`](crate::validate::merge) alone. It
//! has two heads where a body was rewritten: `head`, as the origin sent it, by which freshness and validation go, and
//! `served`, which clients see and whose validators they hold ([`with_client_headers`](Stored::with_client_headers)).

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

/// What it was made of, and nothing that follows from that: what a tier on a disk writes down.
#[derive(Clone, Debug)]
pub(crate) struct StoredParts {
    pub(crate) status: StatusCode,
    /// Without what speaks of the connection it came by.
    pub(crate) headers: HeaderMap,
    pub(crate) served: Option<Box<HeaderMap>>,
    /// The note of the caller that stores it; empty if none.
    pub(crate) note: Box<[u8]>,
    pub(crate) selecting: Vec<SelectingField>,
    pub(crate) times: Times,
}

/// A stored answer, without its body.
#[derive(Debug)]
pub struct Stored {
    pub(crate) facts: StoredParts,
    pub(crate) control: ResponseControl,
    pub(crate) lifetime: Lifetime,
    initial_age: Duration,
    /// `Date`, or when it came: of two for the same request, the later is taken.
    pub(crate) date: SystemTime,
    pub(crate) last_modified: Option<SystemTime>,
    /// Seconds since 1970 from which it counts as stale in any case; 0 is never.
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

/// So that a slice of references, of `Arc`s or of values serves as variants alike.
impl AsRef<Stored> for Stored {
    fn as_ref(&self) -> &Stored {
        self
    }
}

impl Stored {
    /// Reckons what follows from `facts`.
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

    /// Lets clients see `headers` in place of the origin's: of a body that was rewritten, with an `ETag` of its own.
    ///
    /// Conditional requests of clients are answered by these; validation with the origin uses its own. A merge with a 304 drops them: the
    /// caller rewrites the new head again.
    ///
    /// Private fields of the answer ([`ResponseControl::private_fields`]) are left out of them as well.
    #[must_use]
    pub fn with_client_headers(mut self, mut headers: HeaderMap) -> Self {
        for name in self.control.private_fields() {
            headers.remove(name);
        }
        self.facts.served = Some(Box::new(headers));
        self.memoized_check = OnceLock::new();
        self
    }

    /// Stores `note` with it: facts about the body, for the caller. This crate does not read it. A merge with a 304 drops it.
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

    /// The origin's fields, without those of a connection, and with a `Date`.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.facts.headers
    }

    /// What clients see: the fields of [`with_client_headers`](Self::with_client_headers), else the origin's.
    #[must_use]
    pub fn served(&self) -> &HeaderMap {
        self.facts.served.as_deref().unwrap_or(&self.facts.headers)
    }

    /// What [`with_note`](Self::with_note) keeps with it; empty if nothing.
    #[must_use]
    pub fn note(&self) -> &[u8] {
        &self.facts.note
    }

    /// The result of `check` for the client headers and the body, computed on the first call: neither changes.
    /// Reserved for one check of the caller; this crate has none.
    pub fn memoized_check(&self, check: impl FnOnce() -> bool) -> bool {
        *self.memoized_check.get_or_init(check)
    }

    /// Its directives for this cache.
    #[must_use]
    pub fn control(&self) -> &ResponseControl {
        &self.control
    }

    /// How long it is fresh, and by what.
    #[must_use]
    pub fn lifetime(&self) -> Lifetime {
        self.lifetime
    }

    /// When it was requested and when it came.
    #[must_use]
    pub fn times(&self) -> Times {
        self.facts.times
    }

    /// How old it is (RFC 9111 §4.2.3).
    #[must_use]
    pub fn age(&self, now: SystemTime) -> Duration {
        self.initial_age + since(now, self.facts.times.received)
    }

    /// For how long it has been stale; `None` while it is fresh.
    #[must_use]
    pub fn staleness(&self, now: SystemTime) -> Option<Duration> {
        let by_age = self.age(now).checked_sub(self.lifetime.duration);
        match self.expired_at() {
            None => by_age,
            Some(at) => Some(since(now, at).max(by_age.unwrap_or_default())),
        }
    }

    /// Whether it was fresh for a request that was made at `requested_at`, before the response arrived. A slow origin may take longer than
    /// the lifetime. The response is then stale on arrival, but only because its age counts from the request (RFC 9111 §4.2.3).
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

    /// Seconds that it stays fresh, negative if it is stale: the `ttl` of `Cache-Status`.
    #[must_use]
    pub fn ttl(&self, now: SystemTime) -> i64 {
        let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        match self.staleness(now) {
            Some(stale) => -seconds(stale),
            None => seconds(self.lifetime.duration.saturating_sub(self.age(now))),
        }
    }

    /// Makes it stale from `now` on: a soft purge. Stale answers may still be served where that is allowed, and
    /// validation makes it fresh.
    pub fn expire(&self, now: SystemTime) {
        let seconds = since(now, SystemTime::UNIX_EPOCH).as_secs().max(1);
        // Purged before, it stays as stale as it is.
        let _ = self
            .expired_at
            .compare_exchange(0, seconds, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// From when on it is stale by a soft purge.
    pub(crate) fn expired_at(&self) -> Option<SystemTime> {
        match self.expired_at.load(Ordering::Relaxed) {
            0 => None,
            at => Some(SystemTime::UNIX_EPOCH + Duration::from_secs(at)),
        }
    }

    /// Whether it is for a request with these fields (RFC 9111 §4.1).
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

    /// Whether it is for the same requests as `other`, so that the newer takes the other's place.
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

    /// Whether it can be of use for a later request: it was fresh when it came, can be validated, or may be served stale.
    #[must_use]
    pub fn is_reusable(&self, policy: &Policy) -> bool {
        let received = self.facts.times.received;
        let is_usable = self.staleness(received).is_none() && !self.control.no_cache.is_all();
        is_usable
            || self.has_validator()
            || self.stale_while_revalidate(policy).is_some()
            || self.stale_if_error(policy).is_some()
    }

    /// How long after it became stale it may be served while it is fetched again; `None` if never (RFC 5861 §3).
    #[must_use]
    pub fn stale_while_revalidate(&self, policy: &Policy) -> Option<Duration> {
        let directive = self.control.stale_while_revalidate.value();
        self.stale_window(directive, policy.stale_while_revalidate)
    }

    /// How long after it became stale it may be served if the origin fails; `None` if never (RFC 5861 §4).
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

    /// Whether the origin forbade stale answers outright (RFC 9111 §5.2.2.2, §5.2.2.4, §5.2.2.8).
    fn must_validate_when_stale(&self) -> bool {
        let control = &self.control;
        control.must_revalidate || control.proxy_revalidate || control.no_cache.is_all()
    }

    /// True if only the origin itself can allow a stale answer.
    pub(crate) fn requires_revalidation(&self) -> bool {
        self.must_validate_when_stale() || self.control.s_maxage != Default::default()
    }

    /// Bytes that it holds, reckoned: names, values, and the tables about them.
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

    /// Names of the fields by which it is chosen among variants.
    pub fn selecting_names(&self) -> impl Iterator<Item = &HeaderName> {
        self.facts.selecting.iter().map(|field| &field.name)
    }
}

/// What a field costs beyond its bytes: its places in the map, and the counters of what holds the bytes.
const FIELD_OVERHEAD: usize = 160;

fn head_bytes(headers: &HeaderMap) -> usize {
    let field = |(name, value): (&HeaderName, &http::HeaderValue)| {
        name.as_str().len() + value.len() + FIELD_OVERHEAD
    };
    headers.iter().map(field).sum()
}
