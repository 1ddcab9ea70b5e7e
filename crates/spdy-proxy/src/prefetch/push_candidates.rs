//! Which resources of a page can be pushed or hinted, and the responses that are pushed: only what is in the cache.

use std::sync::Arc;

use http::{HeaderMap, Response, StatusCode, Uri, header, request};
use spdy::body::Body;
use spdy_page::replica::Kind as PageKind;
use spdy_server::push_plan::{CandidateState, PlannedPush};

use crate::cache::public_response::is_public;
use crate::cache::tiers::Cache;
use crate::prefetch::prefetcher::Prefetcher;
use crate::prefetch::subresource_request::LoadHints;
use crate::response::from_stored::respond_hit;
use crate::sites::site::Site;

impl Prefetcher {
    /// The cache state of `uri`, of the site's own origin, for a client that sent `page` and will load it as `load`.
    pub(crate) fn push_candidate_state(
        &self,
        cache: &Cache,
        site: &Arc<Site>,
        page: &request::Parts,
        uri: &Uri,
        load: LoadHints,
    ) -> CandidateState {
        let Some(request) = self.subresource_request(site, page, uri, load) else {
            return CandidateState::Unavailable;
        };
        match cache.lookup_fresh(&request) {
            Some(object) => CandidateState::Available {
                bytes: usize::try_from(object.body().len()).unwrap_or(usize::MAX),
                kind: kind_of(object.stored().headers()),
            },
            // It cannot be pushed, but may be hinted.
            None => CandidateState::Available {
                bytes: usize::MAX,
                kind: PageKind::Other,
            },
        }
    }

    /// The kind and the bytes of the resource at `uri`, if it is the site's own, without a query, and in the cache as public: a sheet,
    /// script, font or image. A page that was requested as `page` will request it as `load`.
    pub(crate) fn public_resource(
        &self,
        cache: &Cache,
        site: &Arc<Site>,
        page: &request::Parts,
        uri: &Uri,
        load: LoadHints,
    ) -> Option<(PageKind, u64)> {
        let request = self.subresource_request(site, page, uri, load)?;
        if request.proxied.is_some() || uri.query().is_some() {
            return None;
        }
        let object = cache.lookup_fresh(&request)?;
        let stored = object.stored();
        let is_public_ok = stored.status() == StatusCode::OK && is_public(stored);
        let kind = kind_of(stored.served());
        let is_preloadable = matches!(
            kind,
            PageKind::Stylesheet | PageKind::Script | PageKind::Font | PageKind::Image
        );
        (is_public_ok && is_preloadable).then(|| (kind, object.body().len()))
    }

    /// The bytes of the resource at `uri`, if it is in the cache as public, with this kind. A page that was requested as `page` will
    /// request it as `load`.
    pub(crate) fn public_bytes(
        &self,
        cache: &Cache,
        site: &Arc<Site>,
        page: &request::Parts,
        uri: &Uri,
        load: LoadHints,
        kind: PageKind,
    ) -> Option<u64> {
        let request = self.subresource_request(site, page, uri, load)?;
        let object = cache.lookup_fresh(&request)?;
        let stored = object.stored();
        let stored_kind = kind_of(stored.served());
        // Many servers state no type of fonts.
        let is_kind =
            stored_kind == kind || kind == PageKind::Font && stored_kind == PageKind::Other;
        let is_public_ok = stored.status() == StatusCode::OK && is_public(stored);
        (is_public_ok && is_kind).then(|| object.body().len())
    }

    /// The response that is pushed as `planned`.
    pub(crate) fn push_response(
        &self,
        cache: &Cache,
        site: &Arc<Site>,
        page: &request::Parts,
        planned: &PlannedPush,
    ) -> Option<Response<Body>> {
        let load = LoadHints::from_page(Some(planned.kind), planned.by_cors);
        let request = self.subresource_request(site, page, &planned.uri, load)?;
        let object = cache.lookup_fresh(&request)?;
        let response = respond_hit(cache, &request, &object, cache.clock.wall_now());
        (response.status() == StatusCode::OK).then_some(response)
    }
}

fn kind_of(headers: &HeaderMap) -> PageKind {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| PageKind::from_content_type(kind.to_str().ok()?));
    kind.unwrap_or(PageKind::Other)
}
