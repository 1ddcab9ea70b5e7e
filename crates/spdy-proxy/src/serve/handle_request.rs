//! Handles one request: chooses the site, looks up the cache, contacts the origin on a miss, and builds the response.
//!
//! ```text
//!  read (request/incoming_request.rs) ── rejected ──▶ 404, 421, 508 …
//!     │ a fresh response that the client's own headers select ──▶ hit (response/from_stored.rs), before anything waits
//!     │
//!  the request for the origin (request/incoming_request.rs) ── a WebSocket's handshake ──▶ websocket/connection.rs
//!     │
//!  lookup ── Fresh ─────────▶ hit
//!     │   ── Stale ─────────▶ hit, and a fetch in the background; also for a fresh page that is rewritten again (rewrite/refetch.rs)
//!     │   ── Revalidate ─┐
//!     │   ── Miss ───────┴──▶ fetch_coalesced (serve/miss.rs): one fetch for all requests; a 304 leads to the stored response
//!     │   Revalidate, Miss and Bypass of a request in early data (0-RTT) wait for the handshake, and look up again
//!     ├──── Bypass ─────────▶ bypass (serve/miss.rs); unsafe methods invalidate stored responses
//!     └──── OnlyIfCached ───▶ 504
//! ```

use std::future::Ready;
use std::net::IpAddr;
use std::sync::Arc;

use futures_util::future::Either;
use http::{Method, Request, Response, StatusCode, Uri, header, request};
use spdy::body::Body;
use spdy::runtime::BoxFuture;
use spdy_cache::lookup::{self, Lookup};
use spdy_cache::memory_store::Object;
use spdy_cache::stored::Stored;
use spdy_cache::validate::Conditional;
use spdy_clock::Instant;
use spdy_net::body_read_timeout::BodyReadTimeout;
use spdy_net::early_data::EarlyData;
use spdy_net::interim::early_hints::EarlyHints;

use crate::body::request_body::buffer_start;
use crate::fetch::origin_exchange::incomplete_request;
use crate::proxy::Proxy;
use crate::request::access::{self, CredentialCheck, NeedsPassword};
use crate::request::client_origin::request_authority;
use crate::request::forward_headers;
use crate::request::incoming_request::IncomingRequest;
use crate::request::origin_hints::{HintedUrls, OriginHints};
use crate::request::password_checks::CheckResult;
use crate::request::proxy_request::ProxyRequest;
use crate::request::rejection::RequestRejection;
use crate::response::downstream_storage::restrict_to_client;
use crate::response::from_stored::respond_hit;
use crate::response::image_variant;
use crate::response::respond;
use crate::response::stale_entry::StaleEntry;
use crate::serve::page_hints::supports_early_hints;
use crate::sites::site::Site;
use crate::telemetry::counters::{CounterFamily, Outcome};
use crate::telemetry::trace_context::SpanContext;
use crate::websocket::connection as websocket;

/// A response, or the future of one.
type ResponseOrFuture = Either<Ready<Response<Body>>, BoxFuture<Response<Body>>>;

fn at_once(response: Response<Body>) -> ResponseOrFuture {
    Either::Left(std::future::ready(response))
}

fn later(response: impl Future<Output = Response<Body>> + Send + 'static) -> ResponseOrFuture {
    Either::Right(Box::pin(response))
}

/// What is known of a request for a site before it is read.
struct SiteRequest {
    site: Arc<Site>,
    authority: String,
    from: Option<IpAddr>,
    /// Its place in a trace.
    within: Option<SpanContext>,
    now: Instant,
}

/// Whether the origin must be contacted before a response.
fn needs_origin(result: &Lookup) -> bool {
    match result {
        Lookup::Revalidate { .. } | Lookup::Miss(_) | Lookup::Bypass(_) => true,
        Lookup::Fresh { .. } | Lookup::Stale { .. } | Lookup::OnlyIfCached => false,
    }
}

/// The result of the checks that come before everything else.
pub(crate) enum Admission {
    /// The host is unknown.
    Misdirected,
    /// The request is rejected.
    Rejected(Arc<Site>, RequestRejection),
    /// The client needs a password, and sent one, which is not verified yet.
    Password(Arc<Site>, String, CredentialCheck),
    /// The client may make the request, which is for this site and authority.
    Open(Arc<Site>, String),
}

impl Admission {
    /// Whether the client may make the request, without a password.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::Open(..))
    }
}

