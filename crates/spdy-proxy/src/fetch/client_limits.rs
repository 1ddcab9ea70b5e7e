//! Limits on what one client may cause: requests to origins, whole resources instead of ranges, WebSockets, and open files.

use std::sync::Arc;

use http::{HeaderValue, Response, StatusCode, header};
use spdy::body::Body;
use spdy_clock::Instant;

use crate::config::cache::CacheConfig;
use crate::fetch::range_fill::backoff::RangeFillBackoff;
use crate::fetch::range_fill::credit::RangeFillCredits;
use crate::request::call_limit::ClientCalls;
use crate::request::proxy_request::ProxyRequest;
use crate::response::respond;
use crate::sites::client_rate::ClientRateLimit;
use crate::sites::open_limit::OpenLimit;
use crate::telemetry::counters::{CounterFamily, Counters, Outcome};
use crate::upstream::static_limit::StaticLimit;

/// The limits, and what clients have used of them.
#[derive(Debug)]
pub struct ClientLimits {
    miss_rate: ClientRateLimit,
    pub(crate) range_fills: Arc<RangeFillCredits>,
    pub(crate) range_fill_backoff: RangeFillBackoff,
    pub(crate) websockets: OpenLimit,
    pub(crate) static_responses: StaticLimit,
    pub(crate) calls: ClientCalls,
}

impl ClientLimits {
    pub(crate) fn new(config: &CacheConfig) -> Self {
        Self {
            miss_rate: ClientRateLimit::new(config.misses_per_second),
            range_fills: RangeFillCredits::new(config.range_fill_mib << 20),
            range_fill_backoff: RangeFillBackoff::default(),
            websockets: OpenLimit::default(),
            static_responses: StaticLimit::default(),
            calls: ClientCalls::default(),
        }
    }

    /// WebSockets that are open, that wait for their origin, and whose origin's refusal is being sent.
    #[must_use]
    pub fn open_websockets(&self) -> usize {
        self.websockets.count()
    }

    /// The response to a client that causes too many requests to origins; `None` if it does not.
    pub(crate) fn reject_over_rate(
        &self,
        request: &ProxyRequest,
        now: Instant,
        counters: &Counters,
    ) -> Option<Response<Body>> {
        let from = request.from?;
        if self.miss_rate.admits(from, now) {
            return None;
        }
        counters.count(CounterFamily::Limits, "misses_per_second");
        let text = "too many requests for responses that are not cached; try again soon\n";
        let mut response = respond::plain(StatusCode::TOO_MANY_REQUESTS, text);
        let soon = HeaderValue::from_static("1");
        response.headers_mut().insert(header::RETRY_AFTER, soon);
        Some(respond::with_outcome(response, Outcome::RATE_LIMITED))
    }
}
