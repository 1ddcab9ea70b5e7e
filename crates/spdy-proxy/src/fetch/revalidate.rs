//! Refreshes a stored response by a 304, or by the head of a response to HEAD (RFC 9111 §4.3.4, §4.3.5).

use std::borrow::Cow;
use std::sync::Arc;

use http::{HeaderName, Method, Response, StatusCode, header, response};
use spdy_cache::cache_status::CacheStatus;
use spdy_cache::freshness::Times;
use spdy_cache::memory_store::Object;
use spdy_cache::stored::Stored;
use spdy_cache::validate::{HeadUpdate, MergeResult, ValidatorMismatch, head_update, merge};

use crate::cache::shared_response::{SharedBodySource, SharedResponse};
use crate::fetch::origin_exchange::{Fetch, FetchOutcome, StaleEntry};
use crate::fetch::process_response::clone_head;
use crate::proxy::CACHE_NAME;
use crate::request::forward_headers;
use crate::response::respond;
use crate::rewrite::response_rewriter::{self, RewritePlan};
use crate::rewrite::rewrite_facts;
use crate::telemetry::counters::Outcome;

/// The fields that a page is rewritten by, apart from whether it is rewritten. For a sheet, only the first.
const REWRITE_INPUT_FIELDS: [HeaderName; 4] = [
    header::CONTENT_TYPE,
    header::CONTENT_SECURITY_POLICY,
    header::CONTENT_SECURITY_POLICY_REPORT_ONLY,
    header::REFERRER_POLICY,
];

impl Fetch {
    /// Merges a 304 into the stored response, if the request was about that.
    pub(crate) fn merge(
        &self,
        head: &response::Parts,
        times: Times,
    ) -> Option<Result<MergeResult, ValidatorMismatch>> {
        let object = &self.known.as_ref()?.object;
        let policy = self.proxy.policy(self.wanted.origin_kind());
        let asked = &self.wanted.ask;
        let head = self.without_coding(object.stored(), head);
        Some(merge(policy, object.stored(), asked, &head, times))
    }

