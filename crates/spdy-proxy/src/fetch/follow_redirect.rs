//! Follows the redirects of other hosts: a browser would check its policy at each hop, so each hop is checked here.

use http::{Response, response};
use spdy::body::Body;
use spdy_cache::freshness::Times;
use spdy_rewrite::response::redirect::Redirect;

use crate::fetch::fetch_state::FetchState;
use crate::request::proxy_request::ProxyRequest;
use crate::request::rejection::RequestRejection;
use crate::response::redirect_chain::RedirectChain;
use crate::response::respond;
use crate::telemetry::counters::{CounterFamily, Outcome};

/// The request for the target of `head`, a redirect of another host; `None` if the client gets the redirect, as one of the site's own. The
/// error is the response that the client gets instead.
pub(crate) fn follow(
    fetch: &mut FetchState,
    at: &ProxyRequest,
    head: &response::Parts,
    times: Times,
    redirects: &mut RedirectChain,
) -> Result<Option<ProxyRequest>, Box<Response<Body>>> {
    let Some((proxied, load)) = &at.proxied else {
        return Ok(None);
    };
    let next = match redirects.decide(&at.site.rules, proxied, *load, &head.headers) {
        // A browser would check its policy at each hop.
        Redirect::Follow(next) => {
            let guarded = at.site.pages.guarded_kinds(&at.site.rules, next.url());
            next.without(guarded)
        }
        Redirect::Pass(_) => return Ok(None),
        Redirect::Direct(location) => {
            fetch.stop_coalescing();
            let response = respond::redirect_to_host(&location);
            return Err(Box::new(respond::with_outcome(
                response,
                Outcome::REDIRECTED,
            )));
        }
        Redirect::Refuse(refusal) => {
            fetch.stop_coalescing();
            tracing::debug!(%refusal, url = %proxied.url(), "rejected a redirect");
            return Err(Box::new(refused(fetch, &refusal.into())));
        }
    };
    let policy = fetch.context.cache.policy(fetch.request.origin_kind());
    let request_head = &fetch.request.head;
    redirects.add(policy, request_head, head, times, next.url());
    let next = at.at_redirect_target(next, *load);
    next.map(Some).map_err(|rejection| {
        fetch.stop_coalescing();
        Box::new(refused(fetch, &rejection))
    })
}

/// The response when a rule forbids to continue.
fn refused(fetch: &FetchState, rejection: &RequestRejection) -> Response<Body> {
    let counters = &fetch.context.telemetry.counters;
    counters.count(CounterFamily::RefusedRequests, rejection.name());
    respond::with_outcome(respond::refused(rejection), Outcome::REFUSED)
}
