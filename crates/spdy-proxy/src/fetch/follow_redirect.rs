//! Follows the redirects of other hosts: a browser would check its policy at each hop, so each hop is checked here.

use http::response;
use spdy_cache::freshness::Times;
use spdy_rewrite::response::redirect::Redirect;

use crate::fetch::origin_exchange::{Fetch, FetchOutcome};
use crate::request::proxy_request::ProxyRequest;
use crate::response::redirect_chain::RedirectChain;
use crate::response::respond;
use crate::telemetry::counters::Outcome;

impl Fetch {
    /// The request for the target of `head`, a redirect of another host; `None` if it is of the site's own. The error is the response that
    /// the client gets instead.
    pub(crate) fn follow_redirect(
        &mut self,
        at: &ProxyRequest,
        head: &response::Parts,
        times: Times,
        followed: &mut RedirectChain,
    ) -> Result<Option<ProxyRequest>, Box<FetchOutcome>> {
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
                self.stop_coalescing();
                let response = respond::redirect_to_host(&location);
                return Err(Box::new(FetchOutcome::answer(
                    response,
                    Outcome::REDIRECTED,
                )));
            }
            Redirect::Refuse(refusal) => {
                self.stop_coalescing();
                tracing::debug!(%refusal, url = %moved.url(), "a redirect was refused");
                return Err(Box::new(self.refused(&refusal.into())));
            }
        };
        let policy = self.proxy.policy(self.wanted.origin_kind());
        let asked = &self.wanted.ask;
        followed.add(policy, asked, head, times, next.url());
        let next = at.at_redirect_target(next, *load);
        next.map(Some).map_err(|why| {
            self.stop_coalescing();
            Box::new(self.refused(&why))
        })
    }
}
