//! Processes the response to a fetch: checks, rewrites, records and stores it, and passes it to the requests that wait.
//!
//! ```text
//!  head ── 304, or what HEAD tells ──▶ what is kept, made fresh (fetch/revalidate.rs)
//!   │   ── 5xx ──────────────────────▶ what is kept, though stale, if that is allowed
//!   ▼
//!  may it be kept? ── yes ──▶ land: those who wait read along
//!   │
//!  body ──pump──▶ coding undone ──▶ rewritten ──▶ recording ──▶ cache
//! ```

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, Response, StatusCode, header, response};
use http_body::Body as _;
use spdy::body::Body;
use spdy_cache::cache_control::RequestControl;
use spdy_cache::cache_deception;
use spdy_cache::cache_status::CacheStatus;
use spdy_cache::freshness::Times;
use spdy_cache::invalidate::is_safe;
use spdy_cache::lookup::Failure;
use spdy_cache::storable::{Uncacheable, is_explicitly_shared, may_share};
use spdy_cache::stored::Stored;
use spdy_rewrite::response::sanitize_response;
use spdy_rewrite::rules::refusal::Refusal;
use spdy_rewrite::urls::proxied_url::ProxiedUrl;

use crate::body::body_memory::MemoryReservation;
use crate::body::shared_body::{self, SharedBody};
use crate::cache::shared_response::{SharedBodySource, SharedResponse};
use crate::fetch::origin_exchange::{Fetch, FetchOutcome, PrefetchResult};
use crate::fetch::pump::Pump;
use crate::fetch::redirect_chain::RedirectChain;
use crate::prefetch::prefetcher::MAX_PREFETCH_LOOKUPS;
use crate::proxy::CACHE_NAME;
use crate::request::forgeable_headers::{has_credentials, has_proxy_identity};
use crate::request::forward_headers;
use crate::request::proxy_request::ProxyRequest;
use crate::request::status_class::{is_origin_error, is_overloaded, is_request_error};
use crate::response::breach_guard;
use crate::response::respond;
use crate::rewrite::response_rewriter::{self, ResponseRewriter, RewritePlan};
use crate::rewrite::rewrite_facts::RewriteFacts;
use crate::rewrite::stylesheet_index::SiteObservations;
use crate::sites::page_policies::PagePolicy;
use crate::telemetry::counters::{CounterFamily, Outcome};

