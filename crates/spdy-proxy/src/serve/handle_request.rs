//! Handles one request: chooses the site, looks up the cache, contacts the origin on a miss, and builds the response.
//!
//! ```text
//!  read (request/proxy_request.rs) ──refused──▶ 404, 421, 508 …
//!     │ what is kept is fresh, and chosen by what the client said ──▶ kept (response/respond.rs), before anything waits
//!     │
//!  told (request/proxy_request.rs): the request that the origin will see ── a WebSocket's handshake ──▶ websocket/connection.rs
//!     │
//!  look up ── Fresh ─────────▶ kept (response/respond.rs)
//!     │     ── Stale ─────────▶ kept, and validated behind it; also a fresh page that must be rewritten again (rewrite/rewrite_facts.rs)
//!     │     ── Validate ──┐
//!     │     ── Miss ──────┴──▶ board (serve/miss.rs): one fetch for all who want it; a 304 leads to what is kept
//!     ├──── Bypass ──────────▶ pass (serve/miss.rs); unsafe methods make what is kept doubtful
//!     └──── OnlyIfCached ────▶ 504
//! ```

use std::future::Ready;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::Either;
use http::{Method, Request, Response, StatusCode, Uri};
use spdy::body::Body;
use spdy::runtime::BoxFuture;
use spdy_cache::body::Body as KeptBody;
use spdy_cache::cache_status::CacheStatus;
use spdy_cache::lookup::{self, Lookup};
use spdy_cache::memory_store::Object;
use spdy_cache::stored::Stored;
use spdy_cache::validate::Conditional;

use crate::body::request_body::buffer_start;
use crate::fetch::origin_exchange::{Fetch, StaleEntry};
use crate::proxy::{CACHE_NAME, Proxy, request_authority};
use crate::request::forward_headers;
use crate::request::proxy_request::{IncomingRequest, ProxyRequest, RequestRejection};
use crate::response::respond::{self, StoredCheck};
use crate::sites::page_policies::PagePolicy;
use crate::telemetry::counters::{CounterFamily, Outcome};
use crate::telemetry::trace_context::SpanContext;

impl Proxy {
    /// The response to `request`, which came from `from`. A fresh cache hit returns `Left` at once, without a future. `Left` is a hit
    /// unless its extensions have another outcome.
    pub fn answer(
        self: &Arc<Self>,
        request: Request<Body>,
        from: Option<IpAddr>,
    ) -> Either<Ready<Response<Body>>, BoxFuture<Response<Body>>> {
        self.handle_traced_request(request, from, None)
    }

    /// The same for a request that has a place in a trace.
    pub(crate) fn handle_traced_request(
        self: &Arc<Self>,
        request: Request<Body>,
        from: Option<IpAddr>,
        within: Option<SpanContext>,
    ) -> Either<Ready<Response<Body>>, BoxFuture<Response<Body>>> {
        let (asked, body) = request.into_parts();
        let at_once = |response| Either::Left(std::future::ready(response));
        let Some((authority, site)) = request_authority(&asked)
            .and_then(|authority| Some((authority, self.site_or_alias(authority)?)))
        else {
            let response = respond::plain(StatusCode::MISDIRECTED_REQUEST, "no such site here\n");
            return at_once(respond::with_outcome(response, Outcome::MISDIRECTED));
        };
        let authority = authority.to_owned();
        // For the log, if it is enabled.
        let uri = tracing::enabled!(tracing::Level::DEBUG).then(|| asked.uri.clone());
        let asked = match IncomingRequest::read(site, authority, from, asked) {
            Ok(asked) => asked.with_span(within),
            Err(why) => return at_once(self.reject(&why, uri.as_ref())),
        };
        let ask = &asked.request().ask;
        if forward_headers::max_forwards(&ask.method, &ask.headers) == Some(0) {
            return at_once(respond::with_outcome(
                respond::options(),
                Outcome::NOT_CACHED,
            ));
        }
        if let Some(limits) = asked.socket() {
            let proxy = self.clone();
            return Either::Right(Box::pin(async move {
                match asked.into_upstream_request() {
                    Ok(wanted) => proxy.open_websocket(wanted, limits).await,
                    Err(why) => proxy.reject(&why, uri.as_ref()),
                }
            }));
        }
        if http_body::Body::is_end_stream(&body)
            && let Some(response) = self.fresh_hit(&asked)
        {
            return at_once(response);
        }
        let proxy = self.clone();
        Either::Right(Box::pin(async move {
            match asked.into_upstream_request() {
                Ok(wanted) => proxy.want(wanted, body).await,
                Err(why) => proxy.reject(&why, uri.as_ref()),
            }
        }))
    }

    fn reject(&self, why: &RequestRejection, uri: Option<&Uri>) -> Response<Body> {
        let target = uri.map(tracing::field::display);
        tracing::debug!(%why, target, "refused");
        self.counters
            .count(CounterFamily::RefusedRequests, why.name());
        respond::with_outcome(respond::refused(why), Outcome::REFUSED)
    }

    /// The stored response for `asked` that needs no request to the origin, if the client's own headers are enough to select it.
    fn fresh_hit(self: &Arc<Self>, asked: &IncomingRequest) -> Option<Response<Body>> {
        let wanted = asked.request();
        let variants = self.memory.lookup(&wanted.key)?;
        let now = self.wall_now();
        let mut all = variants.iter();
        let object = all
            .all(|variant| asked.can_select_variant(variant.stored()))
            .then(|| self.select_fresh(&variants, wanted, now))??;
        if self.is_needed(wanted, object.stored()) {
            return None;
        }
        Some(self.respond_hit(wanted, object, now))
    }