/// `response`, which only a client with a password may get.
fn for_client_alone(mut response: Response<Body>) -> Response<Body> {
    restrict_to_client(response.headers_mut());
    response
}

impl Proxy {
    /// The response to `request`, which came from `from`. A fresh cache hit returns `Left` at once, without a future. `Left` is a hit
    /// unless its extensions have another outcome.
    pub fn answer(
        self: &Arc<Self>,
        request: Request<Body>,
        from: Option<IpAddr>,
    ) -> ResponseOrFuture {
        let now = self.clock.now();
        let (head, body) = request.into_parts();
        let admission = self.admit(&head, from, now);
        self.handle_admitted(admission, head, body, from, None, now)
            .1
    }

    /// Checks whether the client at `from` may make the request with `head`, before anything is done or sent for it.
    pub(crate) fn admit(
        &self,
        head: &request::Parts,
        from: Option<IpAddr>,
        now: Instant,
    ) -> Admission {
        let Some((authority, site)) = request_authority(head)
            .and_then(|authority| Some((authority, self.origins.site_or_alias(authority)?)))
        else {
            return Admission::Misdirected;
        };
        let checked = access::check(&site, authority, head, from, now);
        let checked = checked.and_then(|()| access::credentials(&site, authority, head));
        match checked {
            Ok(Some(check)) => Admission::Password(site, authority.to_owned(), check),
            Ok(None) => Admission::Open(site, authority.to_owned()),
            Err(rejection) => Admission::Rejected(site, rejection),
        }
    }

    /// The response to a request at `now` with this `admission` and a place in a trace, with its site; `None` if its host is unknown.
    pub(crate) fn handle_admitted(
        self: &Arc<Self>,
        admission: Admission,
        mut head: request::Parts,
        body: Body,
        from: Option<IpAddr>,
        within: Option<SpanContext>,
        now: Instant,
    ) -> (Option<Arc<Site>>, ResponseOrFuture) {
        let (site, authority, check) = match admission {
            Admission::Misdirected => {
                let response = respond::plain(StatusCode::MISDIRECTED_REQUEST, "unknown host\n");
                let response = respond::with_outcome(response, Outcome::MISDIRECTED);
                return (None, at_once(response));
            }
            Admission::Rejected(site, rejection) => {
                let uri = tracing::enabled!(tracing::Level::DEBUG).then_some(&head.uri);
                let response = at_once(self.reject(&rejection, uri));
                return (Some(site), response);
            }
            Admission::Open(site, authority) => (site, authority, None),
            Admission::Password(site, authority, check) => (site, authority, Some(check)),
        };
        let request = SiteRequest {
            site: site.clone(),
            authority,
            from,
            within,
            now,
        };
        let Some(check) = check else {
            let response = self.handle_site_request(request, head, body);
            return (Some(site), response);
        };
        head.extensions.insert(NeedsPassword);
        if !check.is_forwarded {
            head.headers.remove(header::AUTHORIZATION);
        }
        let proxy = self.clone();
        let answer =
            move |now| proxy.handle_site_request(SiteRequest { now, ..request }, head, body);
        let response = match check.is_known() {
            true => match answer(now) {
                Either::Left(ready) => at_once(for_client_alone(ready.into_inner())),
                Either::Right(future) => later(async move { for_client_alone(future.await) }),
            },
            false => {
                let proxy = self.clone();
                later(async move {
                    match proxy.verify(check, from).await {
                        // The wait may have been long.
                        Ok(()) => for_client_alone(answer(proxy.clock.now()).await),
                        Err(rejection) => proxy.reject(&rejection, None),
                    }
                })
            }
        };
        (Some(site), response)
    }

    /// Verifies credentials of a client at `from` that were not verified before.
    async fn verify(
        &self,
        check: CredentialCheck,
        from: Option<IpAddr>,
    ) -> Result<(), RequestRejection> {
        let realm = check.realm;
        let checks = &self.password_checks;
        let result = checks.check(&self.clock, check.files, check.credentials, from);
        match result.await {
            CheckResult::Right => Ok(()),
            CheckResult::Wrong => Err(RequestRejection::Credentials { realm }),
            CheckResult::TooMany => Err(RequestRejection::Rate),
            CheckResult::Busy => Err(RequestRejection::PasswordsBusy),
        }
    }

