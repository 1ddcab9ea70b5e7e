//! Refreshes a stored response by a 304, or by the head of a response to HEAD (RFC 9111 §4.3.4, §4.3.5).

use std::borrow::Cow;
use std::sync::Arc;

use http::{HeaderName, Method, Response, StatusCode, header, response};
use spdy::body::Body;
use spdy_cache::cache_status::CacheStatus;
use spdy_cache::freshness::Times;
use spdy_cache::memory_store::Object;
use spdy_cache::stored::Stored;
use spdy_cache::validate::{HeadUpdate, MergeResult, ValidatorMismatch, head_update, merge};

use crate::cache::shared_response::{SharedBodySource, SharedResponse};
use crate::fetch::fetch_state::FetchState;
use crate::fetch::served_head::{self, clone_head};
use crate::request::forward_headers;
use crate::response::from_stored::respond_stored;
use crate::response::respond::{self, CACHE_NAME};
use crate::response::stale_entry::StaleEntry;
use crate::rewrite::response_rewriter::{self, RewritePlan};
use crate::rewrite::rewrite_facts;
use crate::telemetry::counters::Outcome;

/// The fields that a page is rewritten by, apart from whether it is rewritten. For a sheet, only the first.
const REWRITE_INPUT_FIELDS: [HeaderName; 4] = [
    header::CONTENT_TYPE,
    header::CONTENT_SECURITY_POLICY,
    header::CONTENT_SECURITY_POLICY_REPORT_ONLY,
    header::REFERRER_POLICY,
];

/// Merges a 304 into the stored response, if the request had its validators.
pub(crate) fn merge_not_modified(
    fetch: &FetchState,
    head: &response::Parts,
    times: Times,
) -> Option<Result<MergeResult, ValidatorMismatch>> {
    let object = &fetch.stale_entry.as_ref()?.object;
    let policy = fetch.context.cache.policy(fetch.request.origin_kind());
    let request_head = &fetch.request.head;
    let head = without_coding(fetch, object.stored(), head);
    Some(merge(policy, object.stored(), request_head, &head, times))
}

/// `head` as it would be for a body without a coding. A rewritten response has no coding, so the origin's choice of one does not matter.
fn without_coding<'a>(
    fetch: &FetchState,
    stored: &Stored,
    head: &'a response::Parts,
) -> Cow<'a, response::Parts> {
    if rewrite_plan(fetch, stored).passes() {
        return Cow::Borrowed(head);
    }
    let mut plain = clone_head(head);
    forward_headers::remove_vary(&mut plain.headers, "accept-encoding");
    Cow::Owned(plain)
}

/// How the body of `stored` is rewritten.
fn rewrite_plan(fetch: &FetchState, stored: &Stored) -> RewritePlan {
    let (at, mut served) = (&fetch.request, stored.headers().clone());
    let observations = fetch.observations();
    response_rewriter::plan_rewrite(at, at, stored.status(), &mut served, Some(&observations))
}

/// Whether the merge changes how the stored body was rewritten, or that it was not. Then the whole is fetched and rewritten again.
pub(crate) fn changes_rewrite(fetch: &FetchState, merged: &MergeResult) -> bool {
    let Some(StaleEntry { object, .. }) = &fetch.stale_entry else {
        return false;
    };
    let (before, now) = (object.stored(), merged.stored());
    let input_fields = match (rewrite_plan(fetch, before), rewrite_plan(fetch, now)) {
        (before, now) if before.passes() && now.passes() => return false,
        (RewritePlan::Page(_), RewritePlan::Page(_)) => &REWRITE_INPUT_FIELDS[..],
        (RewritePlan::Sheet(_), RewritePlan::Sheet(_)) => &REWRITE_INPUT_FIELDS[..1],
        _ => return true,
    };
    let (before, now) = (before.headers(), now.headers());
    let differs = |name| before.get_all(name).iter().ne(now.get_all(name).iter());
    input_fields.iter().any(differs)
}

/// Refreshes the stored response by a 304 to the proxy's own condition.
pub(crate) fn apply_not_modified(
    fetch: &mut FetchState,
    head: &response::Parts,
    times: Times,
) -> Option<Response<Body>> {
    if head.status != StatusCode::NOT_MODIFIED {
        return None;
    }
    let StaleEntry { object, .. } = fetch.stale_entry.clone()?;
    let merged = merge_not_modified(fetch, head, times)?.ok()?;
    Some(refresh(fetch, &object, merged, head))
}

