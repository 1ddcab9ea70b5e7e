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
    let mut served = match &at.moved {
        Some((moved, load)) => {
            match sanitize_response::sanitize(rules, moved, *load, head.status, &head.headers) {
                sanitize_response::SanitizedResponse::Serve(served)
                    if !moved.is_alias()
                        && response_rewriter::is_unrewritable_stylesheet(head.status, &served) =>
                {
                    let to = match load.is_subresource {
                        true => {
                            sanitize_response::SanitizedResponse::Redirect(moved.url().to_string())
                        }
                        false => sanitize_response::SanitizedResponse::Refuse(
                            Refusal::UnrewritableStylesheet,
                        ),
                    };
                    return Err(reject(fetch, moved, to));
                }
                sanitize_response::SanitizedResponse::Serve(served) => served,
                other => return Err(reject(fetch, moved, other)),
            }
        }
        None => {
            let mut served = head.headers.clone();
            at.rewrite_location(&mut served);
            fetch
                .wanted
                .record_policy(fetch.wanted.page_policy(&served));
            served
        }
    };
    let work = response_rewriter::plan_rewrite(
        &fetch.wanted,
        at,
        head.status,
        &mut served,
        Some(&fetch.observations()),
    );
    forward_headers::append_via(&mut served, head.version, &at.site.name);
    Ok((served, work))
}

/// Checks the announced size of `body` against the limit of its host. The error is what the client gets instead.
pub(crate) fn check_size(
    fetch: &FetchState,
    at: &ProxyRequest,
    body: &Body,
) -> Result<(), Box<Response<Body>>> {
    let Some((moved, load)) = &at.moved else {
        return Ok(());
    };
    let most = at.site.rules.limits(moved).max_bytes;
    match body.size_hint().exact() {
        Some(got) if got > most => {
            fetch
                .context
                .telemetry
                .counters
                .count(CounterFamily::Limits, "limits.max_mib");
            let instead = match load.is_subresource {
                true => sanitize_response::SanitizedResponse::Redirect(moved.url().to_string()),
                false => {
                    sanitize_response::SanitizedResponse::Refuse(Refusal::TooLarge { most, got })
                }
            };
            Err(reject(fetch, moved, instead))
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
    let Some(mut said) = fetch.wanted.page_policy(served) else {
        return stored.with_note(before);
    };
    if let Some(before) = PagePolicy::parse_note(before) {
        said.csp_guard.extend(before.csp_guard);
        said.hides_referrer |= before.hides_referrer;
    }
    stored.with_note([&said.note()[..], RewriteFacts::note_lines(before)].concat())
}

/// The response for a moved resource that is not served.
fn reject(
    fetch: &FetchState,
    moved: &ProxiedUrl,
    answer: sanitize_response::SanitizedResponse,
) -> Box<Response<Body>> {
    if let sanitize_response::SanitizedResponse::Refuse(why) = &answer {
        tracing::debug!(%why, url = %moved.url(), "rejected a response");
        fetch
            .context
            .telemetry
            .counters
            .count(CounterFamily::RefusedRequests, why.name());
    }
    Box::new(respond::from_sanitized(moved, answer))
}

pub(crate) fn clone_head(head: &response::Parts) -> response::Parts {
    let mut copy = Response::new(()).into_parts().0;
    (copy.status, copy.version, copy.headers) = (head.status, head.version, head.headers.clone());
    copy
}