    /// The response to `request`, which has this `head` and `body`.
    fn handle_site_request(
        self: &Arc<Self>,
        request: SiteRequest,
        mut head: request::Parts,
        body: Body,
    ) -> ResponseOrFuture {
        let SiteRequest {
            site,
            authority,
            from,
            within,
            now,
        } = request;
        let images = self.cache.encoded_bodies.recompressed_kinds().images;
        image_variant::remove_dated_range(images, &mut head.headers);
        // For the log, if it is enabled.
        let uri = tracing::enabled!(tracing::Level::DEBUG).then(|| head.uri.clone());
        let read_timeout = head.extensions.get::<BodyReadTimeout>().cloned();
        let early = head.extensions.get::<EarlyData>().cloned();
        let hints = self.origin_hints(&head);
        let mut incoming = match IncomingRequest::classify(site, authority, from, head) {
            Ok(incoming) => incoming,
            Err(rejection) => return at_once(self.reject(&rejection, uri.as_ref())),
        };
        incoming.set_span(within);
        incoming.set_origin_hints(hints);
        let head = &incoming.request().head;
        if forward_headers::max_forwards(&head.method, &head.headers) == Some(0) {
            return at_once(respond::with_outcome(
                respond::options(),
                Outcome::NOT_CACHED,
            ));
        }
        if incoming.request().streams.is_grpc
            && let Some(read_timeout) = read_timeout
        {
            read_timeout.lift(); // the two bodies have a timeout together
        }
        if let Some(limits) = incoming.socket() {
            let proxy = self.clone();
            return Either::Right(Box::pin(async move {
                match incoming.into_upstream_request() {
                    Ok(upstream_request) => {
                        websocket::open(&proxy.fetch_context, upstream_request, limits).await
                    }
                    Err(rejection) => proxy.reject(&rejection, uri.as_ref()),
                }
            }));
        }
        if http_body::Body::is_end_stream(&body)
            && let Some(response) = self.fresh_hit(&incoming, now)
        {
            return at_once(response);
        }
        let proxy = self.clone();
        Either::Right(Box::pin(async move {
            match incoming.into_upstream_request() {
                Ok(upstream_request) => {
                    proxy
                        .lookup_and_respond(upstream_request, body, early)
                        .await
                }
                Err(rejection) => proxy.reject(&rejection, uri.as_ref()),
            }
        }))
    }

    /// The sender of the origin's early hints to the client of the request with `head`; `None` if it accepts none.
    fn origin_hints(&self, head: &request::Parts) -> Option<OriginHints> {
        if !self.push_config.early_hints {
            return None;
        }
        let client = head.extensions.get::<EarlyHints>()?;
        if !supports_early_hints(head) {
            return None;
        }
        let hinted = head.extensions.get::<HintedUrls>().cloned();
        Some(OriginHints::new(client.clone(), hinted.unwrap_or_default()))
    }

    fn reject(&self, reason: &RequestRejection, uri: Option<&Uri>) -> Response<Body> {
        let target = uri.map(tracing::field::display);
        tracing::debug!(%reason, target, "refused");
        self.telemetry
            .counters
            .count(CounterFamily::RefusedRequests, reason.name());
        respond::with_outcome(respond::refused(reason), Outcome::REFUSED)
    }

    /// The stored response for `incoming` that needs no request to the origin, if the client's own headers are enough to select it.
    fn fresh_hit(&self, incoming: &IncomingRequest, at: Instant) -> Option<Response<Body>> {
        let request = incoming.request();
        if request.is_unstored() {
            return None;
        }
        let variants = self.cache.memory.lookup(&request.key)?;
        let now = self.clock.wall_now();
        let mut candidates = variants.iter();
        let object = candidates
            .all(|variant| incoming.can_select_variant(variant.stored()))
            .then(|| self.cache.select_fresh(&variants, request, now))??;
        let policy = self.cache.policy(request.origin_kind());
        let stored = object.stored();
        if self.pages.needs_refetch(request, stored, policy, at) {
            return None;
        }
        Some(respond_hit(&self.cache, request, object, now))
    }

