//! The events that a fetch reports while a page or a style sheet arrives. The prefetcher is the observer: it starts more fetches.

use std::sync::Arc;

use spdy_cache::body::Body;
use spdy_cache::stored::Stored;
use spdy_rewrite::reference::Reference;
use spdy_rewrite::reference::page_modules::PageModules;

use crate::fetch::context::FetchContext;
use crate::request::prefetch_step::PrefetchBudget;
use crate::request::proxy_request::ProxyRequest;

/// Is informed of pages and style sheets. It gets the context with each call and does not keep it: the context contains the observer.
pub(crate) trait PageObserver: std::fmt::Debug + Send + Sync {
    /// A response to `request` begins. Gives what may be prefetched for it.
    fn begin(&self, request: &ProxyRequest) -> PagePrefetches;

    /// The response to `request` has these `references`.
    fn references_found(
        &self,
        context: &Arc<FetchContext>,
        request: &ProxyRequest,
        prefetches: &mut PagePrefetches,
        references: &[Reference],
    );

    /// A style sheet, the response to `request`, is complete. It is the same for all clients.
    fn stylesheet_finished(&self, request: &ProxyRequest, references: &[Reference]);

    /// A page, the response to `request`, is complete. It has the head `stored`, and is public.
    fn page_finished(
        &self,
        request: &ProxyRequest,
        stored: &Stored,
        references: &[Reference],
        modules: PageModules,
    );

    /// The response to `request` was stored, unchanged, with this `body`.
    fn unchanged_stored(
        &self,
        context: &Arc<FetchContext>,
        request: &ProxyRequest,
        stored: &Stored,
        body: &Body,
    );

    /// A stored page with `note` is the response to `request`, without a rewrite.
    fn page_reused(&self, context: &Arc<FetchContext>, request: &ProxyRequest, note: &[u8]);
}

/// The prefetches of one response.
#[derive(Debug)]
pub(crate) struct PagePrefetches {
    /// What may still be prefetched for the request that led to it.
    pub(crate) budget: PrefetchBudget,
    /// How many more references may be looked up for a prefetch.
    pub(crate) remaining_lookups: usize,
    /// Targets of what was prefetched for it.
    pub(crate) started: Vec<String>,
}
