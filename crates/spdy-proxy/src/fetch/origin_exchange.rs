//! One exchange with an origin: contacts it, and contacts it again if its response requires that, until there is a response to deliver.
//!
//! ```text
//!  request ──▶ head ── 304 to the proxy's own condition, or any other response ──▶ fetch/process_response.rs
//!   ▲           │   ── none ──▶ the stored response, although it is stale, if that is allowed
//!   │           │
//!   ├───────────┤ a redirect of another host: followed here, up to three times (fetch/follow_redirect.rs)
//!   ├───────────┤ a 304, or a part, of something else than what is stored: the whole is requested
//!   └───────────┘ a whole that cannot be stored, and a client that wants a part: the part is requested (fetch/range_fill/)
//! ```

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use http::{HeaderMap, Method, Request, Response, StatusCode, header, response};
use http_body::Body as _;
use spdy::body::Body;
use spdy_cache::cache_status::CacheStatus;
use spdy_cache::freshness::Times;
use spdy_cache::lookup::Failure;
use spdy_cache::validate::strip_conditions;
use spdy_frame::priority::Priority;
use spdy_net::interim::interim_responses::InterimResponses;
use tokio::sync::mpsc;
use url::Url;

use crate::body::call_streams::CallStreams;
use crate::body::request_body::{
    buffer_message, buffer_start, defer_until_continue, detect_client_abort, with_trailers,
};
use crate::fetch::delivery::ExchangeOutcome;
use crate::fetch::fetch_state::{FetchPurpose, FetchState};
use crate::fetch::origin_spans::FetchSpans;
use crate::fetch::range_fill::credit::RangeFill;
use crate::fetch::range_fill::request_whole::{self, SentRequest};
use crate::fetch::{conditions, follow_redirect, negative, process_response, revalidate};
use crate::request::origin_hints::OriginHints;
use crate::request::proxy_request::ProxyRequest;
use crate::request::status_class::class_of;
use crate::request::trailer_fields;
use crate::response::redirect_chain::RedirectChain;
use crate::response::respond::{self, CACHE_NAME};
use crate::sites::static_folder;
use crate::telemetry::counters::{CounterFamily, Outcome};
use crate::upstream::error::UpstreamError;
use crate::upstream::grpc::{FIRST_MESSAGE_DELAY, GrpcCall};
use crate::upstream::third_party::ThirdPartyLimits;

/// One exchange with an origin.
pub(crate) struct OriginExchange {
    fetch: FetchState,
}

impl OriginExchange {
    pub(crate) fn new(fetch: FetchState) -> Self {
        Self { fetch }
    }

