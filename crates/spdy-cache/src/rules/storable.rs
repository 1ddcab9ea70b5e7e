//! Decides which responses may be stored, and which of their fields (RFC 9111 §3).

use http::header::{
    CONNECTION, CONTENT_LOCATION, COOKIE, DATE, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, RANGE,
    SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VARY,
};
use http::{HeaderMap, HeaderName, Method, StatusCode, request, response};

use crate::purge_tags;
use crate::rules::cache_control::{RequestControl, ResponseControl};
use crate::rules::date;
use crate::rules::freshness;
use crate::rules::freshness::{Times, is_heuristically_cacheable};
use crate::rules::identity::is_identified;
use crate::rules::policy::{Policy, SetCookie};
use crate::rules::stored::{Stored, StoredParts};
use crate::rules::vary;
use crate::rules::vary::SelectingField;

/// Why a response is not stored.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, thiserror::Error)]
#[non_exhaustive]
pub enum Uncacheable {
    /// The method is neither GET, nor a POST whose response is marked as that of its target.
    #[error("method")]
    Method,
    /// A GET with content: the response does not depend on its target alone. Set by the caller, which sees the content;
    /// [`may_store`] does not set it.
    #[error("content")]
    Content,
    /// A page or data under a path with the extension of a style sheet, a script, an image or the like
    /// ([`is_mismatched`](crate::cache_deception::is_mismatched)). Set by the caller, which sees the original path; [`may_store`]
    /// does not set it.
    #[error("content type does not match the path")]
    TypeMismatch,
    /// The body exceeds the limit. Set by the caller, which sees the body; [`may_store`] does not set it.
    #[error("body too large")]
    BodyTooLarge,
    /// The limit of bodies in transit is reached. Set by the caller, which sees the bodies; [`may_store`] does not set it.
    #[error("in-flight limit")]
    BodyMemory,
    /// The request had `no-store`.
    #[error("no-store in the request")]
    RequestNoStore,
    /// An informational status, 206 or 304: only complete responses are stored. Or a status that applies to this request only, and
    /// would poison the cache for others: set by the caller; [`may_store`] does not set it.
    #[error("status")]
    Status,
    /// `must-understand`, with a status that this cache does not know.
    #[error("status not understood")]
    NotUnderstood,
    /// `no-store`.
    #[error("no-store")]
    NoStore,
    /// `private`.
    #[error("private")]
    Private,
    /// The origin may identify the user of the request ([`is_identified`]), and the response does not allow sharing.
    #[error("authorization")]
    Authorization,
    /// The request had `Cookie`, and the response does not allow sharing.
    #[error("cookie")]
    Cookie,
    /// The response sets a cookie.
    #[error("set-cookie")]
    SetCookie,
    /// `Vary: *`, or an invalid name in `Vary`.
    #[error("vary")]
    Vary,
    /// More names in `Vary` than [`Policy::max_vary_names`].
    #[error("too many names in vary")]
    VaryNames,
    /// The head exceeds [`Policy::max_head_bytes`].
    #[error("head too large")]
    HeadTooLarge,
    /// More tags than [`Policy::max_tags`].
    #[error("too many tags")]
    Tags,
    /// The response has no explicit freshness, and its status permits no heuristic.
    #[error("no freshness")]
    NoFreshness,
    /// It could never be used: stale on arrival, without a validator, and without permission to serve it stale.
    #[error("never reusable")]
    NeverReusable,
}

/// Decides if the response to `request` may be stored; returns its stored form.
///
/// `request` must be the one that was passed to [`lookup`](crate::lookup::lookup), with the absolute URI: the target of a POST is
/// compared with the response's `Content-Location`.
///
/// # Errors
///
/// The reason if not. The response may still be passed on to the client.
pub fn may_store(
    policy: &Policy,
    request: &request::Parts,
    answer: &response::Parts,
    times: Times,
) -> Result<Stored, Uncacheable> {
    let stored = may_share(policy, request, answer, times)?;
    match stored.is_reusable(policy) {
        true => Ok(stored),
        false => Err(Uncacheable::NeverReusable),
    }
}