impl Fetch {
    /// Handles the head of the origin's response.
    pub(crate) fn answered(
        mut self,
        at: &ProxyRequest,
        mut head: response::Parts,
        body: Body,
        times: Times,
        followed: &RedirectChain,
    ) -> FetchOutcome {
        forward_headers::remove_hop_by_hop(&mut head.headers);
        // A client that follows the origin's own `Alt-Svc` would bypass the proxy (RFC 7838). The proxy sends its own.
        head.headers.remove(header::ALT_SVC);
        // Without a date from the origin, the date is the time of receipt (RFC 9110 §6.6.1).
        if !head.headers.contains_key(header::DATE) {
            let date = spdy_cache::date::to_value(times.received);
            head.headers.insert(header::DATE, date);
        }
        followed.restrict(
            self.proxy.policy(self.wanted.origin_kind()),
            &mut head,
            times,
        );
        if !is_safe(&self.wanted.ask.method) {
            self.proxy.invalidate_after(&self.wanted, &head);
            // This response is newer than what it purged.
            self.since = self.proxy.since();
        }
        if let Some(got) = self.apply_not_modified(&head, times) {
            return got;
        }
        if let Some(got) = self.apply_head_response(&head, times) {
            return got;
        }
        if let Some(stale) = self.stale_on_error(Failure::Status(head.status)) {
            return stale;
        }
        let served = self.served(at, &head);
        if served.is_err() {
            self.record_rejected(at, &head);
        }
        let fitting = served.and_then(|served| self.check_size(at, &body).map(|()| served));
        let (served, work) = match fitting {
            Ok(served) => served,
            Err(response) => {
                if head.status.is_client_error() {
                    self.forget_replaced(head.status);
                }
                self.stop_coalescing();
                return match self.is_wanted_now {
                    true => FetchOutcome::answer(*response, Outcome::UNCACHEABLE),
                    false if is_origin_error(head.status) => {
                        FetchOutcome::Background(PrefetchResult::Failed)
                    }
                    false => FetchOutcome::Background(PrefetchResult::None),
                };
            }
        };
        let mut kept_head = clone_head(&head);
        if !work.passes() {
            forward_headers::remove_vary(&mut kept_head.headers, "accept-encoding");
        }
        followed.add_surrogate_keys(&mut kept_head.headers);
        let stored = self.check_shareable(&kept_head, times, followed);
        let stored = stored.and_then(|stored| Ok((stored, self.reserve_memory(&body)?)));
        let policy = self.proxy.policy(self.wanted.origin_kind());
        let is_of_use = |stored: &Stored| stored.is_reusable(policy);
        let is_stored = stored.as_ref().is_ok_and(|(stored, _)| is_of_use(stored));
        if !is_stored {
            self.forget_replaced(head.status);
        }
        let is_whole = at.ask.method == Method::GET && head.status != StatusCode::PARTIAL_CONTENT;
        let is_kept = stored.is_ok() && is_whole;
        if let Some(head) = self.answer_client_conditions(head.status, &served, is_kept) {
            self.stop_coalescing();
            let mut response = Response::from_parts(head, Body::empty());
            CacheStatus::forwarded(CACHE_NAME, self.forward_reason)
                .append_to(response.headers_mut());
            return FetchOutcome::answer(response, Outcome::UNCACHEABLE);
        }
        let mut status = CacheStatus::forwarded(CACHE_NAME, self.forward_reason);
        let stored = match stored {
            Ok((stored, (claim, has_room))) if head.status != StatusCode::PARTIAL_CONTENT => {
                status = match (is_stored, has_room) {
                    (false, _) => self.uncacheable_status(status, Uncacheable::NeverReusable),
                    (true, true) => status.stored(true).ttl(stored.ttl(self.proxy.wall_now())),
                    (true, false) => self.uncacheable_status(status, Uncacheable::BodyMemory),
                };
                let stored = self.with_page_note(stored, &served, &followed.note());
                Some((Arc::new(stored.with_client_headers(served.clone())), claim))
            }
            Ok(_) => None,
            Err(why) => {
                status = self.uncacheable_status(status, why);
                None
            }
        };
        self.respond(
            at,
            head.status,
            served,
            stored,
            is_stored,
            work,
            body,
            &head.headers,
            &status,
        )
    }

    /// Removes the stored response if a response with this status, which is not stored in its place, shows that it is outdated (RFC 9111
    /// §4.3.3). A status that is about the origin, this one request or its client does not show that.
    fn forget_replaced(&mut self, status: StatusCode) {
        let is_no_whole = matches!(
            status,
            StatusCode::NOT_MODIFIED | StatusCode::PARTIAL_CONTENT
        );
        let asked = &self.wanted.ask;
        let is_by_name =
            has_credentials(&asked.headers) || RequestControl::parse(&asked.headers).no_store;
        if asked.method == Method::GET
            && !(is_no_whole || is_by_name || is_request_error(status) || is_origin_error(status))
            && let Some(known) = self.known.take()
        {
            self.proxy.remove(&self.wanted.key, &known.object);
        }
    }

    /// Counts that the response is passed on and not stored.
    fn uncacheable_status(&self, status: CacheStatus, why: Uncacheable) -> CacheStatus {
        self.proxy
            .counters
            .count(CounterFamily::Uncacheable, why.token());
        status.detail(why.token())
    }