    /// Runs until the origin's response can be delivered. `body` is what the client sends. Adds the time of the origins to `origin`.
    pub(crate) async fn run(mut self, body: Body, origin: &mut Duration) -> ExchangeOutcome {
        if let Some(negative_response) = negative::respond(&mut self.fetch) {
            return ExchangeOutcome::response(negative_response);
        }
        let is_grpc = self.fetch.request.streams.is_grpc;
        let call = is_grpc.then(|| CallStreams::new(&self.fetch.context.clock.runtime));
        let body = if let Some(call) = &call {
            // No more than that: the origin may respond to each message.
            let runtime = &self.fetch.context.clock.runtime;
            let until = runtime.sleep_until(runtime.now() + FIRST_MESSAGE_DELAY);
            match buffer_message(call.request(body), until).await {
                Ok(body) => body,
                Err(_) => return ExchangeOutcome::response(incomplete_request()),
            }
        } else if self.fetch.request.expects_continue(&body) {
            defer_until_continue(body)
        } else {
            match buffer_start(body).await {
                Ok(body) => body,
                Err(_) => return ExchangeOutcome::response(incomplete_request()),
            }
        };
        let body = self.with_allowed_trailers(body);
        let mut fill = request_whole::start(&mut self.fetch);
        let mut headers = self.first_headers(&body);
        let (body, aborted) = detect_client_abort(body);
        let mut body = Some(body);
        let mut redirects = RedirectChain::default();
        let mut at = self.fetch.request.clone();
        let is_background = self.fetch.purpose == FetchPurpose::Cache;
        let (spans, forward) = (
            self.fetch.context.telemetry.spans(),
            self.fetch.forward_reason,
        );
        let mut spans = FetchSpans::of(spans, &self.fetch.request, forward, is_background);
        let idle_timeout = self.fetch.context.origins.upstream().grpc_idle_timeout;
        loop {
            let mut request = Request::new(body.take().unwrap_or_default());
            *request.headers_mut() = headers.clone();
            let exchange = self.send(&at, request, spans.as_mut(), origin);
            let (result, times) = match &call {
                Some(call) => self.until_idle(call, idle_timeout, exchange).await,
                None => exchange.await,
            };
            let (head, body) = match result {
                Ok(response) => response.into_parts(),
                Err(_) if aborted.get() => {
                    return ExchangeOutcome::response(incomplete_request());
                }
                Err(error) => {
                    error.count(&at, &self.fetch.context.telemetry.counters);
                    return ExchangeOutcome::response(self.fail(&error));
                }
            };
            let is_redirect =
                head.status.is_redirection() && head.status != StatusCode::NOT_MODIFIED;
            // Under an alias, the client follows the redirects of the host itself.
            if is_redirect && !at.is_alias() {
                match follow_redirect::follow(&mut self.fetch, &at, &head, times, &mut redirects) {
                    Ok(Some(next)) => {
                        at = next;
                        // The stored response is for the URL of the redirect.
                        strip_conditions(&mut headers);
                        redirects.name(&at.site.rules, &mut headers);
                        continue;
                    }
                    Ok(None) => {}
                    Err(response) => return ExchangeOutcome::Response(response),
                }
            }
            if conditions::is_range_of_other_representation(&self.fetch, &headers, &head) {
                headers.remove(header::RANGE);
                continue;
            }
            let sent_request = SentRequest {
                at: &at,
                headers: &headers,
            };
            if let Some(reason) = request_whole::reject_reason(
                &self.fetch,
                &sent_request,
                &head,
                &body,
                times,
                &redirects,
            ) {
                if let Some(fill) = fill.take() {
                    fill.abort(body.size_hint().exact());
                }
                request_whole::fall_back_to_range(&mut self.fetch, &mut headers, reason);
                continue;
            }
            if head.status == StatusCode::NOT_MODIFIED {
                if !has_condition(&headers) {
                    self.fetch.stop_coalescing();
                    let text = "the origin sent a 304 that matches no stored response\n";
                    let response = respond::plain(StatusCode::BAD_GATEWAY, text);
                    let response = respond::with_outcome(response, Outcome::UNREACHABLE);
                    return ExchangeOutcome::response(response);
                }
                let reason = match revalidate::merge_not_modified(&self.fetch, &head, times) {
                    Some(Err(unmatched)) => Some(unmatched.to_string()),
                    Some(Ok(merged)) if revalidate::changes_rewrite(&self.fetch, &merged) => {
                        Some("the policies of the page have changed".to_owned())
                    }
                    _ => None,
                };
                if let Some(reason) = reason {
                    tracing::debug!(reason, uri = %at.head.uri, "repeating the request without a condition or range");
                    self.fetch.stale_entry = None;
                    strip_conditions(&mut headers);
                    continue;
                }
            }
            if let Some(spans) = spans {
                self.fetch.request.span_context = Some(spans.into_context());
            }
            if let Some(fill) = &mut fill {
                fill.charge(body.size_hint().exact().unwrap_or_default());
            }
            if let Some(call) = call {
                let body = call.response(body, idle_timeout);
                let response = process_response::pass_call(self.fetch, head, body);
                return ExchangeOutcome::response(response);
            }
            return match process_response::process(self.fetch, &at, head, body, times, &redirects) {
                ExchangeOutcome::Delivery(delivery) => {
                    ExchangeOutcome::Delivery(Box::new(delivery.with_range_fill(fill)))
                }
                ExchangeOutcome::Response(response) => {
                    ExchangeOutcome::Response(Box::new(refund_on_read(*response, fill)))
                }
                ExchangeOutcome::Rejected(response, status) => {
                    ExchangeOutcome::Rejected(Box::new(refund_on_read(*response, fill)), status)
                }
            };
        }
    }

