//! Decides how to handle a request: serve it from the cache, contact the origin, or both (RFC 9111 §4).
//!
//! ```text
//!  request + variants of its key
//!     │ not GET or HEAD, or a condition that only the origin can check ─▶ Bypass
//!     │ no variant matches ───────▶ Miss, or OnlyIfCached (504)
//!     ▼ the newest variant that matches
//!     │ age < lifetime, and no directive requires revalidation ─────────▶ Fresh
//!     │ stale, within stale-while-revalidate ───────────────────────────▶ Stale: serve it, revalidate in the background
//!     │ else ─────────────────────▶ Validate, or OnlyIfCached (504)
//!     ▼
//!  rules/response.rs builds the response; if the origin fails, may_serve_on_error() decides if the stale one is served
//! ```

use std::time::{Duration, SystemTime};

use http::header::{IF_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE};
use http::{Method, StatusCode, request};

use crate::cache_status::Forward;
use crate::rules::cache_control::RequestControl;
use crate::rules::conditions::single_range;
use crate::rules::freshness::after;
use crate::rules::identity::is_identified;
use crate::rules::policy::Policy;
use crate::rules::storable::{is_explicitly_shared, is_range_request};
use crate::rules::stored::Stored;
use crate::rules::validate::Conditional;

/// How to handle a request. `index` is that of the variant.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup {
    /// Serve the stored response.
    Fresh {
        /// Index of the variant.
        index: usize,
        /// Its age.
        age: Duration,
        /// True if it is stale, and the client accepts that with `max-stale`.
        stale: bool,
    },
    /// Serve the stale stored response, and fetch it again for the next request (RFC 5861 §3).
    Stale {
        /// Index of the variant.
        index: usize,
        /// Its age.
        age: Duration,
        /// The conditions of the request to the origin.
        background: Conditional,
    },
    /// Validate the stored response at the origin. Without a validator the condition is empty, and the request is for the whole
    /// response; the stored response may then still be served if the origin fails.
    Revalidate {
        /// Index of the variant.
        index: usize,
        /// The conditions of the request to the origin.
        conditional: Conditional,
        /// Why the stored response is not used as it is.
        reason: StaleReason,
        /// Until when the stored response may be served if the origin fails ([`may_serve_on_error`]).
        stale_if_error: Option<SystemTime>,
    },
    /// No stored response matches: the origin is contacted, and other requests may wait for its response.
    Miss(MissReason),
    /// The request goes to the origin and bypasses the cache. Other requests get its response only if
    /// [`may_store`](crate::storable::may_store) allows it, and no request waits for it.
    Bypass(BypassReason),
    /// The client accepts only stored responses, and there is none: 504 (RFC 9111 §5.2.1.7).
    OnlyIfCached,
}

/// Why a stored response is not used as it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StaleReason {
    /// It is stale.
    Stale,
    /// The response has `no-cache`.
    NoCache,
    /// The request requires a fresher response.
    Request,
}

/// The reason for a miss.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MissReason {
    /// Nothing is stored under the key.
    Uri,
    /// The stored responses do not match (`Vary`).
    Vary,
}

/// Why the cache is bypassed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BypassReason {
    /// Not GET or HEAD.
    Method,
    /// `If-Match` or `If-Unmodified-Since`, which only the origin can answer (RFC 9110 §13.1).
    Precondition,
    /// `Authorization` or [`IdentifiedUser`](crate::identity::IdentifiedUser), without a stored response that the origin marks as shared.
    Authorization,
    /// `no-store` in the request, if clients may revalidate.
    NoStore,
}

impl Lookup {
    /// The reason in `Cache-Status`; `None` for a hit (RFC 9211 §2.2).
    #[must_use]
    pub fn forward(&self) -> Option<Forward> {
        match self {
            Self::Fresh { .. } | Self::Stale { .. } | Self::OnlyIfCached => None,
            Self::Revalidate {
                reason: StaleReason::Request,
                ..
            } => Some(Forward::Request),
            Self::Revalidate { .. } => Some(Forward::Stale),
            Self::Miss(MissReason::Uri) => Some(Forward::UriMiss),
            Self::Miss(MissReason::Vary) => Some(Forward::VaryMiss),
            Self::Bypass(BypassReason::Method) => Some(Forward::Method),
            Self::Bypass(BypassReason::Authorization) => Some(Forward::Bypass),
            Self::Bypass(BypassReason::Precondition | BypassReason::NoStore) => {
                Some(Forward::Request)
            }
        }
    }
}

