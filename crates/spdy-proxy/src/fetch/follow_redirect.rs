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

/// The request for the target of `head`, a redirect of another host; `None` if it is of the site's own. The error is the response that
/// the client gets instead.
pub(crate) fn follow(
    fetch: &mut FetchState,
    at: &ProxyRequest,
    head: &response::Parts,
    times: Times,
    followed: &mut RedirectChain,
) -> Result<Option<ProxyRequest>, Box<Response<Body>>> {
    let Some((moved, load)) = &at.moved else {
        return Ok(None);
    };
    let next = match followed.decide(&at.site.rules, moved, *load, &head.headers) {
        // A browser would check its policy at each hop.
        Redirect::Follow(next) => {
            let guarded = at.site.pages.guarded_kinds(&at.site.rules, next.url());
            next.without(guarded)
        }
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
            tracing::debug!(%refusal, url = %moved.url(), "rejected a redirect");
            return Err(Box::new(refused(fetch, &refusal.into())));
        }
    };
    let policy = fetch.context.cache.policy(fetch.wanted.origin_kind());
    let asked = &fetch.wanted.ask;
    followed.add(policy, asked, head, times, next.url());
    let next = at.at_redirect_target(next, *load);
    next.map(Some).map_err(|why| {
        fetch.stop_coalescing();
        Box::new(refused(fetch, &why))
    })
}

/// The response when a rule forbids to continue.
fn refused(fetch: &FetchState, why: &RequestRejection) -> Response<Body> {
    let counters = &fetch.context.telemetry.counters;
    counters.count(CounterFamily::RefusedRequests, why.name());
    respond::with_outcome(respond::refused(why), Outcome::REFUSED)
}