    /// `body` with the trailers that the origin may receive. Another host receives none.
    fn with_allowed_trailers(&self, body: Body) -> Body {
        let request = &self.fetch.request;
        let rule = request.path_rule.clone();
        let restrict = request
            .proxied
            .is_none()
            .then_some(move |trailers: &mut HeaderMap| {
                trailer_fields::restrict_request(trailers, rule.as_deref());
            });
        with_trailers(body, restrict)
    }

    /// The fields of the first request, which has this body.
    fn first_headers(&self, body: &Body) -> HeaderMap {
        let mut headers = self.fetch.request.origin_headers();
        if let Some(entry) = &self.fetch.stale_entry {
            entry.conditional.apply(&mut headers);
        } else if self.fetch.leader.is_some() {
            // Other requests need the full response.
            strip_conditions(&mut headers);
        }
        if body.size_hint().exact() == Some(0) {
            // Without content, the client holds nothing back (RFC 9110 §10.1.1).
            headers.remove(header::EXPECT);
        }
        // Not the length that the client stated: an origin would wait for that many bytes, and read the next request as content.
        match body.size_hint().exact() {
            // Some origins respond with 411 if a method that expects content has no length (RFC 9110 §8.6).
            Some(0) if !needs_content_length_zero(&self.fetch.request.head.method) => {
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
        (*request.method_mut(), *request.uri_mut()) = (at.head.method.clone(), at.origin_uri());
        if at.streams.is_grpc {
            request.extensions_mut().insert(GrpcCall);
        }
        let span = spans.map(|spans| spans.start_request(at, request.headers_mut()));
        let requested = self.fetch.context.clock.wall_now();
        let sent_at = self.fetch.context.clock.now();
        let priority = self.priority();
        let result = match self.hints_of(at) {
            None => self.request_origin(at, request, priority).await,
            Some((hints, page)) => {
                let (listens, heads) = InterimResponses::channel();
                request.extensions_mut().insert(listens);
                let response = self.request_origin(at, request, priority);
                self.pass_hints(at, hints, &page, heads, response).await
            }
        };
        *origin += self.fetch.context.clock.now() - sent_at;
        if let Some(span) = span {
            let outcome = result.as_ref();
            span.finish(outcome.map(|response| (response.status(), response.version())));
        }
        if let Ok(response) = &result {
            let class = class_of(response.status());
            self.fetch
                .context
                .telemetry
                .counters
                .count(CounterFamily::Origins, class);
        }
        let times = Times {
            requested,
            received: self.fetch.context.clock.wall_now(),
        };
        (result, times)
    }

    /// The output of `exchange`, unless nothing of `call` passes for `timeout`.
    async fn until_idle(
        &self,
        call: &CallStreams,
        timeout: Duration,
        exchange: impl Future<Output = (Result<Response<Body>, UpstreamError>, Times)>,
    ) -> (Result<Response<Body>, UpstreamError>, Times) {
        match select(pin!(exchange), pin!(call.idle(timeout))).await {
            Either::Left((exchanged, _)) => exchanged,
            Either::Right(((), _)) => {
                let now = self.fetch.context.clock.wall_now();
                let times = Times {
                    requested: now,
                    received: now,
                };
                (Err(UpstreamError::CallIdle(timeout)), times)
            }
        }
    }

    /// The sender of early hints to the client of the request for `at`, and its URL; `None` if no client accepts them.
    fn hints_of<'a>(&self, at: &'a ProxyRequest) -> Option<(&'a OriginHints, Url)> {
        let is_for_client = self.fetch.purpose == FetchPurpose::Client && at.proxied.is_none();
        let hints = at.origin_hints.as_ref().filter(|_| is_for_client)?;
        Some((hints, at.client_url()?))
    }

    /// The output of `response`. Passes the early hints among the interim `heads` that arrive before it.
    async fn pass_hints<T>(
        &self,
        at: &ProxyRequest,
        hints: &OriginHints,
        page: &Url,
        mut heads: mpsc::Receiver<response::Parts>,
        response: impl Future<Output = T>,
    ) -> T {
        let rules = &at.site.rules;
        let is_rewritten = !at.rewriting_disabled && !rules.is_dry_run();
        let facts = self.fetch.observations();
        let mut response = pin!(response);
        loop {
            let head = match select(response.as_mut(), pin!(heads.recv())).await {
                Either::Left((response, _)) => return response,
                Either::Right((Some(head), _)) => head,
                Either::Right((None, _)) => break,
            };
            let path_rule = at.path_rule.as_deref();
            hints.pass(
                &head,
                page,
                path_rule,
                is_rewritten.then_some(&**rules),
                &facts,
            );
        }
        response.await
    }

    fn priority(&self) -> Priority {
        match self.fetch.request.arrival {
            _ if self.fetch.purpose == FetchPurpose::Cache => Priority::LOWEST,
            Some(arrival) => arrival.priority,
            None => Priority::HIGHEST,
        }
    }

    /// The response when there is none from an origin.
    pub(crate) fn fail(mut self, error: &UpstreamError) -> Response<Body> {
        tracing::debug!(%error, uri = %self.fetch.request.head.uri, "request to the origin failed");
        let failure = match error {
            UpstreamError::Overloaded(status) => Failure::Status(*status),
            _ => Failure::Unreachable,
        };
        if let Some(stale) = self.fetch.stale_on_error(failure) {
            return stale;
        }
        negative::record_failure(&self.fetch, error);
        let mut response = respond::for_upstream_error(&self.fetch.request, error);
        let headers = response.headers_mut();
        CacheStatus::forwarded(CACHE_NAME, self.fetch.forward_reason).append_to(headers);
        respond::with_outcome(response, Outcome::UNREACHABLE)
    }

    /// Sends a request to the origin of `request`.
    async fn request_origin(
        &self,
        proxy_request: &ProxyRequest,
        request: Request<Body>,
        priority: Priority,
    ) -> Result<Response<Body>, UpstreamError> {
        let (clock, telemetry) = (&self.fetch.context.clock, &self.fetch.context.telemetry);
        let rule = proxy_request.origin_rule();
        if let Some(folder) = rule.and_then(|rule| rule.folder.as_ref()) {
            let target = request.uri().path_and_query();
            let target = target.map_or("/", |target| target.as_str());
            let path = request.uri().path();
            let index = format!("{path}{}", static_folder::INDEX);
            let paths = &proxy_request.site.paths;
            if path.ends_with('/') && paths.is_more_restricted(&index, path) {
                // The client may not get the file without the checks of its own path.
                return Ok(static_folder::redirect(&index));
            }
            let (method, headers, now) = (request.method(), request.headers(), clock.wall_now());
            return Ok(folder.respond(method, target, headers, now).await);
        }
        if proxy_request.is_kept_from_origin() {
            return Ok(static_folder::missing());
        }
        let (upstream, begun) = (self.fetch.context.origins.upstream(), clock.now());
        let result = match &proxy_request.proxied {
            None => {
                upstream
                    .fetch_own(
                        &proxy_request.site,
                        proxy_request.origin_rule(),
                        request,
                        priority,
                    )
                    .await
            }
            Some((proxied, _)) => {
                let rules = &proxy_request.site.rules;
                let host_limits = ThirdPartyLimits {
                    site: rules.site_origin(),
                    limits: rules.limits(proxied),
                    counters: &telemetry.counters,
                };
                upstream
                    .fetch_third_party(&host_limits, request, priority)
                    .await
            }
        };
        if let Ok(response) = &result {
            let took = clock.now() - begun;
            telemetry.latency.record(proxy_request.origin_kind(), took);
            if proxy_request.proxied.is_none() {
                let counters = &proxy_request.site.counters;
                counters.record_origin_response(response.status(), took);
            }
        }
        for (limit, met) in [
            ("retry_percent", upstream.take_retries_withheld()),
            ("connections", upstream.take_broken_off()),
        ] {
            if met > 0 {
                telemetry.counters.add(CounterFamily::Limits, limit, met);
            }
        }
        result
    }
}

/// The response to an incomplete request.
pub(crate) fn incomplete_request() -> Response<Body> {
    let text = "the request is incomplete or invalid\n";
    let response = respond::plain(StatusCode::BAD_REQUEST, text);
    respond::with_outcome(response, Outcome::REFUSED)
}

/// `response`; what the client reads of it counts for the credit of `fill`.
fn refund_on_read(response: Response<Body>, fill: Option<RangeFill>) -> Response<Body> {
    match fill {
        Some(fill) => response.map(|body| fill.refund_on_read(body)),
        None => response,
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
