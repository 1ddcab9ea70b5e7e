//! A fetch for the cache alone: no client waits for its response.

use std::sync::Arc;
use std::time::Duration;

use spdy::body::Body;
use spdy_cache::cache_status::Forward;

use crate::cache::shared_response::FetchLeader;
use crate::fetch::context::FetchContext;
use crate::fetch::delivery::{ExchangeOutcome, PrefetchResult};
use crate::fetch::fetch_state::{FetchPurpose, FetchState};
use crate::fetch::origin_exchange::OriginExchange;
use crate::request::proxy_request::ProxyRequest;
use crate::request::status_class::is_origin_error;
use crate::response::stale_entry::StaleEntry;

/// A fetch for the cache alone.
pub(crate) struct BackgroundFetch(OriginExchange);

impl BackgroundFetch {
    /// A fetch of `request` that begins now, as the `leader` of requests that come later.
    pub(crate) fn new(
        context: &Arc<FetchContext>,
        request: ProxyRequest,
        stale_entry: Option<StaleEntry>,
        leader: FetchLeader,
        forward: Forward,
    ) -> Self {
        let purpose = FetchPurpose::Cache;
        let fetch = FetchState::new(
            context,
            request,
            stale_entry,
            Some(leader),
            forward,
            purpose,
        );
        Self(OriginExchange::new(fetch))
    }

    /// Runs until the response has begun; the rest continues by itself.
    pub(crate) async fn run(self) -> PrefetchResult {
        let mut origin = Duration::ZERO; // no client gets it
        match self.0.run(Body::empty(), &mut origin).await {
            ExchangeOutcome::Delivery(delivery) => delivery.deliver_to_cache(),
            ExchangeOutcome::Rejected(_, status) if !is_origin_error(status) => {
                PrefetchResult::None
            }
            // Instead of a response of the origin there is an error, a redirect, or what was stored before.
            ExchangeOutcome::Rejected(..) | ExchangeOutcome::Response(_) => PrefetchResult::Failed,
        }
    }
}