    /// Reserves memory for `body` while it arrives, as far as its length is known. Gives whether there is room for all of it. If not, other
    /// requests may share it as long as its beginning is there.
    fn reserve_memory(&self, body: &Body) -> Result<(MemoryReservation, bool), Uncacheable> {
        let announced = body.size_hint().exact().unwrap_or_default();
        let more = match usize::try_from(announced) {
            Ok(len) if len <= self.proxy.max_object_bytes => {
                len.saturating_sub(shared_body::STREAM_WINDOW_BYTES)
            }
            _ => return Err(Uncacheable::BodyTooLarge),
        };
        if let Some(claim) = self.proxy.body_memory.reserve(more) {
            return Ok((claim, true));
        }
        let nothing = self.proxy.body_memory.reserve(0);
        let nothing = nothing.map(|claim| (claim, false));
        nothing.ok_or(Uncacheable::BodyMemory)
    }

    /// What may be stored of the response with this head.
    pub(crate) fn check_storable(
        &self,
        head: &response::Parts,
        times: Times,
        followed: &RedirectChain,
    ) -> Result<Stored, Uncacheable> {
        let stored = self.check_storable_or_shareable(head, times, followed)?;
        let policy = self.proxy.policy(self.wanted.origin_kind());
        match stored.is_reusable(policy) {
            true => Ok(stored),
            false => Err(Uncacheable::NeverReusable),
        }
    }

    /// The same, or a response that may be shared with the requests that wait for it, but is useless for later ones.
    fn check_shareable(
        &self,
        head: &response::Parts,
        times: Times,
        followed: &RedirectChain,
    ) -> Result<Stored, Uncacheable> {
        match self.leader {
            Some(_) => self.check_storable_or_shareable(head, times, followed),
            None => self.check_storable(head, times, followed),
        }
    }

    /// Whether the response with this head may be stored or shared.
    fn check_storable_or_shareable(
        &self,
        head: &response::Parts,
        times: Times,
        followed: &RedirectChain,
    ) -> Result<Stored, Uncacheable> {
        let asked = &self.wanted.ask;
        if self.wanted.has_content {
            return Err(Uncacheable::Content);
        }
        // A frame's script chose what was posted, and all clients that get the stored response would get its result (RFC 9110 §9.3.3).
        if asked.method == Method::POST && self.wanted.moved.is_some() {
            return Err(Uncacheable::Method);
        }
        if let Some(why) = followed.refused() {
            return Err(why);
        }
        // The cause may be a field that no key contains. Other clients send other values, and would get the same response.
        if is_request_error(head.status) {
            return Err(Uncacheable::Status);
        }
        if cache_deception::is_mismatched(asked.uri.path(), head.status, &head.headers) {
            return Err(Uncacheable::TypeMismatch);
        }
        let policy = self.proxy.policy(self.wanted.origin_kind());
        let stored = may_share(policy, asked, head, times)?;
        // The origin knows the user, as with `Authorization`.
        if has_proxy_identity(&asked.headers) && !is_explicitly_shared(stored.control()) {
            return Err(Uncacheable::Authorization);
        }
        Ok(stored)
    }

    /// The fields that clients get, and how the body is rewritten; or the response that they get instead.
    pub(crate) fn served(
        &self,
        at: &ProxyRequest,
        head: &response::Parts,
    ) -> Result<(HeaderMap, RewritePlan), Box<Response<Body>>> {
        let rules = &at.site.rules;
        let mut served = match &at.moved {
            Some((moved, load)) => {
                match sanitize_response::sanitize(rules, moved, *load, head.status, &head.headers) {
                    sanitize_response::SanitizedResponse::Serve(served)
                        if !moved.is_alias()
                            && response_rewriter::is_unrewritable_stylesheet(
                                head.status,
                                &served,
                            ) =>
                    {
                        let to = match load.is_subresource {
                            true => sanitize_response::SanitizedResponse::Redirect(
                                moved.url().to_string(),
                            ),
                            false => sanitize_response::SanitizedResponse::Refuse(
                                Refusal::UnrewritableStylesheet,
                            ),
                        };
                        return Err(self.reject(moved, to));
                    }
                    sanitize_response::SanitizedResponse::Serve(served) => served,
                    other => return Err(self.reject(moved, other)),
                }
            }
            None => {
                let mut served = head.headers.clone();
                at.rewrite_location(&mut served);
                self.wanted.record_policy(self.wanted.page_policy(&served));
                served
            }
        };
        let work = response_rewriter::plan_rewrite(
            &self.wanted,
            at,
            head.status,
            &mut served,
            Some(&self.seen()),
        );
        forward_headers::append_via(&mut served, head.version, &at.site.name);
        Ok((served, work))
    }

