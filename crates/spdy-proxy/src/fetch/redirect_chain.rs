//! The redirects that one fetch has followed: what they permit for the final response, the URLs that purge it, and the note that is stored
//! with it. The note is for the check of later requests.

use http::{HeaderMap, HeaderName, HeaderValue, header, response};
use spdy_cache::freshness::Times;
use spdy_cache::policy::Policy;
use spdy_cache::redirect_limits::RedirectLimits;
use spdy_cache::storable::Uncacheable;
use spdy_rewrite::response::redirect::{Redirect, RedirectState};
use spdy_rewrite::rules::Rules;
use url::Url;

use crate::fetch::origin_exchange::{Fetch, FetchOutcome};
use crate::request::proxy_request::ProxyRequest;
use crate::response::respond;
use crate::telemetry::counters::Outcome;

/// The field with the tags that responses are purged by. Each URL that was followed is a tag.
const TAGS: HeaderName = HeaderName::from_static("surrogate-key");

/// The redirects so far.
#[derive(Debug, Default)]
pub(crate) struct RedirectChain {
    rules_state: RedirectState,
    redirects: RedirectLimits,
    urls: Vec<String>,
}

impl RedirectChain {
    /// Sets the `Origin` of the next request, if this one had one.
    pub(crate) fn name(&self, rules: &Rules, headers: &mut HeaderMap) {
        if headers.contains_key(header::ORIGIN)
            && let Ok(origin) = HeaderValue::from_str(self.rules_state.origin(rules))
        {
            headers.insert(header::ORIGIN, origin);
        }
    }

    /// Restricts the head of the final response to what all redirects permit.
    pub(crate) fn restrict(&self, policy: &Policy, head: &mut response::Parts, times: Times) {
        self.redirects
            .apply(policy, head.status, &mut head.headers, times);
        self.rules_state.amend(&mut head.headers);
    }

    /// Why the final response may not be stored, if so.
    pub(crate) fn refused(&self) -> Option<Uncacheable> {
        self.redirects.refused()
    }

    /// The note that is stored with the final response; empty if there was no redirect.
    pub(crate) fn note(&self) -> Vec<u8> {
        self.urls.join(" ").into_bytes()
    }

    /// Reads the first line of a note: where redirects led to the stored response.
    pub(crate) fn urls_from_note(note: &[u8]) -> Vec<Url> {
        let line = note.split(|byte| *byte == b'\n').next();
        let text = std::str::from_utf8(line.unwrap_or_default()).unwrap_or_default();
        let words = text.split(' ').filter(|word| !word.is_empty());
        words.filter_map(|word| Url::parse(word).ok()).collect()
    }

    /// Adds each URL on the way as a tag, so that the stored response is purged by it.
    pub(crate) fn add_surrogate_keys(&self, kept: &mut HeaderMap) {
        for url in &self.urls {
            if let Ok(tag) = HeaderValue::from_str(url) {
                kept.append(TAGS, tag);
            }
        }
    }
}

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
        let next = match followed
            .rules_state
            .decide(&at.site.rules, moved, *load, &head.headers)
        {
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
        followed.redirects.add(policy, asked, head, times);
        followed.urls.push(next.url().to_string());
        let next = at.at_redirect_target(next, *load);
        next.map(Some).map_err(|why| {
            self.stop_coalescing();
            Box::new(self.refused(&why))
        })
    }
}