/// A 200 to HEAD with the validators of the stored response refreshes it. With others, the stored response becomes stale (RFC 9111
/// §4.3.5).
pub(crate) fn apply_head_response(
    fetch: &mut FetchState,
    head: &response::Parts,
    times: Times,
) -> Option<Response<Body>> {
    if fetch.request.head.method != Method::HEAD {
        return None;
    }
    let StaleEntry { object, .. } = fetch.stale_entry.clone()?;
    let policy = fetch.context.cache.policy(fetch.request.origin_kind());
    let (stored, len) = (object.stored(), object.body().len());
    let plain_head = without_coding(fetch, stored, head);
    match head_update(policy, stored, &fetch.request.head, &plain_head, len, times) {
        HeadUpdate::Merged(merged) if !changes_rewrite(fetch, &merged) => {
            Some(refresh(fetch, &object, *merged, head))
        }
        HeadUpdate::Merged(_) | HeadUpdate::Changed => {
            fetch.context.cache.expire(&fetch.request.key, &object);
            None
        }
        HeadUpdate::Nothing => None,
    }
}

/// The stored response with the new fields of `head`.
fn refresh(
    fetch: &mut FetchState,
    object: &Object,
    merged: MergeResult,
    head: &response::Parts,
) -> Response<Body> {
    let with_served_headers = |stored: Stored| {
        let head = {
            let mut stored_head = Response::new(()).into_parts().0;
            (stored_head.status, stored_head.headers) = (stored.status(), stored.headers().clone());
            stored_head
        };
        let served = served_head::served(fetch, &fetch.request, &head);
        let served = served.map(|(served, _)| served);
        let mut served = served.unwrap_or_else(|_| object.stored().served().clone());
        let is_tagged = served.contains_key(header::ETAG);
        // The body is the same, and so is its rewritten form.
        for name in [header::ETAG, header::LAST_MODIFIED] {
            let before = object.stored().served().get(&name);
            if let (false, Some(before)) = (served.contains_key(&name), before) {
                served.insert(name, before.clone());
            }
        }
        let stored = served_head::with_page_note(fetch, stored, &served, object.stored().note());
        if is_tagged {
            rewrite_facts::mark_etag(stored.note(), &mut served);
        }
        Arc::new(stored.with_client_headers(served))
    };
    let now = fetch.context.clock.wall_now();
    let status =
        CacheStatus::forwarded(CACHE_NAME, fetch.forward_reason).forward_status(head.status);
    let (stored, status) = match merged {
        MergeResult::Store(stored) => {
            let stored = with_served_headers(stored);
            let key = &fetch.request.key;
            let body = object.body().clone();
            let stored_object = fetch.context.cache.store(key, &stored, body, fetch.since);
            let is_purged = fetch
                .context
                .cache
                .purge_log
                .purged_since(key, fetch.since.purges);
            match fetch.leader.as_mut() {
                // Requests that wait start one new fetch.
                Some(_) if is_purged => fetch.leader = None,
                // Without room to store it, the response is still valid.
                Some(leader) => leader.share(Arc::new(SharedResponse {
                    stored: stored.clone(),
                    source: SharedBodySource::Stored(
                        stored_object.unwrap_or_else(|| object.clone()),
                    ),
                })),
                None => {}
            }
            let ttl = stored.ttl(now);
            (stored, status.stored(true).ttl(ttl))
        }
        MergeResult::UseOnce(stored, reason) => {
            fetch.context.cache.remove(&fetch.request.key, object);
            let stored = with_served_headers(stored);
            fetch.stop_coalescing();
            (stored, status.detail(reason.token()))
        }
    };
    // A pinned sheet may have failed to load, or not have been looked up since the program started.
    let context = &fetch.context;
    let (observer, request) = (&context.observer, &fetch.request);
    observer.page_reused(context, request, stored.note());
    let mut response = respond_stored(
        &context.cache,
        request,
        &stored,
        object.body(),
        now,
        &status,
    );
    if fetch.request.proxied.is_none() {
        respond::add_private_fields(response.headers_mut(), &stored, &head.headers);
    }
    respond::with_outcome(response, Outcome::REVALIDATED)
}
