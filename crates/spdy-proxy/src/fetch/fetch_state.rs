//! The state of one fetch: its request, what is stored already, and the requests that wait for it.

use std::sync::Arc;

use http::Response;
use spdy::body::Body;
use spdy_cache::cache_status::Forward;
use spdy_cache::lookup::Failure;

use crate::cache::purge_log::PurgeSnapshot;
use crate::cache::shared_response::FetchLeader;
use crate::fetch::context::FetchContext;
use crate::request::proxy_request::ProxyRequest;
use crate::response::stale_entry::{StaleEntry, respond_stale_on_error};
use crate::rewrite::site_observations::SiteObservations;

/// A fetch in progress.
pub(crate) struct FetchState {
    pub(crate) context: Arc<FetchContext>,
    pub(crate) request: ProxyRequest,
    /// The stored response that the request revalidates.
    pub(crate) stale_entry: Option<StaleEntry>,
    /// Present if other requests may wait for this fetch.
    pub(crate) leader: Option<FetchLeader>,
    /// Why the stored response is not enough.
    pub(crate) forward_reason: Forward,
    pub(crate) purpose: FetchPurpose,
    /// The state of purges when it began: what was purged since is not stored.
    pub(crate) since: PurgeSnapshot,
}

/// What a response is fetched for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FetchPurpose {
    /// A client waits for it.
    Client,
    /// It is for the cache alone.
    Cache,
}

impl FetchState {
    /// A fetch that begins now.
    pub(crate) fn new(
        context: &Arc<FetchContext>,
        request: ProxyRequest,
        stale_entry: Option<StaleEntry>,
        leader: Option<FetchLeader>,
        forward_reason: Forward,
        purpose: FetchPurpose,
    ) -> Self {
        let cache = &context.cache;
        Self {
            context: context.clone(),
            since: cache.purge_snapshot(),
            stale_entry: stale_entry
                .filter(|stale_entry| stale_entry.is_unpurged(cache, &request.key)),
            request,
            leader,
            forward_reason,
            purpose,
        }
    }

    /// No other request may wait for this key.
    pub(crate) fn stop_coalescing(&mut self) {
        if let Some(leader) = self.leader.take() {
            leader.mark_private(self.context.clock.now());
        }
    }

    /// What was observed of the site, for this request.
    pub(crate) fn observations(&self) -> SiteObservations {
        self.context.pages.observations(&self.request)
    }

    /// The stored response, although it is stale, if the origin's failure allows it. Followers are informed of the failure, too.
    pub(crate) fn stale_on_error(&mut self, failure: Failure) -> Option<Response<Body>> {
        let (cache, now) = (&self.context.cache, self.context.clock.wall_now());
        let entry = self.stale_entry.as_ref();
        let stale = respond_stale_on_error(cache, &self.request, entry, failure, now)?;
        if let Some(leader) = self.leader.take() {
            leader.fail(failure);
        }
        Some(stale)
    }
}
