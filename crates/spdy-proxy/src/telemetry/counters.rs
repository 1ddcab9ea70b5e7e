//! Counters by name: for metrics, and to find out why a page is slow.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// A family of counters. Labels are names from the code only, so that outside input cannot create a series.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum CounterFamily {
    /// Responses to clients, by the request's outcome.
    Responses,
    /// Requests that were refused, by reason.
    RefusedRequests,
    /// Responses of origins by class of status, and failures by kind.
    Origins,
    /// Responses of origins that are not stored, by reason.
    Uncacheable,
    /// Pages, by whether they were rewritten, or why not.
    Pages,
    /// References in pages, by whether they were proxied, or why not.
    References,
    /// Resources that were pushed, hinted or prefetched.
    Preloads,
    /// Requests, responses and prefetches that met a limit, by the key that sets it.
    Limits,
    /// WebSockets that ended, by what ended them.
    WebSockets,
    /// Bytes that passed in these WebSockets, by direction.
    WebSocketBytes,
}

impl CounterFamily {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Responses,
        Self::RefusedRequests,
        Self::Origins,
        Self::Uncacheable,
        Self::Pages,
        Self::References,
        Self::Preloads,
        Self::Limits,
        Self::WebSockets,
        Self::WebSocketBytes,
    ];

    /// Its name in metrics, the name of its label, and its help text.
    #[must_use]
    pub fn describe(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Responses => (
                "accelerator_responses",
                "outcome",
                "Responses to clients, by the outcome of the request",
            ),
            Self::RefusedRequests => (
                "accelerator_rejected_requests",
                "reason",
                "Requests that a rule forbids, by reason",
            ),
            Self::Origins => (
                "accelerator_origin_responses",
                "outcome",
                "Responses and failures of origins",
            ),
            Self::Uncacheable => (
                "accelerator_uncacheable_responses",
                "reason",
                "Responses of origins that are not stored, by reason",
            ),
            Self::Pages => (
                "accelerator_pages",
                "outcome",
                "Pages that passed, by what the rewriter did",
            ),
            Self::References => (
                "accelerator_references",
                "outcome",
                "References to other hosts in these pages, by what the rewriter did",
            ),
            Self::Preloads => (
                "accelerator_preloads",
                "outcome",
                "Resources sent or fetched before a client requested them",
            ),
            Self::Limits => (
                "accelerator_limit_hits",
                "limit",
                "Requests, responses and prefetches that met a limit, by its key",
            ),
            Self::WebSockets => (
                "accelerator_websockets",
                "ended_by",
                "WebSockets that ended, by what ended them",
            ),
            Self::WebSocketBytes => (
                "accelerator_websocket_bytes",
                "direction",
                "Bytes that passed in WebSockets that ended, by direction",
            ),
        }
    }
}

/// How often each event happened. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct Counters(Arc<Mutex<BTreeMap<(CounterFamily, &'static str), u64>>>);

impl Counters {
    /// Adds 1 to a counter.
    pub fn count(&self, family: CounterFamily, label: &'static str) {
        self.add(family, label, 1);
    }

    /// Adds `times` to a counter.
    pub fn add(&self, family: CounterFamily, label: &'static str, times: u64) {
        let mut counts = self.0.lock();
        *counts.entry((family, label)).or_default() += times;
    }

    /// Labels of a family in the order of their names, with their counts.
    #[must_use]
    pub fn read(&self, family: CounterFamily) -> Vec<(&'static str, u64)> {
        let counts = self.0.lock();
        let all = counts.iter().filter(|((of, _), _)| *of == family);
        all.map(|((_, label), count)| (*label, *count)).collect()
    }
}

/// The outcome of a request; in the extensions of its response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Outcome(pub &'static str);

impl Outcome {
    /// It was answered from the cache.
    pub const HIT: Self = Self("hit");
    /// Answered stale from the cache, while it is fetched again.
    pub const STALE: Self = Self("stale");
    /// From the cache, because the origin failed.
    pub const STALE_ON_ERROR: Self = Self("stale-on-error");
    /// The origin confirmed that the stored response is still good.
    pub const REVALIDATED: Self = Self("revalidated");
    /// Another request for it was in flight.
    pub const COALESCED: Self = Self("coalesced");
    /// The origin was contacted, and its response is stored.
    pub const MISS: Self = Self("miss");
    /// The origin was contacted, and its response is private to this client.
    pub const UNCACHEABLE: Self = Self("uncacheable");
    /// It became a WebSocket to the origin.
    pub const WEBSOCKET: Self = Self("websocket");
    /// The host failed recently, and was not contacted again.
    pub const NEGATIVE: Self = Self("negative");
    /// A rule forbids it.
    pub const REFUSED: Self = Self("rejected");
    /// The client is sent to the host itself.
    pub const REDIRECTED: Self = Self("redirected");
    /// The origin could not be contacted.
    pub const UNREACHABLE: Self = Self("unreachable");
    /// The client allowed only a stored response, and there was none.
    pub const NOT_CACHED: Self = Self("not-cached");
    /// It was no request.
    pub const MALFORMED: Self = Self("malformed");
    /// The client contacted origins too often.
    pub const RATE_LIMITED: Self = Self("rate-limited");
    /// The host belongs to no site.
    pub const MISDIRECTED: Self = Self("misdirected");
}
