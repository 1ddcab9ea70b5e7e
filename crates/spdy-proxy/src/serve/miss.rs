//! Handles requests without a usable stored response: each leads a fetch, or shares the fetch of another request.
//!
//! ```text
//!  fetch_coalesced ── Leader ──────▶ fetch (fetch/foreground.rs), which shares its response
//!                  ── Follower ────▶ the leader's response; becomes the leader after a while, one at a time; 504 in the end
//!                  ── Independent ─▶ fetch
//!  bypass ─────────────────────────▶ fetch, past the cache
//! ```

use http::{HeaderValue, Method, Response, StatusCode, header};
use http_body::Body as _;
use spdy::body::Body;
use spdy_cache::cache_status::Forward;
use spdy_cache::lookup::{self, Failure};
use spdy_cache::validate::strip_conditions;
use spdy_net::body_wrapper::with_guard;

use crate::cache::coalescer::{CoalesceRole, WaitOutcome};
use crate::cache::shared_response::{CoalesceKey, FetchLeader};
use crate::fetch::background::BackgroundFetch;
use crate::fetch::foreground::ForegroundFetch;
use crate::fetch::range_fill::request_whole;
use crate::proxy::Proxy;
use crate::request::proxy_request::ProxyRequest;
use crate::request::status_class::is_overloaded;
use crate::response::from_stored::{respond_hit, respond_shared};
use crate::response::respond;
use crate::response::stale_entry::{StaleEntry, respond_stale_on_error};
use crate::telemetry::counters::{CounterFamily, Outcome};
use crate::upstream::error::UpstreamError;

impl Proxy {
    /// Fetches a response, or shares one that another request fetches.
    pub(crate) async fn fetch_coalesced(
        &self,
        request: ProxyRequest,
        stale_entry: Option<StaleEntry>,
        forward: Option<Forward>,
    ) -> Response<Body> {
        let policy = self.cache.policy(request.origin_kind());
        let forward = forward.unwrap_or(Forward::Miss);
        let until = self.clock.now() + self.origins.upstream().head_timeout;
        let since = self.clock.wall_now();
        let mut coalesce_key = CoalesceKey::of(&request.key);
        let mut may_rejoin = true;
        loop {
            // The previous leader may have found that the whole response is not stored.
            if !lookup::may_join_fetch(policy, &request.head)
                && !request_whole::should_fill(&self.fetch_context, &request)
            {
                let context = &self.fetch_context;
                return match request_whole::respond_range_of_shared(context, &request, forward) {
                    Some(part) => part,
                    None => self.fetch(request, stale_entry, None, forward).await,
                };
            }
            let role = self
                .cache
                .coalescer
                .join(coalesce_key.clone(), self.clock.now());
            let outcome = match role {
                CoalesceRole::Leader(leader) => WaitOutcome::Promoted(leader),
                CoalesceRole::Independent => WaitOutcome::Private,
                CoalesceRole::Follower(follower) => {
                    let outcome = follower.wait(&self.clock.runtime, until).await;
                    if matches!(outcome, WaitOutcome::Promoted(_) | WaitOutcome::TimedOut) {
                        self.telemetry
                            .counters
                            .count(CounterFamily::Limits, "lock_age_s");
                    }
                    outcome
                }
            };
            let leader = match outcome {
                WaitOutcome::Promoted(leader) => Some(leader),
                WaitOutcome::Private => None,
                WaitOutcome::LeaderEnded => continue,
                WaitOutcome::Failed(failure) => {
                    let unpurged = stale_entry
                        .as_ref()
                        .filter(|stale_entry| stale_entry.is_unpurged(&self.cache, &request.key));
                    let now = self.clock.wall_now();
                    let stale =
                        respond_stale_on_error(&self.cache, &request, unpurged, failure, now);
                    if let Some(stale) = stale {
                        return stale;
                    }
                    match failure {
                        Failure::Status(status) if is_overloaded(status) => {
                            let error = UpstreamError::Overloaded(status);
                            return self.fail_after_wait(request, stale_entry, forward, &error);
                        }
                        _ => continue,
                    }
                }
                WaitOutcome::TimedOut => {
                    return self.fail_after_wait(
                        request,
                        stale_entry,
                        forward,
                        &UpstreamError::CoalesceTimeout,
                    );
                }
                WaitOutcome::Shared(shared) => {
                    let now = self.clock.wall_now();
                    if lookup::may_share_with(policy, &shared.stored, &request.head, since, now)
                        && let Some(response) =
                            respond_shared(&self.cache, &request, &shared, now, forward)
                    {
                        return respond::with_outcome(response, Outcome::COALESCED);
                    }
                    // The shared response is of another variant. Requests for this variant share a fetch, too.
                    let other = coalesce_key.for_other_variant(&shared, &request.head.headers);
                    match other {
                        Some(other) => {
                            coalesce_key = other;
                            continue;
                        }
                        // The shared response is stale for this request, and for all later ones.
                        None if shared.is_stale(now) && may_rejoin => {
                            may_rejoin = false;
                            self.cache.coalescer.supersede(&coalesce_key, &shared);
                            continue;
                        }
                        None => None,
                    }
                }
            };
            // The previous leader may have shared a response and finished since the lookup.
            if leader.is_some()
                && let Some(object) = self.cache.lookup_fresh(&request)
                && !stale_entry
                    .as_ref()
                    .is_some_and(|stale_entry| stale_entry.object.is(&object))
            {
                let response = respond_hit(&self.cache, &request, &object, self.clock.wall_now());
                return respond::with_outcome(response, Outcome::HIT);
            }
            return self.fetch(request, stale_entry, leader, forward).await;
        }
    }