    /// Checks the announced size of `body` against the limit of its host. The error is what the client gets instead.
    fn check_size(&self, at: &ProxyRequest, body: &Body) -> Result<(), Box<Response<Body>>> {
        let Some((moved, load)) = &at.moved else {
            return Ok(());
        };
        let most = at.site.rules.limits(moved).max_bytes;
        match body.size_hint().exact() {
            Some(got) if got > most => {
                self.proxy
                    .counters
                    .count(CounterFamily::Limits, "limits.max_mib");
                let instead = match load.is_subresource {
                    true => sanitize_response::SanitizedResponse::Redirect(moved.url().to_string()),
                    false => sanitize_response::SanitizedResponse::Refuse(Refusal::TooLarge {
                        most,
                        got,
                    }),
                };
                Err(self.reject(moved, instead))
            }
            _ => Ok(()),
        }
    }

    /// `stored` with a note. For a page: its policy under the head `served`, and the one `before`. For the target of redirects: the way
    /// there.
    pub(crate) fn with_page_note(
        &self,
        stored: Stored,
        served: &HeaderMap,
        before: &[u8],
    ) -> Stored {
        let Some(mut said) = self.wanted.page_policy(served) else {
            return stored.with_note(before);
        };
        if let Some(before) = PagePolicy::parse_note(before) {
            said.csp_guard.extend(before.csp_guard);
            said.hides_referrer |= before.hides_referrer;
        }
        stored.with_note([&said.note()[..], RewriteFacts::note_lines(before)].concat())
    }

    /// What was observed of the site, for this request.
    pub(crate) fn seen(&self) -> SiteObservations {
        self.proxy.seen_of(&self.wanted)
    }

    /// The response for a moved resource that is not served.
    fn reject(
        &self,
        moved: &ProxiedUrl,
        answer: sanitize_response::SanitizedResponse,
    ) -> Box<Response<Body>> {
        if let sanitize_response::SanitizedResponse::Refuse(why) = &answer {
            tracing::debug!(%why, url = %moved.url(), "an answer was refused");
            self.proxy
                .counters
                .count(CounterFamily::RefusedRequests, why.name());
        }
        Box::new(respond::from_sanitized(moved, answer))
    }

