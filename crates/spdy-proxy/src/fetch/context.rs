//! The parts of the proxy that a fetch needs. A fetch outlives its request, so it shares them.

use std::sync::Arc;
use std::time::SystemTime;

use spdy_cache::stored::Stored;

use crate::cache::tiers::Cache;
use crate::clock::Clock;
use crate::fetch::client_limits::ClientLimits;
use crate::fetch::page_observer::PageObserver;
use crate::request::proxy_request::ProxyRequest;
use crate::rewrite::pages::Pages;
use crate::telemetry::recorders::Telemetry;
use crate::upstream::origins::Origins;

/// What a fetch uses.
#[derive(Debug)]
pub(crate) struct FetchContext {
    pub(crate) origins: Arc<Origins>,
    pub(crate) cache: Arc<Cache>,
    pub(crate) pages: Arc<Pages>,
    pub(crate) client_limits: Arc<ClientLimits>,
    pub(crate) telemetry: Arc<Telemetry>,
    /// Is informed of pages; it may start more fetches.
    pub(crate) observer: Arc<dyn PageObserver>,
    pub(crate) clock: Clock,
}

impl FetchContext {
    /// Copies the response for `request` from the disk or the shared tier into memory; `false` if they have none.
    pub(crate) async fn promote(&self, request: &ProxyRequest) -> bool {
        let record = |stored: &Stored| self.pages.stylesheets.record_stored(request, stored);
        self.cache.promote(request, &record).await
    }

    /// The same from the shared tier, if `local` was fresh once and is stale now, and the response is newer.
    pub(crate) async fn promote_newer(
        &self,
        request: &ProxyRequest,
        local: Option<&Stored>,
        now: SystemTime,
    ) -> bool {
        let record = |stored: &Stored| self.pages.stylesheets.record_stored(request, stored);
        self.cache.promote_newer(request, local, now, &record).await
    }
}
