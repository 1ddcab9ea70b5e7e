//! The head that clients get of an origin's response, and the plan for its body; or the response that they get instead.

use http::{HeaderMap, Response, response};
use http_body::Body as _;
use spdy::body::Body;
use spdy_cache::stored::Stored;
use spdy_rewrite::response::sanitize_response;
use spdy_rewrite::rules::refusal::Refusal;
use spdy_rewrite::urls::proxied_url::ProxiedUrl;

use crate::fetch::fetch_state::FetchState;
use crate::request::forward_headers;
use crate::request::proxy_request::ProxyRequest;
use crate::response::respond;
use crate::rewrite::response_rewriter::{self, RewritePlan};
use crate::rewrite::rewrite_facts::RewriteFacts;
use crate::sites::page_policies::PagePolicy;
use crate::telemetry::counters::CounterFamily;

/// The fields that clients get, and how the body is rewritten; or the response that they get instead.
pub(crate) fn served(
    fetch: &FetchState,
    at: &ProxyRequest,
    head: &response::Parts,
) -> Result<(HeaderMap, RewritePlan), Box<Response<Body>>> {
    let rules = &at.site.rules;
    let mut served = match &at.proxied {
        Some((proxied, load)) => {
            match sanitize_response::sanitize(rules, proxied, *load, head.status, &head.headers) {
                sanitize_response::SanitizedResponse::Serve(served)
                    if !proxied.is_alias()
                        && response_rewriter::is_unrewritable_stylesheet(head.status, &served) =>
                {
                    let to = match load.is_subresource {
                        true => sanitize_response::SanitizedResponse::Redirect(
                            proxied.url().to_string(),
                        ),
                        false => sanitize_response::SanitizedResponse::Refuse(
                            Refusal::UnrewritableStylesheet,
                        ),
                    };
                    return Err(reject(fetch, proxied, to));
                }
                sanitize_response::SanitizedResponse::Serve(served) => served,
                other => return Err(reject(fetch, proxied, other)),
            }
        }
        None => {
            let mut served = head.headers.clone();
            at.rewrite_location(&mut served);
            fetch
                .request
                .record_policy(fetch.request.page_policy(&served));
            served
        }
    };
    let plan = response_rewriter::plan_rewrite(
        &fetch.request,
        at,
        head.status,
        &mut served,
        Some(&fetch.observations()),
    );
    forward_headers::append_via(&mut served, head.version, &at.site.name);
    Ok((served, plan))
}

/// Checks the announced size of `body` against the limit of its host. The error is what the client gets instead.
pub(crate) fn check_size(
    fetch: &FetchState,
    at: &ProxyRequest,
    body: &Body,
) -> Result<(), Box<Response<Body>>> {
    let Some((proxied, load)) = &at.proxied else {
        return Ok(());
    };
    let max_bytes = at.site.rules.limits(proxied).max_bytes;
    match body.size_hint().exact() {
        Some(len) if len > max_bytes => {
            fetch
                .context
                .telemetry
                .counters
                .count(CounterFamily::Limits, "limits.max_mib");
            let instead = match load.is_subresource {
                true => sanitize_response::SanitizedResponse::Redirect(proxied.url().to_string()),
                false => sanitize_response::SanitizedResponse::Refuse(Refusal::TooLarge {
                    most: max_bytes,
                    found: len,
                }),
            };
            Err(reject(fetch, proxied, instead))
        }
        _ => Ok(()),
    }
}

/// `stored` with a note. For a page: its policy under the head `served`, and the one `before`. For the target of redirects: the way
/// there.
pub(crate) fn with_page_note(
    fetch: &FetchState,
    stored: Stored,
    served: &HeaderMap,
    before: &[u8],
) -> Stored {
    let Some(mut policy) = fetch.request.page_policy(served) else {
        return stored.with_note(before);
    };
    if let Some(before) = PagePolicy::parse_note(before) {
        policy.csp_guard.extend(before.csp_guard);
        policy.hides_referrer |= before.hides_referrer;
    }
    stored.with_note([&policy.note()[..], RewriteFacts::note_lines(before)].concat())
}

/// The response for a proxied resource that is not served.
fn reject(
    fetch: &FetchState,
    proxied: &ProxiedUrl,
    sanitized: sanitize_response::SanitizedResponse,
) -> Box<Response<Body>> {
    if let sanitize_response::SanitizedResponse::Refuse(reason) = &sanitized {
        tracing::debug!(%reason, url = %proxied.url(), "rejected a response");
        fetch
            .context
            .telemetry
            .counters
            .count(CounterFamily::RefusedRequests, reason.name());
    }
    Box::new(respond::from_sanitized(proxied, sanitized))
}

pub(crate) fn clone_head(head: &response::Parts) -> response::Parts {
    let mut copy = Response::new(()).into_parts().0;
    (copy.status, copy.version, copy.headers) = (head.status, head.version, head.headers.clone());
    copy
}
