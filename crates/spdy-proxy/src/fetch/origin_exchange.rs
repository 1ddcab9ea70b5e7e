//! One fetch: contacts the origin, and contacts it again if its response requires that, until there is a response to process.
//!
//! ```text
//!  ask ──▶ head ── 304, as it was asked ──▶ judged (fetch/process_response.rs), as is every other answer
//!   ▲        │  ── none ────────────────▶ what is kept, though stale, if that is allowed
//!   │        │
//!   ├────────┤ a redirect of another host: followed here, up to three times
//!   ├────────┤ a 304, or a part, of something else than is kept: asked for the whole
//!   └────────┘ a whole that cannot be kept, for who wants a part: asked for the part (fetch/range_fill.rs)
//! ```

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body::Body as _;
use spdy::body::Body;
use spdy_cache::cache_status::{CacheStatus, Forward};
use spdy_cache::freshness::Times;
use spdy_cache::key::Key;
use spdy_cache::lookup::Failure;
use spdy_cache::memory_store::Object;
use spdy_cache::validate::{Conditional, strip_conditions};
use spdy_frame::priority::Priority;

use crate::body::request_body::{buffer_start, defer_until_continue, detect_client_abort};
use crate::cache::purge::PurgeSnapshot;
use crate::cache::shared_response::FetchLeader;
use crate::fetch::origin_spans::FetchSpans;
use crate::fetch::redirect_chain::RedirectChain;
use crate::proxy::{CACHE_NAME, Proxy};
use crate::request::proxy_request::{ProxyRequest, RequestRejection};
use crate::request::status_class::class_of;
use crate::response::respond;
use crate::response::server_timing::OriginDuration;
use crate::telemetry::counters::{CounterFamily, Outcome};
use crate::upstream::error::UpstreamError;

/// A stored response that may still be valid.
#[derive(Clone, Debug)]
pub(crate) struct StaleEntry {
    pub(crate) object: Object,
    /// How to revalidate it.
    pub(crate) conditional: Conditional,
    /// The count of purges at the time of the lookup.
    pub(crate) purges: u64,
}

impl StaleEntry {
    /// Whether no purge has matched it since the lookup. A request that waited through a purge must not get what was purged.
    pub(crate) fn is_unpurged(&self, proxy: &Proxy, key: &Key) -> bool {
        !proxy.purges.purged_since(key, self.purges)
    }
}

/// One fetch.
pub(crate) struct Fetch {
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) wanted: ProxyRequest,
    /// The stored response that the request revalidates.
    pub(crate) known: Option<StaleEntry>,
    /// Present if other requests may wait for this fetch.
    pub(crate) leader: Option<FetchLeader>,
    /// Why the stored response is not enough.
    pub(crate) forward_reason: Forward,
    /// A client waits for the response; otherwise it is fetched for the cache only.
    pub(crate) is_wanted_now: bool,
    /// The state of purges when it began: what was purged since is not stored.
    pub(crate) since: PurgeSnapshot,
}

/// The result of a fetch.
pub(crate) enum FetchOutcome {
    /// The response for the request that waits.
    Response(Box<Response<Body>>),
    /// No client waits.
    Background(PrefetchResult),
}

/// The result of a fetch that no client waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PrefetchResult {
    /// It is stored, and fresh for a while: the next request needs no origin.
    Stored,
    /// It may not be stored, or it is stale already.
    None,
    /// The origin failed.
    Failed,
}

impl FetchOutcome {
    pub(crate) fn answer(response: Response<Body>, outcome: Outcome) -> Self {
        Self::Response(Box::new(respond::with_outcome(response, outcome)))
    }
}

impl Fetch {
    /// A fetch that begins now, with a client that waits for the response.
    pub(crate) fn new(
        proxy: &Arc<Proxy>,
        wanted: ProxyRequest,
        known: Option<StaleEntry>,
        leader: Option<FetchLeader>,
        forward: Forward,
    ) -> Self {
        let since = proxy.since();
        Self {
            proxy: proxy.clone(),
            since,
            known: known.filter(|known| known.is_unpurged(proxy, &wanted.key)),
            wanted,
            leader,
            forward_reason: forward,
            is_wanted_now: true,
        }
    }

    /// The same for the cache alone.
    pub(crate) fn for_cache(self) -> Self {
        Self {
            is_wanted_now: false,
            ..self
        }
    }

