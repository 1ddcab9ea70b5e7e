//! Handles requests that the cache cannot answer: each leads a fetch, or shares the fetch of another request.
//!
//! ```text
//!  board ── Leader ───▶ fetch (fetch/origin_exchange.rs), which lands what others may have
//!        ── Follower ─▶ what a leader shares; leads himself after a while, one at a time; 504 in the end
//!        ── Alone ────▶ fetch
//!  pass ──────────────▶ fetch, by what is kept
//! ```

use std::sync::Arc;
use std::time::SystemTime;

use http::{HeaderValue, Method, Response, StatusCode, header};
use spdy::body::Body;
use spdy_cache::cache_status::{CacheStatus, Forward};
use spdy_cache::lookup::{self, Failure, may_serve_on_error};
use spdy_cache::validate::strip_conditions;

use crate::cache::coalescer::{CoalesceRole, WaitOutcome};
use crate::cache::shared_response::{CoalesceKey, FetchLeader, SharedBodySource, SharedResponse};
use crate::fetch::origin_exchange::{Fetch, FetchOutcome, StaleEntry};
use crate::proxy::Proxy;
use crate::request::proxy_request::ProxyRequest;
use crate::request::status_class::is_overloaded;
use crate::response::respond::CACHE_NAME;
use crate::response::respond::{self, StoredCheck};
use crate::telemetry::counters::{CounterFamily, Outcome};
use crate::upstream::error::UpstreamError;

impl Proxy {
    /// Fetches a response, or shares one that another request fetches.
    pub(crate) async fn fetch_coalesced(
        self: &Arc<Self>,
        wanted: ProxyRequest,
        known: Option<StaleEntry>,
        forward: Option<Forward>,
    ) -> Response<Body> {
        let policy = self.policy(wanted.origin_kind());
        let forward = forward.unwrap_or(Forward::Miss);
        let until = self.runtime.now() + self.upstream().head_timeout;
        let since = self.wall_now();
        let mut berth = CoalesceKey::of(&wanted.key);
        let mut may_board_again = true;
        loop {
            // The previous leader may have found that the whole response is not stored.
            if !lookup::may_join_fetch(policy, &wanted.ask) && !self.should_fill(&wanted) {
                return match self.respond_range_of_shared(&wanted, forward) {
                    Some(part) => part,
                    None => self.fetch(wanted, known, None, forward).await,
                };
            }
            let seat = self.coalescer.join(berth.clone(), self.runtime.now());
            let waited = match seat {
                CoalesceRole::Leader(leader) => WaitOutcome::Promoted(leader),
                CoalesceRole::Independent => WaitOutcome::Private,
                CoalesceRole::Follower(follower) => {
                    let waited = follower.wait(&self.runtime, until).await;
                    if matches!(waited, WaitOutcome::Promoted(_) | WaitOutcome::TimedOut) {
                        self.counters.count(CounterFamily::Limits, "lock_age_s");
                    }
                    waited
                }
            };
            let lead = match waited {
                WaitOutcome::Promoted(leader) => Some(leader),
                WaitOutcome::Private => None,
                WaitOutcome::LeaderGone => continue,
                WaitOutcome::Failed(failure) => {
                    let standing = known
                        .as_ref()
                        .filter(|known| known.is_unpurged(self, &wanted.key));
                    if let Some(stale) = self.respond_stale_on_error(&wanted, standing, failure) {
                        return stale;
                    }
                    match failure {
                        Failure::Status(status) if is_overloaded(status) => {
                            let error = UpstreamError::Overloaded(status);
                            return self.fail_after_wait(wanted, known, forward, &error);
                        }
                        _ => continue,
                    }
                }
                WaitOutcome::TimedOut => {
                    return self.fail_after_wait(
                        wanted,
                        known,
                        forward,
                        &UpstreamError::CoalesceTimeout,
                    );
                }
                WaitOutcome::Shared(landing) => {
                    let now = self.wall_now();
                    if lookup::may_share_with(policy, &landing.stored, &wanted.ask, since, now)
                        && let Some(response) = self.respond_shared(&wanted, &landing, now, forward)
                    {
                        return respond::with_outcome(response, Outcome::COALESCED);
                    }
                    // The shared response is of another variant. Requests for this variant share a fetch, too.
                    let other = berth.for_other_variant(&landing, &wanted.ask.headers);
                    match other {
                        Some(other) => {
                            berth = other;
                            continue;
                        }
                        // It came too late for this request, and is too late for all later ones.
                        None if landing.is_stale(now) && may_board_again => {
                            may_board_again = false;
                            self.coalescer.supersede(&berth, &landing);
                            continue;
                        }
                        None => None,
                    }
                }
            };
            // The previous leader may have shared a response and finished since the lookup.
            if lead.is_some()
                && let Some(object) = self.lookup_fresh(&wanted)
                && !known.as_ref().is_some_and(|known| known.object.is(&object))
            {
                let response = self.respond_hit(&wanted, &object, self.wall_now());
                return respond::with_outcome(response, Outcome::HIT);
            }
            return self.fetch(wanted, known, lead, forward).await;
        }
    }

    /// The response when the shared fetch had no response in time, or none that can be used.
    fn fail_after_wait(
        self: &Arc<Self>,
        wanted: ProxyRequest,
        known: Option<StaleEntry>,
        forward: Forward,
        error: &UpstreamError,
    ) -> Response<Body> {
        let fetch = Fetch::new(self, wanted, known, None, forward);
        match fetch.fail(error) {
            FetchOutcome::Response(response) => *response,
            FetchOutcome::Background(_) => unreachable!("who waits gets an answer"),
        }
    }

