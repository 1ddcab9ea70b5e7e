//! The prefetcher as the observer of fetches: it starts more fetches, and remembers the resources of pages.

use std::sync::Arc;

use spdy_cache::stored::Stored;
use spdy_rewrite::reference::Reference;

use crate::fetch::context::FetchContext;
use crate::fetch::page_observer::{PageObserver, PagePrefetches};
use crate::prefetch::document_references::DocumentContext;
use crate::prefetch::prefetcher::{MAX_PREFETCH_LOOKUPS, Prefetcher};
use crate::request::proxy_request::ProxyRequest;

impl PageObserver for Prefetcher {
    fn begin(&self, request: &ProxyRequest) -> PagePrefetches {
        PagePrefetches {
            budget: self.budget(request),
            remaining_lookups: MAX_PREFETCH_LOOKUPS,
            started: Vec::new(),
        }
    }

    fn references_found(
        &self,
        context: &Arc<FetchContext>,
        request: &ProxyRequest,
        prefetches: &mut PagePrefetches,
        references: &[Reference],
    ) {
        self.prefetch_references(context, request, prefetches, references);
    }

    fn stylesheet_finished(&self, request: &ProxyRequest, references: &[Reference]) {
        if let (Some(url), Some(home)) = (request.client_url(), request.client_origin()) {
            let reader = DocumentContext {
                home: &home,
                rules: request.site.rules.tag(),
            };
            let resources = &self.resources;
            resources.record_stylesheet(url.as_str(), reader, references);
        }
    }

    fn page_finished(&self, request: &ProxyRequest, stored: &Stored, references: &[Reference]) {
        if let (Some(url), Some(home)) = (request.client_url(), request.client_origin()) {
            let variant = stored.variant_of(&request.head.headers);
            let reader = DocumentContext {
                home: &home,
                rules: request.site.rules.tag(),
            };
            let resources = &self.resources;
            resources.record_page(url.as_str(), &variant, reader, references);
        }
    }

    fn page_reused(&self, context: &Arc<FetchContext>, request: &ProxyRequest, note: &[u8]) {
        self.prefetch_pinned(context, request, note);
    }
}
