//! The prefetcher as the observer of fetches: it starts more fetches, and remembers the resources of pages.

use std::sync::Arc;

use http::{HeaderMap, StatusCode, header};
use spdy_cache::body::Body;
use spdy_cache::stored::Stored;
use spdy_page::replica::Kind as PageKind;
use spdy_rewrite::kind::Kind;
use spdy_rewrite::reference::Reference;
use spdy_rewrite::reference::page_modules::PageModules;
use spdy_rewrite::rules::verdict::{ReferenceSource, Verdict};

use crate::body::content_coding::Coding;
use crate::cache::public_response::is_client_independent;
use crate::fetch::context::FetchContext;
use crate::fetch::page_observer::{PageObserver, PagePrefetches};
use crate::prefetch::document_references::DocumentContext;
use crate::prefetch::module_imports;
use crate::prefetch::prefetcher::{MAX_PREFETCH_LOOKUPS, Prefetcher};
use crate::request::client_origin::client_origin_text;
use crate::request::proxy_request::ProxyRequest;
use crate::rewrite::page_text;

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
        if is_restricted(request) {
            return;
        }
        if let (Some(url), Some(home)) = (request.client_url(), request.client_origin()) {
            let reader = DocumentContext {
                home: &home,
                rules: request.site.rules.tag(),
            };
            let resources = &self.resources;
            resources.record_stylesheet(url.as_str(), reader, references);
        }
    }

    fn page_finished(
        &self,
        request: &ProxyRequest,
        stored: &Stored,
        references: &[Reference],
        modules: PageModules,
    ) {
        if let (Some(url), Some(home)) = (request.client_url(), request.client_origin()) {
            let variant = stored.variant_of(&request.head.headers);
            let reader = DocumentContext {
                home: &home,
                rules: request.site.rules.tag(),
            };
            let resources = &self.resources;
            resources.record_page(
                url.as_str(),
                &variant,
                reader,
                references,
                modules,
                page_text::id_of(stored.note()),
            );
        }
    }

    fn unchanged_stored(
        &self,
        context: &Arc<FetchContext>,
        request: &ProxyRequest,
        stored: &Stored,
        body: &Body,
    ) {
        let kind = stored.served().get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| PageKind::from_content_type(kind.to_str().ok()?));
        let is_module = kind == Some(PageKind::Script)
            && stored.status() == StatusCode::OK
            && may_be_module(&request.head.headers)
            && is_client_independent(stored)
            && !is_restricted(request);
        let target = is_module.then(|| script_target(request)).flatten();
        let home = client_origin_text(&request.site, request.arrival, &request.authority);
        let (Some(target), Some(home), Some(coding)) = (target, home, Coding::of(stored.headers()))
        else {
            return;
        };
        let Some(reading) = self.module_reads.begin() else {
            return; // its imports are not known until it is stored again
        };
        let home = request.proxied.is_none().then(|| home.into_owned());
        let (resources, body) = (self.resources.clone(), body.clone());
        let rules = request.site.rules.tag().to_owned();
        context.clock.runtime.spawn(Box::pin(async move {
            let imports = module_imports::read(&body, coding).await;
            resources.record_script(&rules, home.as_deref(), &target, imports);
            drop(reading);
        }));
    }

    fn page_reused(&self, context: &Arc<FetchContext>, request: &ProxyRequest, note: &[u8]) {
        self.prefetch_pinned(context, request, note);
    }
}

/// Whether not every client may request it, so that its text is not public.
fn is_restricted(request: &ProxyRequest) -> bool {
    let target = request.head.uri.path_and_query();
    request.proxied.is_none()
        && target.is_some_and(|target| request.site.paths.is_restricted(target.as_str()))
}

/// Whether a browser may have requested it as a module, which is read by CORS. Programs that state nothing may.
fn may_be_module(headers: &HeaderMap) -> bool {
    headers
        .get("sec-fetch-mode")
        .is_none_or(|mode| mode == "cors")
}

/// The target by which pages request this script.
fn script_target(request: &ProxyRequest) -> Option<String> {
    match &request.proxied {
        None => Some(request.head.uri.path_and_query()?.to_string()),
        Some((proxied, _)) => {
            let rules = &request.site.rules;
            match rules.verdict(proxied.url(), Kind::Script, ReferenceSource::Site) {
                Verdict::Rewrite(target) => Some(target),
                _ => None,
            }
        }
    }
}