    /// Runs until the response has begun; the rest continues by itself. `body` is what the client sends.
    pub(crate) async fn run(self, body: Body) -> FetchOutcome {
        let mut origin = Duration::ZERO;
        let mut got = self.ask(body, &mut origin).await;
        if let FetchOutcome::Response(response) = &mut got
            && !origin.is_zero()
        {
            response.extensions_mut().insert(OriginDuration(origin));
        }
        got
    }

    /// The same; adds the time of the origins to `origin`.
    async fn ask(mut self, body: Body, origin: &mut Duration) -> FetchOutcome {
        if let Some(dead) = self.negative_hit() {
            return dead;
        }
        let body = match self.wanted.expects_continue(&body) {
            true => defer_until_continue(body),
            false => match buffer_start(body).await {
                Ok(body) => body,
                Err(_) => return FetchOutcome::Response(Box::new(Self::incomplete_request())),
            },
        };
        let mut fill = self.start();
        let mut headers = self.first_headers(&body);
        let (body, broken) = detect_client_abort(body);
        let mut body = Some(body);
        let mut followed = RedirectChain::default();
        let mut at = self.wanted.clone();
        let is_background = !self.is_wanted_now;
        let spans = self.proxy.spans();
        let mut spans = FetchSpans::of(spans, &self.wanted, self.forward_reason, is_background);
        loop {
            let mut request = Request::new(body.take().unwrap_or_default());
            *request.headers_mut() = headers.clone();
            let asking = self.send(&at, request, spans.as_mut(), origin);
            let (answered, times) = asking.await;
            let (head, body) = match answered {
                Ok(response) => response.into_parts(),
                Err(_) if broken.get() => {
                    return FetchOutcome::Response(Box::new(Self::incomplete_request()));
                }
                Err(error) => {
                    self.proxy.count_failure(&error);
                    return self.fail(&error);
                }
            };
            let is_redirect =
                head.status.is_redirection() && head.status != StatusCode::NOT_MODIFIED;
            // Under an alias, the client follows the redirects of the host itself.
            if is_redirect && !at.is_alias() {
                match self.follow_redirect(&at, &head, times, &mut followed) {
                    Ok(Some(next)) => {
                        at = next;
                        // The stored response is for the URL of the redirect.
                        strip_conditions(&mut headers);
                        followed.name(&at.site.rules, &mut headers);
                        continue;
                    }
                    Ok(None) => {}
                    Err(got) => return *got,
                }
            }
            if self.is_range_of_other_representation(&headers, &head) {
                headers.remove(header::RANGE);
                continue;
            }
            if let Some(why) = self.reject_reason(&at, &headers, &head, &body, times, &followed) {
                if let Some(fill) = fill.take() {
                    fill.abort(body.size_hint().exact());
                }
                self.fall_back_to_range(&mut headers, why);
                continue;
            }
            if head.status == StatusCode::NOT_MODIFIED {
                if !has_condition(&headers) {
                    self.stop_coalescing();
                    let text = "the origin answered a question that was not asked\n";
                    let response = respond::plain(StatusCode::BAD_GATEWAY, text);
                    return FetchOutcome::answer(response, Outcome::UNREACHABLE);
                }
                let why = match self.merge(&head, times) {
                    Some(Err(unmatched)) => Some(unmatched.to_string()),
                    Some(Ok(merged)) if self.changes_rewrite(&merged) => {
                        Some("its policies have changed".to_owned())
                    }
                    _ => None,
                };
                if let Some(why) = why {
                    tracing::debug!(why, uri = %at.ask.uri, "asking again, for the whole");
                    self.known = None;
                    strip_conditions(&mut headers);
                    continue;
                }
            }
            if let Some(spans) = spans {
                self.wanted.span_context = Some(spans.into_context());
            }
            if let Some(fill) = &mut fill {
                fill.charge(body.size_hint().exact().unwrap_or_default());
            }
            return match (self.answered(&at, head, body, times, &followed), fill) {
                (FetchOutcome::Response(response), Some(fill)) => {
                    FetchOutcome::Response(Box::new(response.map(|body| fill.refund_on_read(body))))
                }
                (got, _) => got,
            };
        }
    }

