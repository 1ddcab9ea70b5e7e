//! Validates stored responses at the origin, and merges the result (RFC 9111 §4.3).
//!
//! ```text
//!  Conditional::of(stored)  ──▶  If-None-Match, If-Modified-Since of the *origin's* validators
//!       answer of the origin
//!         304  merge()                the same with new fields: store it, or use it once
//!         200  may_store()            another response replaces it
//!         5xx  may_serve_on_error()   the stale response, if that is allowed
//!  HEAD   200  head_update()          the same with new fields, or outdated
//! ```

use http::header::{
    AGE, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, DATE, ETAG, EXPIRES,
    IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, LAST_MODIFIED,
    RANGE, SET_COOKIE, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, request, response};

use crate::rules::cache_control::ResponseControl;
use crate::rules::etag::EntityTag;
use crate::rules::freshness::{Times, date_of};
use crate::rules::policy::Policy;
use crate::rules::storable;
use crate::rules::storable::{Uncacheable, to_stored};
use crate::rules::stored::Stored;

/// The conditions of a request to the origin: the validators of the stored response.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Conditional {
    if_none_match: Option<HeaderValue>,
    if_modified_since: Option<HeaderValue>,
}

impl Conditional {
    /// The condition that validates `stored`; empty if it has no validator.
    #[must_use]
    pub fn of(stored: &Stored) -> Self {
        let field = |there: bool, name| stored.headers().get(name).filter(|_| there).cloned();
        Self {
            if_none_match: field(stored.entity_tag().is_some(), ETAG),
            if_modified_since: field(stored.last_modified.is_some(), LAST_MODIFIED),
        }
    }

    /// True if there is no validator: the request is then for the whole response.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Replaces the conditions of a request. The client's own conditions and ranges are evaluated against the result.
    pub fn apply(&self, request: &mut HeaderMap) {
        strip_conditions(request);
        let fields = [
            (IF_NONE_MATCH, &self.if_none_match),
            (IF_MODIFIED_SINCE, &self.if_modified_since),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                request.insert(name, value.clone());
            }
        }
    }
}

/// Removes conditions and ranges from a request whose response is to be stored, or has followers.
pub fn strip_conditions(request: &mut HeaderMap) {
    for name in [
        IF_MATCH,
        IF_NONE_MATCH,
        IF_MODIFIED_SINCE,
        IF_UNMODIFIED_SINCE,
        IF_RANGE,
        RANGE,
    ] {
        request.remove(name);
    }
}

/// The result of merging a 304 into a stored response.
#[derive(Debug)]
pub enum MergeResult {
    /// The new response replaces the stored one, with the same body.
    Store(Stored),
    /// The new response answers the current request and is then dropped, because its new fields forbid storing it.
    UseOnce(Stored, Uncacheable),
}

impl MergeResult {
    /// The response to the current request.
    #[must_use]
    pub fn stored(&self) -> &Stored {
        let (Self::Store(stored) | Self::UseOnce(stored, _)) = self;
        stored
    }
}