/// Decides how to serve `request`, with the stored `variants` of its key.
///
/// A hit without `Vary` allocates nothing.
#[must_use]
pub fn lookup(
    policy: &Policy,
    request: &request::Parts,
    variants: &[impl AsRef<Stored>],
    now: SystemTime,
) -> Lookup {
    if request.method != Method::GET && request.method != Method::HEAD {
        return Lookup::Bypass(BypassReason::Method);
    }
    let headers = &request.headers;
    if headers.contains_key(IF_MATCH) || headers.contains_key(IF_UNMODIFIED_SINCE) {
        return Lookup::Bypass(BypassReason::Precondition);
    }
    let control = RequestControl::parse(headers);
    let effective_control = match policy.clients_may_revalidate {
        true => control,
        false => RequestControl::default(),
    };
    if effective_control.no_store {
        return Lookup::Bypass(BypassReason::NoStore);
    }
    let Some((index, stored)) = select(request, variants) else {
        return match (control.only_if_cached, is_identified(request)) {
            (true, _) => Lookup::OnlyIfCached,
            (false, true) => Lookup::Bypass(BypassReason::Authorization),
            (false, false) if variants.is_empty() => Lookup::Miss(MissReason::Uri),
            (false, false) => Lookup::Miss(MissReason::Vary),
        };
    };
    // The RFC forbids sharing a response to a request with credentials (§3.5). It allows using a response to a
    // request without credentials for a request with them, but that is not what this client requested.
    if !is_explicitly_shared(&stored.control) && is_identified(request) {
        return match control.only_if_cached {
            true => Lookup::OnlyIfCached,
            false => Lookup::Bypass(BypassReason::Authorization),
        };
    }

    let age = stored.age(now);
    let staleness = stored.staleness(now);
    let reason = if stored.control.no_cache.is_all() {
        Some(StaleReason::NoCache)
    } else if requires_fresher(&effective_control, stored, age, staleness) {
        Some(StaleReason::Request)
    } else {
        staleness.map(|_| StaleReason::Stale)
    };
    let Some(reason) = reason else {
        return Lookup::Fresh {
            index,
            age,
            stale: false,
        };
    };
    if let (StaleReason::Stale, Some(staleness)) = (reason, staleness) {
        if let Some(allowed) = effective_control.max_stale.value()
            && staleness <= allowed
            && !stored.requires_revalidation()
        {
            return Lookup::Fresh {
                index,
                age,
                stale: true,
            };
        }
        if let Some(window) = stored.stale_while_revalidate(policy)
            && staleness <= window
        {
            return Lookup::Stale {
                index,
                age,
                background: Conditional::of(stored),
            };
        }
    }
    if control.only_if_cached {
        return Lookup::OnlyIfCached;
    }
    Lookup::Revalidate {
        index,
        conditional: Conditional::of(stored),
        reason,
        stale_if_error: stale_until(policy, stored, &control, now),
    }
}

/// The newest variant that matches the request (RFC 9111 §4.1).
fn select<'a, S: AsRef<Stored>>(
    request: &request::Parts,
    variants: &'a [S],
) -> Option<(usize, &'a Stored)> {
    let all = variants.iter().map(AsRef::as_ref).enumerate();
    all.filter(|(_, stored)| stored.matches(&request.headers))
        .max_by_key(|(_, stored)| (stored.date, stored.facts.times.received))
}

/// True if the request rejects a fresh response (RFC 9111 §5.2.1).
///
/// An `immutable` response is not fetched again for a mere reload, which sends `max-age=0`. `no-cache` means that
/// something is wrong (RFC 8246 §2).
fn requires_fresher(
    control: &RequestControl,
    stored: &Stored,
    age: Duration,
    staleness: Option<Duration>,
) -> bool {
    let too_old = control
        .max_age
        .lifetime()
        .is_some_and(|limit| age > limit || limit.is_zero());
    let remaining = match staleness {
        None => stored.lifetime.duration.saturating_sub(age),
        Some(_) => Duration::ZERO,
    };
    let too_soon = control
        .min_fresh
        .value()
        .is_some_and(|min_fresh| remaining < min_fresh);
    let immutable = stored.control.immutable && staleness.is_none();
    control.no_cache || too_soon || too_old && !immutable
}