/// Like [`may_store`], for a response that is shared with waiting requests and then dropped. It may also have become stale in
/// transit, so that it is useless for later requests.
///
/// # Errors
///
/// Like [`may_store`].
pub fn may_share(
    policy: &Policy,
    request: &request::Parts,
    answer: &response::Parts,
    times: Times,
) -> Result<Stored, Uncacheable> {
    let stored = public_head(policy, request, answer, times)?;
    let is_shared = stored.was_fresh(times.requested) && !stored.control.no_cache.is_all();
    match is_shared || stored.is_reusable(policy) {
        true => Ok(stored),
        false => Err(Uncacheable::NeverReusable),
    }
}

/// The head of a response that every rule allows for other clients, even if each request for it must be sent to the origin. Do not store
/// it.
///
/// # Errors
///
/// The rule that forbids it for other clients.
pub fn public_head(
    policy: &Policy,
    request: &request::Parts,
    answer: &response::Parts,
    times: Times,
) -> Result<Stored, Uncacheable> {
    let control = ResponseControl::parse(&answer.headers, &policy.targets);
    if RequestControl::parse(&request.headers).no_store {
        return Err(Uncacheable::RequestNoStore);
    }
    if is_of_cookie(policy, request, &control) {
        return Err(Uncacheable::Cookie);
    }
    let stored = check_shareable(policy, request, answer, control, times)?;
    match request.method {
        Method::GET => {}
        Method::POST
            if stored.lifetime.source.is_explicit() && is_located_at_target(request, answer) => {}
        _ => return Err(Uncacheable::Method),
    }
    Ok(stored)
}

/// Whether a response with `control` may depend on the cookies of `request`: nothing states that it is for all clients.
pub(crate) fn is_of_cookie(
    policy: &Policy,
    request: &request::Parts,
    control: &ResponseControl,
) -> bool {
    let has_cookie = request.headers.contains_key(COOKIE) && !policy.store_after_cookie;
    has_cookie && !(control.public || control.s_maxage.value().is_some() || control.targeted)
}

/// The common part for a first response and for one that was updated by a 304 or a response to HEAD.
pub(crate) fn to_stored(
    policy: &Policy,
    request: &request::Parts,
    answer: &response::Parts,
    control: ResponseControl,
    times: Times,
) -> Result<Stored, Uncacheable> {
    let stored = check_shareable(policy, request, answer, control, times)?;
    match stored.is_reusable(policy) {
        true => Ok(stored),
        false => Err(Uncacheable::NeverReusable),
    }
}

/// The same, even if the response is useless for later requests.
fn check_shareable(
    policy: &Policy,
    request: &request::Parts,
    answer: &response::Parts,
    control: ResponseControl,
    times: Times,
) -> Result<Stored, Uncacheable> {
    if !is_whole(answer.status) {
        return Err(Uncacheable::Status);
    }
    // `no-store` next to `must-understand` does not apply to a status that is understood (RFC 9111 §5.2.2.3).
    match control.must_understand {
        true if !is_understood(answer.status) => return Err(Uncacheable::NotUnderstood),
        false if control.no_store => return Err(Uncacheable::NoStore),
        _ => {}
    }
    if control.private.is_all() {
        return Err(Uncacheable::Private);
    }
    if is_identified(request) && !is_explicitly_shared(&control) {
        return Err(Uncacheable::Authorization);
    }
    let headers = stored_headers(policy, &answer.headers, &control, times)?;
    let names = vary::names(&headers).ok_or(Uncacheable::Vary)?;
    if names.len() > policy.max_vary_names {
        return Err(Uncacheable::VaryNames);
    }
    let facts = StoredParts {
        status: answer.status,
        headers,
        served: None,
        note: Box::default(),
        selecting: names
            .into_iter()
            .map(|name| SelectingField::of_request(name, &request.headers))
            .collect(),
        times,
    };
    let stored = Stored::new(policy, facts, control);
    let explicit = stored.lifetime.source.is_explicit();
    if !explicit && !stored.control.public && !is_heuristically_cacheable(answer.status) {
        return Err(Uncacheable::NoFreshness);
    }
    Ok(stored)
}

/// True if the response to a request of an identified user may be shared (RFC 9111 §3.5).
#[must_use]
pub fn is_explicitly_shared(control: &ResponseControl) -> bool {
    control.public || control.must_revalidate || control.s_maxage.value().is_some()
}

/// True for a final status whose response is complete.
fn is_whole(status: StatusCode) -> bool {
    !status.is_informational()
        && status != StatusCode::PARTIAL_CONTENT
        && status != StatusCode::NOT_MODIFIED
}