/// The validators of a 304 do not match the stored response: repeat the request without a condition.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("status 304 has a {0} that does not match the stored response")]
pub struct ValidatorMismatch(&'static str);

/// Updates a stored response by a 304 to a request with its [`Conditional`] (RFC 9111 §4.3.4).
///
/// `request` is the one that was passed to [`lookup`](crate::lookup::lookup). Fields of the 304 replace the stored ones, except
/// those about the body: length, coding, range, digests. The client headers of [`with_client_headers`](Stored::with_client_headers)
/// are dropped. If the request has cookies, and nothing states that the response is for all clients, only its lifetime is updated.
///
/// # Errors
///
/// [`ValidatorMismatch`] if a validator of the 304 is not that of `stored`.
pub fn merge(
    policy: &Policy,
    stored: &Stored,
    request: &request::Parts,
    answer: &response::Parts,
    times: Times,
) -> Result<MergeResult, ValidatorMismatch> {
    same_validators(stored, &answer.headers, times)?;
    Ok(refreshed(policy, stored, request, &answer.headers, times))
}

/// The effect of a response to HEAD on the stored response to GET (RFC 9111 §4.3.5).
#[derive(Debug)]
pub enum HeadUpdate {
    /// The stored response is unchanged, with new fields.
    Merged(Box<MergeResult>),
    /// The origin has another response now: the stored one counts as stale.
    Changed,
    /// No effect: the response was not a 200, or has no validator.
    Nothing,
}

/// Merges a 200 to a HEAD of the same target and variant into the stored answer.
///
/// According to the RFC, a response without validators contradicts nothing, and would make any stored response fresh. The content
/// may have changed anyway, so here it has no effect.
#[must_use]
pub fn head_update(
    policy: &Policy,
    stored: &Stored,
    request: &request::Parts,
    answer: &response::Parts,
    body_len: u64,
    times: Times,
) -> HeadUpdate {
    if answer.status != StatusCode::OK || stored.status() != StatusCode::OK {
        return HeadUpdate::Nothing;
    }
    let is_the_same = match EntityTag::of(&answer.headers) {
        Some(_) => same_validators(stored, &answer.headers, times).is_ok(),
        None => match date_of(&answer.headers, &LAST_MODIFIED, times.received) {
            Some(modified) => stored.last_modified == Some(modified),
            None => return HeadUpdate::Nothing,
        },
    };
    let length = answer
        .headers
        .get(CONTENT_LENGTH)
        .map(HeaderValue::as_bytes);
    let other_length = length.is_some_and(|length| length != body_len.to_string().as_bytes());
    // A rewritten body has another length than the origin's.
    let other_length = other_length && stored.facts.served.is_none();
    if other_length || !is_the_same {
        return HeadUpdate::Changed;
    }
    HeadUpdate::Merged(Box::new(refreshed(
        policy,
        stored,
        request,
        &answer.headers,
        times,
    )))
}

/// A 304 without validators matches the request, because its condition named only one response.
fn same_validators(
    stored: &Stored,
    fresh: &HeaderMap,
    times: Times,
) -> Result<(), ValidatorMismatch> {
    if let Some(tag) = EntityTag::of(fresh) {
        let same = stored
            .entity_tag()
            .is_some_and(|stored_tag| match tag.weak {
                true => stored_tag.weakly_matches(tag),
                false => {
                    stored_tag.strongly_matches(tag)
                        || stored_tag.weak && stored_tag.weakly_matches(tag)
                }
            });
        return if same {
            Ok(())
        } else {
            Err(ValidatorMismatch("entity tag"))
        };
    }
    match date_of(fresh, &LAST_MODIFIED, times.received) {
        Some(modified)
            if stored
                .last_modified
                .is_some_and(|stored_date| stored_date != modified) =>
        {
            Err(ValidatorMismatch("date"))
        }
        _ => Ok(()),
    }
}

/// Merges the fields (RFC 9111 §3.2).
fn refreshed(
    policy: &Policy,
    stored: &Stored,
    request: &request::Parts,
    fresh: &HeaderMap,
    times: Times,
) -> MergeResult {
    let of_connection = storable::listed_by_connection(fresh);
    let is_replaced = |name: &HeaderName| {
        !(is_about_bytes(name) || storable::is_hop_by_hop(name) || of_connection.contains(name))
    };
    let mut whole = response_head(stored.status());
    whole.headers = merged_headers(stored, fresh, is_replaced);
    let mut control = ResponseControl::parse(&whole.headers, &policy.targets);
    if storable::is_of_cookie(policy, request, &control) {
        // The other fields may be about this client.
        let is_replaced = |name: &HeaderName| is_replaced(name) && is_about_lifetime(policy, name);
        whole.headers = merged_headers(stored, fresh, is_replaced);
        control = ResponseControl::parse(&whole.headers, &policy.targets);
    }
    match to_stored(policy, request, &whole, control, times) {
        Ok(merged) => MergeResult::Store(merged),
        Err(reason) => {
            let mut once = stored.clone();
            once.facts.headers = whole.headers;
            once.facts.served = None;
            once.facts.note = Box::default();
            MergeResult::UseOnce(once, reason)
        }
    }
}

/// The fields of `stored`, with those fields of `fresh` that are replaced.
fn merged_headers(
    stored: &Stored,
    fresh: &HeaderMap,
    is_replaced: impl Fn(&HeaderName) -> bool,
) -> HeaderMap {
    let mut headers = stored.headers().clone();
    // Age and Date of the stored response do not apply to the new one.
    headers.remove(AGE);
    headers.remove(DATE);
    for name in fresh.keys().filter(|name| is_replaced(name)) {
        headers.remove(name);
    }
    for (name, value) in fresh.iter().filter(|(name, _)| is_replaced(name)) {
        headers.append(name.clone(), value.clone());
    }
    headers
}

/// Fields that state until when and for which requests a response may be used, and `Set-Cookie`, which forbids storing it.
fn is_about_lifetime(policy: &Policy, name: &HeaderName) -> bool {
    const NAMED: [HeaderName; 7] = [
        AGE,
        CACHE_CONTROL,
        DATE,
        EXPIRES,
        LAST_MODIFIED,
        SET_COOKIE,
        VARY,
    ];
    NAMED.contains(name) || policy.targets.contains(name)
}

/// Fields that describe the stored bytes, so that a 304 must not change them; and the tag, which is the same.
fn is_about_bytes(name: &HeaderName) -> bool {
    const NAMED: [HeaderName; 4] = [CONTENT_LENGTH, CONTENT_ENCODING, CONTENT_RANGE, ETAG];
    NAMED.contains(name)
        || matches!(
            name.as_str(),
            "content-md5" | "content-digest" | "repr-digest" | "digest"
        )
}

pub(crate) fn response_head(status: StatusCode) -> response::Parts {
    let mut head = http::Response::new(()).into_parts().0;
    head.status = status;
    head
}