/// The failure of the origin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Failure {
    /// No valid response: connection failed, timed out or closed, or the response was not valid HTTP.
    Unreachable,
    /// A response with this status.
    Status(StatusCode),
}

impl Failure {
    /// True for the errors of RFC 5861 §4: 500, 502, 503 and 504; other statuses are normal responses.
    #[must_use]
    pub fn is_error(self) -> bool {
        match self {
            Self::Unreachable => true,
            Self::Status(status) => matches!(status.as_u16(), 500 | 502 | 503 | 504),
        }
    }
}

/// True if `stored`, which is stale, may be served because the origin failed (RFC 5861 §4).
#[must_use]
pub fn may_serve_on_error(
    policy: &Policy,
    request: &request::Parts,
    stored: &Stored,
    failure: Failure,
    now: SystemTime,
) -> bool {
    let control = RequestControl::parse(&request.headers);
    failure.is_error()
        && stale_until(policy, stored, &control, now).is_some_and(|until| now <= until)
}

/// Until when `stored` may be served if the origin fails.
fn stale_until(
    policy: &Policy,
    stored: &Stored,
    control: &RequestControl,
    now: SystemTime,
) -> Option<SystemTime> {
    let by_request = control
        .stale_if_error
        .value()
        .filter(|_| policy.clients_may_revalidate && !stored.requires_revalidation());
    let window = stored.stale_if_error(policy).max(by_request)?;
    let staleness = stored.staleness(now).unwrap_or_default();
    Some(after(now, window.checked_sub(staleness)?))
}

/// True if a request that was made at `requested_at`, and that waited for the response to another request, may use
/// that response. It may if the response was stored as `stored`, and would answer a request that arrives now (RFC
/// 9111 §4: a cache may collapse requests, and use a storable response for all of them).
///
/// A response that became stale in transit is also shared, with requests that were made while it was fresh
/// ([`Stored::was_fresh`]): the origin would have sent the same response to each of them. So responses with
/// `no-cache` or `max-age=0` are never shared, since no request is made while they are fresh.
#[must_use]
pub fn may_share_with(
    policy: &Policy,
    stored: &Stored,
    waiter: &request::Parts,
    requested_at: SystemTime,
    now: SystemTime,
) -> bool {
    match lookup(policy, waiter, &[stored], now) {
        Lookup::Fresh { .. } => true,
        Lookup::Stale { .. }
        | Lookup::Revalidate {
            reason: StaleReason::Stale,
            ..
        } => stored.was_fresh(requested_at),
        _ => false,
    }
}

/// True if a request may be coalesced, as leader or follower: a GET of the whole resource, for which [`may_share_with`] can
/// succeed. The leader's request is sent without the client's conditions ([`strip_conditions`](crate::validate::strip_conditions)),
/// because a 304 for its own copy is useless to the others.
#[must_use]
pub fn may_join_fetch(policy: &Policy, request: &request::Parts) -> bool {
    may_coalesce(policy, request) && !is_range_request(request)
}

/// True if the whole resource may be fetched for a range request, so that other requests join, the response is stored, and the
/// range is cut from it: a GET of one range that begins with the first byte, and that [`may_join_fetch`] would accept without the
/// range. With `If-Range` the client already has the rest.
#[must_use]
pub fn may_fill_range(policy: &Policy, request: &request::Parts) -> bool {
    let headers = &request.headers;
    is_range_request(request)
        && !headers.contains_key(IF_RANGE)
        && single_range(headers).is_some_and(|range| range.as_bytes().starts_with(b"bytes=0-"))
        && may_coalesce(policy, request)
}

fn may_coalesce(policy: &Policy, request: &request::Parts) -> bool {
    let nothing: &[&Stored] = &[];
    let missed = lookup(policy, request, nothing, SystemTime::UNIX_EPOCH);
    let revalidates =
        policy.clients_may_revalidate && RequestControl::parse(&request.headers).no_cache;
    request.method == Method::GET && missed == Lookup::Miss(MissReason::Uri) && !revalidates
}