    /// The response to `wanted`.
    async fn want(self: &Arc<Self>, mut wanted: ProxyRequest, body: Body) -> Response<Body> {
        let is_safe = matches!(wanted.ask.method, Method::GET | Method::HEAD);
        let mut body = body;
        if is_safe && wanted.expects_continue(&body) && wanted.moved.is_none() {
            wanted.has_content = true;
            return self.bypass(wanted, body, None).await;
        }
        if is_safe && wanted.moved.is_none() && !http_body::Body::is_end_stream(&body) {
            // Over HTTP/2 and HTTP/3 a body may be empty although the head does not end the stream.
            body = match buffer_start(body).await {
                Ok(body) => body,
                Err(_) => return Fetch::incomplete_request(),
            };
            if !http_body::Body::is_end_stream(&body) {
                // A response that depends on content is not selected by the target alone.
                wanted.has_content = true;
                return self.bypass(wanted, body, None).await;
            }
        }
        let policy = self.policy(wanted.origin_kind());
        let mut purges = self.purges.now();
        let mut kept = self.memory.lookup(&wanted.key);
        let now = self.wall_now();
        let mut found = lookup::lookup(
            policy,
            &wanted.ask,
            kept.as_deref().unwrap_or_default(),
            now,
        );
        let is_lifted = match &found {
            Lookup::Miss(_) => self.promote(&wanted).await,
            // Another machine may have contacted the origin already.
            Lookup::Revalidate { index, .. } => {
                let known = kept.as_deref().map(|variants| variants[*index].stored());
                self.promote_newer(&wanted, known, now).await
            }
            _ => false,
        };
        if is_lifted {
            purges = self.purges.now();
            kept = self.memory.lookup(&wanted.key);
            found = lookup::lookup(
                policy,
                &wanted.ask,
                kept.as_deref().unwrap_or_default(),
                now,
            );
        }
        let variants = kept.as_deref().unwrap_or_default();
        let forward = found.forward();
        let known = |index: usize, conditional| {
            let object: Object = variants[index].clone();
            // With a 304 it would stay as it was rewritten with the facts known then.
            let conditional = match self.start(&wanted, object.stored(), true) {
                true => Conditional::default(),
                false => conditional,
            };
            StaleEntry {
                object,
                conditional,
                purges,
            }
        };
        match found {
            Lookup::Fresh { index, .. } => {
                if self.start(&wanted, variants[index].stored(), false) {
                    let known = StaleEntry {
                        object: variants[index].clone(),
                        conditional: Conditional::default(),
                        purges,
                    };
                    self.revalidate_in_background(wanted.clone(), known);
                }
                if is_lifted {
                    // The resources that it waits for may be on the disk, too.
                    self.prefetch_pinned(&wanted, variants[index].stored().note());
                }
                let response = self.respond_hit(&wanted, &variants[index], now);
                respond::with_outcome(response, Outcome::HIT)
            }
            Lookup::Stale {
                index, background, ..
            } => {
                self.revalidate_in_background(wanted.clone(), known(index, background));
                let response = self.respond_hit(&wanted, &variants[index], now);
                respond::with_outcome(response, Outcome::STALE)
            }
            Lookup::Revalidate {
                index, conditional, ..
            } => {
                let known = known(index, conditional);
                self.fetch_coalesced(wanted, Some(known), forward).await
            }
            Lookup::Miss(_) => self.fetch_coalesced(wanted, None, forward).await,
            Lookup::Bypass(_) => self.bypass(wanted, body, forward).await,
            Lookup::OnlyIfCached => {
                let text = "not kept, and not to be fetched\n";
                let response = respond::plain(StatusCode::GATEWAY_TIMEOUT, text);
                respond::with_outcome(response, Outcome::NOT_CACHED)
            }
        }
    }

    /// The response from a stored object.
    pub(crate) fn respond_hit(
        &self,
        wanted: &ProxyRequest,
        object: &Object,
        now: SystemTime,
    ) -> Response<Body> {
        object.count_use();
        let status = CacheStatus::hit(CACHE_NAME).ttl(object.stored().ttl(now));
        self.respond_stored(wanted, object.stored(), object.body(), now, &status)
    }

    pub(crate) fn respond_stored(
        &self,
        wanted: &ProxyRequest,
        stored: &Stored,
        body: &KeptBody,
        now: SystemTime,
        status: &CacheStatus,
    ) -> Response<Body> {
        match respond::check_stored(wanted, stored) {
            StoredCheck::Replaced(response) => *response,
            StoredCheck::Allowed => {
                wanted.record_policy(PagePolicy::parse_note(stored.note()));
                let policy = self.policy(wanted.origin_kind());
                let coder = (&self.encodings, &self.runtime);
                respond::from_stored(policy, wanted, stored, body, coder, now, status)
            }
        }
    }

    /// The stored object for `wanted` that needs no request to the origin.
    pub(crate) fn lookup_fresh(&self, wanted: &ProxyRequest) -> Option<Object> {
        let variants = self.memory.lookup(&wanted.key)?;
        let object = self.select_fresh(&variants, wanted, self.wall_now());
        object.cloned()
    }

    fn select_fresh<'a>(
        &self,
        variants: &'a [Object],
        wanted: &ProxyRequest,
        now: SystemTime,
    ) -> Option<&'a Object> {
        let policy = self.policy(wanted.origin_kind());
        match lookup::lookup(policy, &wanted.ask, variants, now) {
            Lookup::Fresh { index, .. } => Some(&variants[index]),
            _ => None,
        }
    }
}
