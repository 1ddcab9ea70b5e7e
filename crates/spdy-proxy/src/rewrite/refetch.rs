//! Decides whether a stored page is fetched again, because more facts are known than when it was rewritten (`rewrite_facts.rs`).

use std::time::Duration;

use http::{Method, Response, header};
use parking_lot::Mutex;
use spdy_cache::cache_control::RequestControl;
use spdy_cache::key::Key;
use spdy_cache::policy::Policy;
use spdy_cache::storable::may_store;
use spdy_cache::stored::Stored;
use spdy_clock::Instant;
use spdy_rewrite::reference::site_facts::SiteFacts;
use url::Url;

use crate::expiring_map::ExpiringMap;
use crate::request::proxy_request::ProxyRequest;
use crate::rewrite::pages::Pages;
use crate::rewrite::rewrite_facts::RewriteFacts;

/// The interval before a page is fetched again for the same facts without effect: its origin failed, or the response is not stored.
const REFETCH_INTERVAL: Duration = Duration::from_secs(60);
/// The number of pages with such an entry.
const MAX_PAGES: usize = 4096;

/// Pages that were fetched again, each with a hash of the facts known then.
#[derive(Debug)]
pub(crate) struct RefetchHistory(Mutex<ExpiringMap<Key, u64>>);

impl Default for RefetchHistory {
    fn default() -> Self {
        Self(Mutex::new(ExpiringMap::new(REFETCH_INTERVAL, MAX_PAGES)))
    }
}

impl RefetchHistory {
    fn has(&self, key: &Key, facts: u64, now: Instant) -> bool {
        let mut pages = self.0.lock();
        pages.get(key, now) == Some(&facts)
    }

    /// Records `facts` for the page. Returns whether they are new.
    fn record(&self, key: &Key, facts: u64, now: Instant) -> bool {
        let mut pages = self.0.lock();
        let is_new = pages.get(key, now) != Some(&facts);
        pages.insert(key, facts, now);
        is_new
    }
}

impl Pages {
    /// Whether `stored`, which is fresh for `request`, must be fetched again, since more facts are known than when it was rewritten.
    pub(crate) fn needs_refetch(
        &self,
        request: &ProxyRequest,
        stored: &Stored,
        policy: &Policy,
        now: Instant,
    ) -> bool {
        let facts = self.changed_facts(request, stored, policy, false);
        facts.is_some_and(|facts| !self.refetches.has(&request.key, facts, now))
    }

    /// Like [`needs_refetch`](Self::needs_refetch), but true for one request only, until more is known or a minute has passed.
    pub(crate) fn start_refetch(
        &self,
        request: &ProxyRequest,
        stored: &Stored,
        is_stale: bool,
        policy: &Policy,
        now: Instant,
    ) -> bool {
        let facts = self.changed_facts(request, stored, policy, is_stale);
        facts.is_some_and(|facts| self.refetches.record(&request.key, facts, now))
    }

    /// A hash of the facts known now, if the page `stored` must be fetched again to be rewritten with them.
    fn changed_facts(
        &self,
        request: &ProxyRequest,
        stored: &Stored,
        policy: &Policy,
        is_stale: bool,
    ) -> Option<u64> {
        let lines = RewriteFacts::note_lines(stored.note());
        if lines.is_empty() || !is_stale && !RewriteFacts::has_pins(lines) {
            return None; // most responses
        }
        let parts = &request.head;
        let is_full_get = parts.method == Method::GET && !parts.headers.contains_key(header::RANGE);
        if !is_full_get || RequestControl::parse(&parts.headers).only_if_cached {
            return None;
        }
        let used_facts = RewriteFacts::parse(stored.note());
        let facts = {
            let observations = self.observations(request);
            let state_of = |url: &Url, metadata: &str| observations.stylesheet_state(url, metadata);
            used_facts.would_change(state_of, |url| observations.all_rewritten(url), is_stale)?
        };
        // A response to a request with cookies may not be stored, so fetching it would be useless.
        let mut head = Response::new(()).into_parts().0;
        (head.status, head.headers) = (stored.status(), stored.headers().clone());
        let is_storable = may_store(policy, parts, &head, stored.times()).is_ok();
        is_storable.then_some(facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::test_key::key;

    #[test]
    fn page_is_refetched_once_per_minute_for_same_facts() {
        let pages = RefetchHistory::default();
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        assert!(!pages.has(&key("/"), 1, at(0)));
        assert!(pages.record(&key("/"), 1, at(0)));
        assert!(!pages.record(&key("/"), 1, at(1)) && pages.has(&key("/"), 1, at(1)));
        assert!(pages.record(&key("/other"), 1, at(1)));
        assert!(pages.record(&key("/"), 2, at(2)), "more is known");
        assert!(!pages.has(&key("/"), 1, at(2)));
        assert!(pages.record(&key("/"), 2, at(61)), "a minute has passed");
        for at_page in 0..MAX_PAGES {
            pages.record(&key(&format!("/{at_page}")), 1, at(62));
        }
        assert!(!pages.has(&key("/"), 2, at(62)), "one too many");
    }
}