    /// The fields of the first request, which has this body.
    fn first_headers(&self, body: &Body) -> HeaderMap {
        let mut headers = self.wanted.origin_headers();
        if let Some(known) = &self.known {
            known.conditional.apply(&mut headers);
        } else if self.leader.is_some() {
            // Other requests will want the whole of it.
            strip_conditions(&mut headers);
        }
        if body.size_hint().exact() == Some(0) {
            // Without content there is nothing to wait with (RFC 9110 §10.1.1).
            headers.remove(header::EXPECT);
        }
        // Not the length that the client stated: an origin would wait for that, and take the next request for content.
        match body.size_hint().exact() {
            // Some origins respond with 411 if a method that expects content has no length (RFC 9110 §8.6).
            Some(0) if !needs_content_length_zero(&self.wanted.ask.method) => {
                headers.remove(header::CONTENT_LENGTH);
            }
            Some(len) => _ = headers.insert(header::CONTENT_LENGTH, len.into()),
            None => {}
        }
        headers
    }

    /// Sends one request for `at`, the place where redirects led. Adds the time that this took to `origin`.
    async fn send(
        &self,
        at: &ProxyRequest,
        mut request: Request<Body>,
        spans: Option<&mut FetchSpans>,
        origin: &mut Duration,
    ) -> (Result<Response<Body>, UpstreamError>, Times) {
        (*request.method_mut(), *request.uri_mut()) = (at.ask.method.clone(), at.ask.uri.clone());
        let span = spans.map(|spans| spans.ask(at, request.headers_mut()));
        let requested = self.proxy.wall_now();
        let asked = self.proxy.runtime.now();
        let priority = self.priority();
        let answered = self.proxy.request_origin(at, request, priority).await;
        *origin += self.proxy.runtime.now() - asked;
        if let Some(span) = span {
            let told = answered.as_ref();
            span.answered(told.map(|response| (response.status(), response.version())));
        }
        if let Ok(response) = &answered {
            let class = class_of(response.status());
            self.proxy.counters.count(CounterFamily::Origins, class);
        }
        let times = Times {
            requested,
            received: self.proxy.wall_now(),
        };
        (answered, times)
    }

    /// The response to an incomplete request.
    pub(crate) fn incomplete_request() -> Response<Body> {
        let text = "the request ended before its end, or cannot be read\n";
        let response = respond::plain(StatusCode::BAD_REQUEST, text);
        respond::with_outcome(response, Outcome::REFUSED)
    }

    fn priority(&self) -> Priority {
        match self.wanted.arrival {
            _ if !self.is_wanted_now => Priority::LOWEST,
            Some(arrival) => arrival.priority,
            None => Priority::HIGHEST,
        }
    }

    /// No other request may wait for this key.
    pub(crate) fn stop_coalescing(&mut self) {
        if let Some(leader) = self.leader.take() {
            leader.mark_private(self.proxy.runtime.now());
        }
    }

    /// The response when a rule forbids to continue.
    pub(crate) fn refused(&self, why: &RequestRejection) -> FetchOutcome {
        self.proxy
            .counters
            .count(CounterFamily::RefusedRequests, why.name());
        FetchOutcome::answer(respond::refused(why), Outcome::REFUSED)
    }

    /// The response when there is none from an origin.
    pub(crate) fn fail(mut self, error: &UpstreamError) -> FetchOutcome {
        tracing::debug!(%error, uri = %self.wanted.ask.uri, "no answer from an origin");
        let failure = match error {
            UpstreamError::Overloaded(status) => Failure::Status(*status),
            _ => Failure::Unreachable,
        };
        if let Some(stale) = self.stale_on_error(failure) {
            return stale;
        }
        self.record_failure(error);
        let mut response = respond::for_upstream_error(&self.wanted, error);
        let headers = response.headers_mut();
        CacheStatus::forwarded(CACHE_NAME, self.forward_reason).append_to(headers);
        FetchOutcome::answer(response, Outcome::UNREACHABLE)
    }

    /// The stored response, although it is stale, if the origin's failure allows it. Followers are informed of the failure, too.
    pub(crate) fn stale_on_error(&mut self, failure: Failure) -> Option<FetchOutcome> {
        let known = self.known.as_ref();
        let stale = self
            .proxy
            .respond_stale_on_error(&self.wanted, known, failure)?;
        if let Some(leader) = self.leader.take() {
            leader.fail(failure);
        }
        Some(FetchOutcome::answer(stale, Outcome::STALE_ON_ERROR))
    }
}

/// Whether a request of this method states a length of 0 if it has no content.
fn needs_content_length_zero(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

/// Whether a 304 may answer a request with these fields.
fn has_condition(headers: &HeaderMap) -> bool {
    headers.contains_key(header::IF_NONE_MATCH) || headers.contains_key(header::IF_MODIFIED_SINCE)
}
