//! The redirects that one fetch has followed: what they permit for the final response, the URLs that purge it, and the note that is stored
//! with it. The note is for the check of later requests.

use http::{HeaderMap, HeaderName, HeaderValue, header, request, response};
use spdy_cache::freshness::Times;
use spdy_cache::policy::Policy;
use spdy_cache::redirect_limits::RedirectLimits;
use spdy_cache::storable::Uncacheable;
use spdy_rewrite::request::anonymize::Load;
use spdy_rewrite::response::redirect::{Redirect, RedirectState};
use spdy_rewrite::rules::Rules;
use spdy_rewrite::urls::proxied_url::ProxiedUrl;
use url::Url;

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
    /// What to do about the redirect with `headers`, a response for `proxied`.
    pub(crate) fn decide(
        &mut self,
        rules: &Rules,
        proxied: &ProxiedUrl,
        load: Load,
        headers: &HeaderMap,
    ) -> Redirect {
        self.rules_state.decide(rules, proxied, load, headers)
    }

    /// Adds a redirect that is followed: the response `head` to `request_head`, which leads to `url`.
    pub(crate) fn add(
        &mut self,
        policy: &Policy,
        request_head: &request::Parts,
        head: &response::Parts,
        times: Times,
        url: &Url,
    ) {
        self.redirects.add(policy, request_head, head, times);
        self.urls.push(url.to_string());
    }

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
    pub(crate) fn add_surrogate_keys(&self, headers: &mut HeaderMap) {
        for url in &self.urls {
            if let Ok(tag) = HeaderValue::from_str(url) {
                headers.append(TAGS, tag);
            }
        }
    }
}
