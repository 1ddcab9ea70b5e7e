//! The redirects that one fetch has followed: what they allow of what they led to, by which URLs that is purged, and what is kept of them
//! beside it, to judge it for whoever asks next.

use http::{HeaderMap, HeaderName, HeaderValue, header, response};
use spdy_cache::freshness::Times;
use spdy_cache::policy::Policy;
use spdy_cache::redirected::RedirectLimits;
use spdy_cache::storable::Uncacheable;
use spdy_rewrite::response::redirect::{Redirect, RedirectState};
use spdy_rewrite::rules::Rules;
use url::Url;

use crate::fetch::origin_exchange::{Fetch, FetchOutcome};
use crate::request::proxy_request::ProxyRequest;
use crate::response::respond;
use crate::telemetry::counters::Outcome;

/// The field by whose words answers are purged; one of them is each URL that was followed.
const TAGS: HeaderName = HeaderName::from_static("surrogate-key");

/// What they come to.
#[derive(Debug, Default)]
pub(crate) struct RedirectChain {
    rules_state: RedirectState,
    redirects: RedirectLimits,
    urls: Vec<String>,
}

impl RedirectChain {
    /// Says in whose name the next request is, if this one was in anybody's.
    pub(crate) fn name(&self, rules: &Rules, headers: &mut HeaderMap) {
        if headers.contains_key(header::ORIGIN)
            && let Ok(origin) = HeaderValue::from_str(self.rules_state.origin(rules))
        {
            headers.insert(header::ORIGIN, origin);
        }
    }

    /// Makes the head of what they led to say what all of them allow together.
    pub(crate) fn restrict(&self, policy: &Policy, head: &mut response::Parts, times: Times) {
        self.redirects
            .apply(policy, head.status, &mut head.headers, times);
        self.rules_state.amend(&mut head.headers);
    }

    /// Why what they led to may not be kept, if so.
    pub(crate) fn refused(&self) -> Option<Uncacheable> {
        self.redirects.refused()
    }

    /// The note that is kept with what they led to; empty if there was none.
    pub(crate) fn note(&self) -> Vec<u8> {
        self.urls.join(" ").into_bytes()
    }

    /// Reads the first line of a note: where redirects led to what is kept with it.
    pub(crate) fn urls_from_note(note: &[u8]) -> Vec<Url> {
        let line = note.split(|byte| *byte == b'\n').next();
        let text = std::str::from_utf8(line.unwrap_or_default()).unwrap_or_default();
        let words = text.split(' ').filter(|word| !word.is_empty());
        words.filter_map(|word| Url::parse(word).ok()).collect()
    }

    /// Lets what is kept of it be purged by each URL on the way.
    pub(crate) fn add_surrogate_keys(&self, kept: &mut HeaderMap) {
        for url in &self.urls {
            if let Ok(tag) = HeaderValue::from_str(url) {
                kept.append(TAGS, tag);
            }
        }
    }
}

impl Fetch {
    /// Where the redirect `head` of another host leads; `None` if it is the site's own, or what becomes of the request instead.
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
            // A browser would ask its policy of each hop.
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
