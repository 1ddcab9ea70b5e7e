//! A fetch for a client that waits for the response.

use std::sync::Arc;
use std::time::Duration;

use http::Response;
use spdy::body::Body;
use spdy_cache::cache_status::Forward;

use crate::cache::shared_response::FetchLeader;
use crate::fetch::context::FetchContext;
use crate::fetch::delivery::ExchangeOutcome;
use crate::fetch::fetch_state::{FetchPurpose, FetchState};
use crate::fetch::origin_exchange::OriginExchange;
use crate::request::proxy_request::ProxyRequest;
use crate::response::respond;
use crate::response::server_timing::OriginDuration;
use crate::response::stale_entry::StaleEntry;
use crate::telemetry::counters::Outcome;
use crate::upstream::error::UpstreamError;

/// A fetch for a client that waits.
pub(crate) struct ForegroundFetch(OriginExchange);

impl ForegroundFetch {
    /// A fetch of `request` that begins now. Other requests may wait for it if it has a `leader`.
    pub(crate) fn new(
        context: &Arc<FetchContext>,
        request: ProxyRequest,
        stale_entry: Option<StaleEntry>,
        leader: Option<FetchLeader>,
        forward: Forward,
    ) -> Self {
        let purpose = FetchPurpose::Client;
        let fetch = FetchState::new(context, request, stale_entry, leader, forward, purpose);
        Self(OriginExchange::new(fetch))
    }

    /// Runs until the response has begun; the rest continues by itself. `body` is what the client sends.
    pub(crate) async fn run(self, body: Body) -> Response<Body> {
        let mut origin = Duration::ZERO;
        let mut response = match self.0.run(body, &mut origin).await {
            ExchangeOutcome::Response(response) => *response,
            ExchangeOutcome::Rejected(response, _) => {
                respond::with_outcome(*response, Outcome::UNCACHEABLE)
            }
            ExchangeOutcome::Delivery(delivery) => delivery.deliver_to_client(),
        };
        if !origin.is_zero() {
            response.extensions_mut().insert(OriginDuration(origin));
        }
        response
    }

    /// The response without contacting an origin, because of `error`.
    pub(crate) fn fail(self, error: &UpstreamError) -> Response<Body> {
        self.0.fail(error)
    }
}