/// Statuses whose meaning for caches is known here (RFC 9111 §3): those of RFC 9110, and of 6585, 7538, 7725, 8470.
fn is_understood(status: StatusCode) -> bool {
    matches!(
        status.as_u16(),
        200..=205 | 300..=303 | 305 | 307 | 308 | 400..=417 | 421 | 422 | 425 | 426 | 428 | 429 | 431 | 451 | 500..=505 | 511
    )
}

/// RFC 9110 §9.3.3: the response to a POST is equivalent to that of a GET if its fields state so.
fn is_located_at_target(request: &request::Parts, answer: &response::Parts) -> bool {
    let Ok(target) = url::Url::parse(&request.uri.to_string()) else {
        return false;
    };
    let location = answer
        .headers
        .get(CONTENT_LOCATION)
        .and_then(|value| value.to_str().ok());
    location.and_then(|location| target.join(location).ok()) == Some(target)
}

/// True for fields of a single connection, which are not part of the response (RFC 9110 §7.6.1, RFC 9111 §3.1).
pub(crate) fn is_hop_by_hop(name: &HeaderName) -> bool {
    const NAMED: [HeaderName; 7] = [
        CONNECTION,
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
    ];
    NAMED.contains(name)
        || matches!(
            name.as_str(),
            "keep-alive" | "proxy-connection" | "proxy-authentication-info"
        )
}

/// The names that `Connection` lists.
pub(crate) fn listed_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let lines = headers.get_all(CONNECTION).iter();
    lines
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .collect()
}

/// The stored fields of a head, with a `Date` (RFC 9110 §6.6.1).
fn stored_headers(
    policy: &Policy,
    headers: &HeaderMap,
    control: &ResponseControl,
    times: Times,
) -> Result<HeaderMap, Uncacheable> {
    let of_connection = listed_by_connection(headers);
    // Fields that a response lists in `private` or `no-cache` are removed; the rest may be stored (§5.2.2.4, §5.2.2.7).
    let withheld = |name: &HeaderName| {
        is_hop_by_hop(name)
            || of_connection.contains(name)
            || control.private_fields().any(|listed| listed == name)
    };
    // Without these fields the bytes would be misinterpreted, or sent to the wrong client.
    let is_needed = |name: &HeaderName| *name == VARY || name.as_str().starts_with("content-");
    if control.private_fields().any(is_needed) {
        return Err(Uncacheable::Private);
    }
    let mut bytes = 0;
    let mut stored = HeaderMap::with_capacity(headers.keys_len() + 1);
    for (name, value) in headers {
        if withheld(name) {
            continue;
        }
        if name == SET_COOKIE {
            match policy.set_cookie {
                SetCookie::Refuse => return Err(Uncacheable::SetCookie),
                SetCookie::Strip => continue,
                SetCookie::Store => {}
            }
        }
        bytes += name.as_str().len() + value.len() + 32;
        stored.append(name.clone(), value.clone());
    }
    if bytes > policy.max_head_bytes {
        return Err(Uncacheable::HeadTooLarge);
    }
    if purge_tags::count(&stored) > policy.max_tags {
        return Err(Uncacheable::Tags);
    }
    if freshness::date_of(&stored, &DATE, times.received).is_none() {
        stored.insert(DATE, date::to_value(times.received));
    }
    Ok(stored)
}

/// True for a range request. A complete stored response can answer it, but its own response is not stored.
pub(crate) fn is_range_request(request: &request::Parts) -> bool {
    request.method == Method::GET && request.headers.contains_key(RANGE)
}

impl Uncacheable {
    /// The name in logs, counters and the `detail` of `Cache-Status`.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Content => "content",
            Self::TypeMismatch => "type-mismatch",
            Self::BodyTooLarge => "body-too-large",
            Self::BodyMemory => "in-flight-limit",
            Self::RequestNoStore => "request-no-store",
            Self::Status => "status",
            Self::NotUnderstood => "status-not-understood",
            Self::NoStore => "no-store",
            Self::Private => "private",
            Self::Authorization => "authorization",
            Self::Cookie => "cookie",
            Self::SetCookie => "set-cookie",
            Self::Vary => "vary",
            Self::VaryNames => "vary-names",
            Self::HeadTooLarge => "head-too-large",
            Self::Tags => "too-many-tags",
            Self::NoFreshness => "no-freshness",
            Self::NeverReusable => "never-reusable",
        }
    }
}