    /// Starts to move the body, and responds.
    #[expect(
        clippy::too_many_arguments,
        reason = "all of an answer, and what is to become of it"
    )]
    fn respond(
        mut self,
        at: &ProxyRequest,
        code: StatusCode,
        served: HeaderMap,
        shared: Option<(Arc<Stored>, MemoryReservation)>,
        is_stored: bool,
        work: RewritePlan,
        body: Body,
        told: &HeaderMap,
        status: &CacheStatus,
    ) -> FetchOutcome {
        let mut head = Response::new(()).into_parts().0;
        (head.status, head.headers) = (code, served);
        let may_code = match &shared {
            Some((shared, _)) => !breach_guard::is_stored_per_client(&self.wanted, shared),
            None => !breach_guard::may_contain_secret(&self.wanted, told),
        };
        if at.ask.method == Method::HEAD {
            self.stop_coalescing();
            let response = respond::streaming(&self.wanted, head, Body::empty(), may_code, status);
            return FetchOutcome::answer(response, Outcome::UNCACHEABLE);
        }
        let (shared, claim) = shared.unzip();
        if let RewritePlan::SkipPage(why) = &work {
            let stored = shared.as_deref().filter(|_| is_stored);
            self.proxy
                .record_skipped_page(&self.wanted, *why, stored, code);
        }
        let announced = http_body::Body::size_hint(&body).exact();
        let announced = announced.filter(|_| work.passes());
        let (writer, recorded) = match claim {
            Some(claim) => shared_body::kept(self.proxy.max_object_bytes, claim, announced),
            None => shared_body::streamed(announced),
        };
        // Before the body begins: a body that is neither stored nor read is not fetched.
        let own = recorded.read().unwrap_or_default();
        let response = match &shared {
            Some(shared) if self.is_wanted_now => {
                self.stream_shared(shared, &head.headers, &recorded, status)
            }
            _ => None,
        };
        match (&shared, self.leader.as_mut()) {
            (Some(shared), Some(leader)) => leader.share(Arc::new(SharedResponse {
                stored: shared.clone(),
                source: SharedBodySource::Incoming(recorded.clone()),
            })),
            // The other leaders may succeed, and the followers would all contact an overloaded origin.
            (None, Some(leader)) if is_origin_error(code) && leader.has_other_leaders() => {
                self.leader = None;
            }
            (None, Some(_)) if is_overloaded(code) => {
                // The failure of a prefetch does not show what a client's own request would get.
                let leader = self.leader.take().filter(|_| self.is_wanted_now);
                if let Some(leader) = leader {
                    leader.fail(Failure::Status(code));
                }
            }
            _ => self.stop_coalescing(),
        }
        let response = response
            .unwrap_or_else(|| respond::streaming(&self.wanted, head, own, may_code, status));
        let is_wanted = self.is_wanted_now;
        let hour = self.proxy.wall_now();
        let worth = match &shared {
            Some(shared) if shared.ttl(hour) > 0 => PrefetchResult::Stored,
            _ if is_origin_error(code) => PrefetchResult::Failed,
            _ => PrefetchResult::None,
        };
        let outcome = match is_stored {
            true => Outcome::MISS,
            false => Outcome::UNCACHEABLE,
        };
        let seen = Arc::new(self.seen());
        // The target of a redirect decides what a sheet becomes, and the next redirect may lead elsewhere.
        let is_in_its_place = at.key == self.wanted.key;
        let rewriter = ResponseRewriter::new(work, &self.wanted, told, Some(seen.clone()));
        let pump = Pump {
            proxy: self.proxy.clone(),
            span: rewriter
                .kind()
                .and_then(|_| self.proxy.rewriting_span(&self.wanted)),
            key: self.wanted.key.clone(),
            shared,
            is_stored,
            status: code,
            leader: self.leader.take(),
            rewriter,
            seen,
            is_redirect_free: is_in_its_place,
            writer,
            since: self.since,
            budget: self.proxy.prefetcher.budget(&self.wanted),
            wanted: self.wanted.clone(),
            named: Vec::new(),
            lookups_left: MAX_PREFETCH_LOOKUPS,
            prefetched: Vec::new(),
            rewrite_time: Duration::ZERO,
        };
        // A client that does not want the response is no reader.
        let response = is_wanted.then_some(response);
        pump.start(body);
        match response {
            Some(response) => FetchOutcome::answer(response, outcome),
            None => FetchOutcome::Background(worth),
        }
    }

    fn stream_shared(
        &self,
        stored: &Stored,
        own: &HeaderMap,
        recorded: &SharedBody,
        status: &CacheStatus,
    ) -> Option<Response<Body>> {
        let policy = self.proxy.policy(self.wanted.origin_kind());
        let (wanted, now) = (&self.wanted, self.proxy.wall_now());
        respond::from_shared_body(policy, wanted, stored, Some(own), recorded, now, status)
    }
}

pub(crate) fn clone_head(head: &response::Parts) -> response::Parts {
    let mut copy = Response::new(()).into_parts().0;
    (copy.status, copy.version, copy.headers) = (head.status, head.version, head.headers.clone());
    copy
}