    /// The stored response for `wanted`, although it is stale, if the origin's failure allows it.
    pub(crate) fn respond_stale_on_error(
        &self,
        wanted: &ProxyRequest,
        known: Option<&StaleEntry>,
        failure: Failure,
    ) -> Option<Response<Body>> {
        let known = known?;
        let stored = known.object.stored();
        let now = self.wall_now();
        if !may_serve_on_error(
            self.policy(wanted.origin_kind()),
            &wanted.ask,
            stored,
            failure,
            now,
        ) {
            return None;
        }
        let mut status = CacheStatus::hit(CACHE_NAME).ttl(stored.ttl(now));
        status = match failure {
            Failure::Unreachable => status.detail("origin-unreachable"),
            Failure::Status(_) => status.detail("origin-error"),
        };
        let response = self.respond_stored(wanted, stored, known.object.body(), now, &status);
        Some(respond::with_outcome(response, Outcome::STALE_ON_ERROR))
    }

    /// The response to `wanted` from one that another request fetched.
    pub(crate) fn respond_shared(
        &self,
        wanted: &ProxyRequest,
        landing: &SharedResponse,
        now: SystemTime,
        forward: Forward,
    ) -> Option<Response<Body>> {
        let status = CacheStatus::forwarded(CACHE_NAME, forward).collapsed(true);
        if let StoredCheck::Replaced(response) = respond::check_stored(wanted, &landing.stored) {
            return Some(*response);
        }
        let policy = self.policy(wanted.origin_kind());
        match &landing.source {
            SharedBodySource::Incoming(recording) => {
                let stored = &landing.stored;
                respond::from_shared_body(policy, wanted, stored, None, recording, now, &status)
            }
            SharedBodySource::Stored(object) => {
                Some(self.respond_stored(wanted, &landing.stored, object.body(), now, &status))
            }
        }
    }

    async fn fetch(
        self: &Arc<Self>,
        wanted: ProxyRequest,
        known: Option<StaleEntry>,
        leader: Option<FetchLeader>,
        forward: Forward,
    ) -> Response<Body> {
        if let Some(refused) = self.reject_over_rate(&wanted) {
            return refused;
        }
        self.prefetcher.record_accept(&wanted);
        self.awaited(wanted, known, leader, forward, Body::empty())
            .await
    }

    /// Forwards a request past the cache.
    pub(crate) async fn bypass(
        self: &Arc<Self>,
        wanted: ProxyRequest,
        body: Body,
        forward: Option<Forward>,
    ) -> Response<Body> {
        if let Some(refused) = self.reject_over_rate(&wanted) {
            return refused;
        }
        let forward = forward.unwrap_or(Forward::Bypass);
        self.awaited(wanted, None, None, forward, body).await
    }

    /// Runs a fetch that a client waits for.
    async fn awaited(
        self: &Arc<Self>,
        wanted: ProxyRequest,
        known: Option<StaleEntry>,
        leader: Option<FetchLeader>,
        forward: Forward,
        body: Body,
    ) -> Response<Body> {
        let fetch = Fetch::new(self, wanted, known, leader, forward);
        match fetch.run(body).await {
            FetchOutcome::Response(response) => *response,
            FetchOutcome::Background(_) => unreachable!("who waits gets an answer"),
        }
    }

    /// Counts that an origin could not be contacted.
    pub(crate) fn count_failure(&self, error: &UpstreamError) {
        match error.limit() {
            Some(limit) => self.counters.count(CounterFamily::Limits, limit),
            None => self.counters.count(CounterFamily::Origins, error.name()),
        }
    }

    /// The response to a client that causes too many requests to origins; `None` if it does not.
    pub(crate) fn reject_over_rate(&self, wanted: &ProxyRequest) -> Option<Response<Body>> {
        let from = wanted.from?;
        if self.miss_rate.admits(from, self.runtime.now()) {
            return None;
        }
        self.counters
            .count(CounterFamily::Limits, "misses_per_second");
        let text = "too many requests that nothing is kept for; try again soon\n";
        let mut response = respond::plain(StatusCode::TOO_MANY_REQUESTS, text);
        let soon = HeaderValue::from_static("1");
        response.headers_mut().insert(header::RETRY_AFTER, soon);
        Some(respond::with_outcome(response, Outcome::RATE_LIMITED))
    }

    /// Revalidates in the background a stored response that was just served, unless a fetch for it is under way.
    pub(crate) fn revalidate_in_background(
        self: &Arc<Self>,
        mut wanted: ProxyRequest,
        stale: StaleEntry,
    ) {
        let berth = CoalesceKey::of(&wanted.key);
        let CoalesceRole::Leader(leader) = self.coalescer.join(berth, self.runtime.now()) else {
            return;
        };
        // This client's conditions are its own, and HEAD could refresh only a response that has not changed.
        strip_conditions(&mut wanted.ask.headers);
        wanted.ask.method = Method::GET;
        let fetch = Fetch::new(self, wanted, Some(stale), Some(leader), Forward::Stale).for_cache();
        self.runtime.spawn(Box::pin(async move {
            let _ = fetch.run(Body::empty()).await;
        }));
    }
}