    /// `head` as it would be for the whole. A rewritten response has no coding, so the origin's choice of one does not matter.
    fn without_coding<'a>(
        &self,
        stored: &Stored,
        head: &'a response::Parts,
    ) -> Cow<'a, response::Parts> {
        if self.rewrite_plan(stored).passes() {
            return Cow::Borrowed(head);
        }
        let mut plain = clone_head(head);
        forward_headers::remove_vary(&mut plain.headers, "accept-encoding");
        Cow::Owned(plain)
    }

    /// How the body of `stored` is rewritten.
    fn rewrite_plan(&self, stored: &Stored) -> RewritePlan {
        let (at, mut served) = (&self.wanted, stored.headers().clone());
        let seen = self.seen();
        response_rewriter::plan_rewrite(at, at, stored.status(), &mut served, Some(&seen))
    }

    /// Whether the merge changes how the stored body was rewritten, or that it was not. Then the whole is fetched and rewritten again.
    pub(crate) fn changes_rewrite(&self, merged: &MergeResult) -> bool {
        let Some(StaleEntry { object, .. }) = &self.known else {
            return false;
        };
        let (before, now) = (object.stored(), merged.stored());
        let made_by = match (self.rewrite_plan(before), self.rewrite_plan(now)) {
            (before, now) if before.passes() && now.passes() => return false,
            (RewritePlan::Page(_), RewritePlan::Page(_)) => &REWRITE_INPUT_FIELDS[..],
            (RewritePlan::Sheet(_), RewritePlan::Sheet(_)) => &REWRITE_INPUT_FIELDS[..1],
            _ => return true,
        };
        let (before, now) = (before.headers(), now.headers());
        let differs = |name| before.get_all(name).iter().ne(now.get_all(name).iter());
        made_by.iter().any(differs)
    }

    /// Refreshes the stored response by a 304 to the proxy's own condition.
    pub(crate) fn apply_not_modified(
        &mut self,
        head: &response::Parts,
        times: Times,
    ) -> Option<FetchOutcome> {
        if head.status != StatusCode::NOT_MODIFIED {
            return None;
        }
        let StaleEntry { object, .. } = self.known.clone()?;
        let merged = self.merge(head, times)?.ok()?;
        Some(self.refresh(&object, merged, head))
    }

    /// A 200 to HEAD with the validators of the stored response refreshes it. With others, the stored response becomes stale (RFC 9111
    /// §4.3.5).
    pub(crate) fn apply_head_response(
        &mut self,
        head: &response::Parts,
        times: Times,
    ) -> Option<FetchOutcome> {
        if self.wanted.ask.method != Method::HEAD {
            return None;
        }
        let StaleEntry { object, .. } = self.known.clone()?;
        let policy = self.proxy.policy(self.wanted.origin_kind());
        let (stored, len) = (object.stored(), object.body().len());
        let whole = self.without_coding(stored, head);
        match head_update(policy, stored, &self.wanted.ask, &whole, len, times) {
            HeadUpdate::Merged(merged) if !self.changes_rewrite(&merged) => {
                Some(self.refresh(&object, *merged, head))
            }
            HeadUpdate::Merged(_) | HeadUpdate::Changed => {
                self.proxy.expire(&self.wanted.key, &object);
                None
            }
            HeadUpdate::Nothing => None,
        }
    }

    /// The stored response with the new fields of `head`.
    fn refresh(
        &mut self,
        object: &Object,
        merged: MergeResult,
        head: &response::Parts,
    ) -> FetchOutcome {
        let again = |stored: Stored| {
            let head = {
                let mut whole = Response::new(()).into_parts().0;
                (whole.status, whole.headers) = (stored.status(), stored.headers().clone());
                whole
            };
            let served = self.served(&self.wanted, &head);
            let served = served.map(|(served, _)| served);
            let mut served = served.unwrap_or_else(|_| object.stored().served().clone());
            let is_tagged = served.contains_key(header::ETAG);
            // The body is the same, and so is its rewritten form.
            for name in [header::ETAG, header::LAST_MODIFIED] {
                let before = object.stored().served().get(&name);
                if let (false, Some(before)) = (served.contains_key(&name), before) {
                    served.insert(name, before.clone());
                }
            }
            let stored = self.with_page_note(stored, &served, object.stored().note());
            if is_tagged {
                rewrite_facts::mark_etag(stored.note(), &mut served);
            }
            Arc::new(stored.with_client_headers(served))
        };
        let now = self.proxy.wall_now();
        let status =
            CacheStatus::forwarded(CACHE_NAME, self.forward_reason).forward_status(head.status);
        let (stored, status) = match merged {
            MergeResult::Store(stored) => {
                let stored = again(stored);
                let key = &self.wanted.key;
                let body = object.body().clone();
                let kept = self.proxy.store(key, &stored, body, self.since);
                let is_purged = self.proxy.purges.purged_since(key, self.since.purges);
                match self.leader.as_mut() {
                    // Requests that wait start one new fetch.
                    Some(_) if is_purged => self.leader = None,
                    // Without room to store it, the response is still valid.
                    Some(leader) => leader.share(Arc::new(SharedResponse {
                        stored: stored.clone(),
                        source: SharedBodySource::Stored(kept.unwrap_or_else(|| object.clone())),
                    })),
                    None => {}
                }
                let ttl = stored.ttl(now);
                (stored, status.stored(true).ttl(ttl))
            }
            MergeResult::UseOnce(stored, why) => {
                self.proxy.remove(&self.wanted.key, object);
                let stored = again(stored);
                self.stop_coalescing();
                (stored, status.detail(why.token()))
            }
        };
        // The resources that it waits for may have failed, or not have been looked up since the program started.
        self.proxy.prefetch_pinned(&self.wanted, stored.note());
        let mut response =
            self.proxy
                .respond_stored(&self.wanted, &stored, object.body(), now, &status);
        if self.wanted.moved.is_none() {
            respond::add_private_fields(response.headers_mut(), &stored, &head.headers);
        }
        FetchOutcome::answer(response, Outcome::REVALIDATED)
    }
}