    /// The response to `request`. If it is `early`, the origin gets it only once the client's handshake is complete: most origins do not
    /// know `Early-Data`, and could not reject a replay (RFC 8470 §6.1).
    async fn lookup_and_respond(
        &self,
        mut request: ProxyRequest,
        body: Body,
        early: Option<EarlyData>,
    ) -> Response<Body> {
        let is_grpc = request.streams.is_grpc;
        if is_grpc || request.is_unstored() {
            if let Some(early) = early {
                early.handshake().await;
            }
            if is_grpc {
                return self.call(request, body).await;
            }
            return self.bypass(request, body, None).await;
        }
        let is_safe = matches!(request.head.method, Method::GET | Method::HEAD);
        let mut body = body;
        if is_safe && request.expects_continue(&body) && request.proxied.is_none() {
            request.has_content = true;
            return self.bypass(request, body, None).await;
        }
        if is_safe && request.proxied.is_none() && !http_body::Body::is_end_stream(&body) {
            // Over HTTP/2 and HTTP/3 a body may be empty although the head does not end the stream.
            body = match buffer_start(body).await {
                Ok(body) => body,
                Err(_) => return incomplete_request(),
            };
            if !http_body::Body::is_end_stream(&body) {
                // A response that depends on content is not selected by the target alone.
                request.has_content = true;
                return self.bypass(request, body, None).await;
            }
        }
        let policy = self.cache.policy(request.origin_kind());
        let (purges, stored_variants, result, is_promoted, now) = loop {
            let mut purges = self.cache.purge_log.now();
            let mut stored_variants = self.cache.memory.lookup(&request.key);
            let now = self.clock.wall_now();
            let mut result = lookup::lookup(
                policy,
                &request.head,
                stored_variants.as_deref().unwrap_or_default(),
                now,
            );
            let is_promoted = match &result {
                Lookup::Miss(_) => self.fetch_context.promote(&request).await,
                // Another machine may have contacted the origin already.
                Lookup::Revalidate { index, .. } => {
                    let local = stored_variants
                        .as_deref()
                        .map(|variants| variants[*index].stored());
                    self.fetch_context.promote_newer(&request, local, now).await
                }
                _ => false,
            };
            if is_promoted {
                purges = self.cache.purge_log.now();
                stored_variants = self.cache.memory.lookup(&request.key);
                result = lookup::lookup(
                    policy,
                    &request.head,
                    stored_variants.as_deref().unwrap_or_default(),
                    now,
                );
            }
            match early.as_ref().filter(|it| it.is_pending()) {
                Some(early) if needs_origin(&result) => early.handshake().await,
                _ => break (purges, stored_variants, result, is_promoted, now),
            }
        };
        let variants = stored_variants.as_deref().unwrap_or_default();
        let forward = result.forward();
        let stale_entry_at = |index: usize, conditional| {
            let object: Object = variants[index].clone();
            // After a 304 the page would stay as it was rewritten with the facts known at that time.
            let conditional = match self.start_refetch(&request, object.stored(), true) {
                true => Conditional::default(),
                false => conditional,
            };
            StaleEntry {
                object,
                conditional,
                purges,
            }
        };
        match result {
            Lookup::Fresh { index, .. } => {
                if self.start_refetch(&request, variants[index].stored(), false) {
                    let stale_entry = StaleEntry {
                        object: variants[index].clone(),
                        conditional: Conditional::default(),
                        purges,
                    };
                    self.revalidate_in_background(request.clone(), stale_entry);
                }
                if is_promoted {
                    // The resources that it waits for may be on the disk, too.
                    let note = variants[index].stored().note();
                    self.prefetcher
                        .prefetch_pinned(&self.fetch_context, &request, note);
                }
                let response = respond_hit(&self.cache, &request, &variants[index], now);
                respond::with_outcome(response, Outcome::HIT)
            }
            Lookup::Stale {
                index, background, ..
            } => {
                self.revalidate_in_background(request.clone(), stale_entry_at(index, background));
                let response = respond_hit(&self.cache, &request, &variants[index], now);
                respond::with_outcome(response, Outcome::STALE)
            }
            Lookup::Revalidate {
                index, conditional, ..
            } => {
                let stale_entry = stale_entry_at(index, conditional);
                self.fetch_coalesced(request, Some(stale_entry), forward)
                    .await
            }
            Lookup::Miss(_) => self.fetch_coalesced(request, None, forward).await,
            Lookup::Bypass(_) => self.bypass(request, body, forward).await,
            Lookup::OnlyIfCached => {
                let text = "no stored response, and the request has only-if-cached\n";
                let response = respond::plain(StatusCode::GATEWAY_TIMEOUT, text);
                respond::with_outcome(response, Outcome::NOT_CACHED)
            }
        }
    }

    /// Whether the page `stored` is fetched again for `request`, because more facts are known than when it was rewritten.
    fn start_refetch(&self, request: &ProxyRequest, stored: &Stored, is_stale: bool) -> bool {
        let policy = self.cache.policy(request.origin_kind());
        let now = self.clock.now();
        self.pages
            .start_refetch(request, stored, is_stale, policy, now)
    }
}