    /// The response when the shared fetch had no response in time, or none that can be used.
    fn fail_after_wait(
        &self,
        request: ProxyRequest,
        stale_entry: Option<StaleEntry>,
        forward: Forward,
        error: &UpstreamError,
    ) -> Response<Body> {
        ForegroundFetch::new(&self.fetch_context, request, stale_entry, None, forward).fail(error)
    }

    async fn fetch(
        &self,
        request: ProxyRequest,
        stale_entry: Option<StaleEntry>,
        leader: Option<FetchLeader>,
        forward: Forward,
    ) -> Response<Body> {
        if let Some(refused) = self.reject_over_rate(&request) {
            return refused;
        }
        self.prefetcher.record_accept(&request);
        let fetch =
            ForegroundFetch::new(&self.fetch_context, request, stale_entry, leader, forward);
        fetch.run(Body::empty()).await
    }

    /// Forwards a request past the cache.
    pub(crate) async fn bypass(
        &self,
        request: ProxyRequest,
        body: Body,
        forward: Option<Forward>,
    ) -> Response<Body> {
        // No origin is contacted for a file.
        if !request.is_for_folder()
            && let Some(refused) = self.reject_over_rate(&request)
        {
            return refused;
        }
        let forward = forward.unwrap_or(Forward::Bypass);
        let permit = match request.is_for_folder() {
            true => {
                let timeout = self.clock.now() + self.origins.upstream().queue_timeout;
                let timeout = self.clock.runtime.sleep_until(timeout);
                let limit = &self.client_limits.static_responses;
                match limit.acquire(request.from, timeout).await {
                    Some(permit) => Some(permit),
                    None => return self.too_many_files(),
                }
            }
            false => None,
        };
        let fetch = ForegroundFetch::new(&self.fetch_context, request, None, None, forward);
        let response = fetch.run(body).await;
        response.map(|body| match permit {
            Some(permit) if !body.is_end_stream() => with_guard(body, permit, |_| {}),
            _ => body,
        })
    }

    /// Passes a gRPC call on.
    pub(crate) async fn call(&self, request: ProxyRequest, body: Body) -> Response<Body> {
        if let Some(refused) = self.reject_over_rate(&request) {
            return refused;
        }
        let per_client = self.origins.upstream().calls_per_client;
        let calls = &self.client_limits.calls;
        let Some(call) = calls.begin(request.from, per_client, &self.clock.runtime) else {
            let counters = &self.telemetry.counters;
            counters.count(CounterFamily::Limits, "grpc_calls_per_client");
            let response = respond::call_refused("too many calls of this client");
            return respond::with_outcome(response, Outcome::RATE_LIMITED);
        };
        let context = &self.fetch_context;
        let fetch = ForegroundFetch::new(context, request, None, None, Forward::Bypass);
        call.until_end_of(fetch.run(body).await)
    }

    /// The response to a client that reads too many files at a time.
    fn too_many_files(&self) -> Response<Body> {
        let counters = &self.telemetry.counters;
        counters.count(CounterFamily::Limits, "folder");
        let text = "too many files are being sent to this address; try again soon\n";
        let mut response = respond::plain(StatusCode::SERVICE_UNAVAILABLE, text);
        let soon = HeaderValue::from_static("1");
        response.headers_mut().insert(header::RETRY_AFTER, soon);
        respond::with_outcome(response, Outcome::RATE_LIMITED)
    }

    /// The response to a client that causes too many requests to origins; `None` if it does not.
    fn reject_over_rate(&self, request: &ProxyRequest) -> Option<Response<Body>> {
        let (now, counters) = (self.clock.now(), &self.telemetry.counters);
        self.client_limits.reject_over_rate(request, now, counters)
    }

    /// Revalidates in the background a stored response that was just served, unless a fetch for it is under way.
    pub(crate) fn revalidate_in_background(&self, mut request: ProxyRequest, stale: StaleEntry) {
        let coalesce_key = CoalesceKey::of(&request.key);
        let CoalesceRole::Leader(leader) =
            self.cache.coalescer.join(coalesce_key, self.clock.now())
        else {
            return;
        };
        // This client's conditions are its own, and HEAD could refresh only a response that has not changed.
        strip_conditions(&mut request.head.headers);
        request.head.method = Method::GET;
        let stale = Some(stale);
        let fetch =
            BackgroundFetch::new(&self.fetch_context, request, stale, leader, Forward::Stale);
        self.clock.runtime.spawn(Box::pin(async move {
            let _ = fetch.run().await;
        }));
    }
}
