//! Moves a body from an origin, through the rewriter, into a recording that readers share, and from there into the cache.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::{HeaderMap, StatusCode, header};
use http_body::Body as _;
use spdy::body::{Body, BoxError};
use spdy_cache::body::Body as CacheBody;
use spdy_cache::stored::Stored;
use spdy_rewrite::reference::Reference;
use spdy_rewrite::reference::page_report::PageReport;
use spdy_rewrite::referrer::ReferrerScope;
use spdy_rewrite::response::rewritten_head;
use tokio::sync::watch;

use crate::body::shared_body::SharedBodyWriter;
use crate::cache::memory_store::body_from_pieces;
use crate::cache::public_response::is_client_independent;
use crate::cache::purge_log::PurgeSnapshot;
use crate::cache::shared_response::FetchLeader;
use crate::fetch::context::FetchContext;
use crate::fetch::finished_page::{self, FinishedPage};
use crate::fetch::page_observer::PagePrefetches;
use crate::request::proxy_request::ProxyRequest;
use crate::request::trailer_fields;
use crate::rewrite::page_text;
use crate::rewrite::response_rewriter::ResponseRewriter;
use crate::rewrite::rewrite_facts::{self, RewriteFacts};
use crate::rewrite::site_observations::SiteObservations;
use crate::rewrite::stylesheet_index::StylesheetResult;
use crate::sites::page_policies::PagePolicy;
use crate::telemetry::counters::CounterFamily;
use crate::telemetry::span_attributes::set_rewrite;
use crate::telemetry::spans::{BROKEN, OpenSpan};

/// How long the first bytes of a page wait for its encoding when no more bytes come. After that they are sent, rewritten as far as possible
/// without the encoding. The time is long enough for two writes of an origin to arrive as one.
const MAX_PAGE_START_DELAY: Duration = Duration::from_millis(20);
/// Maximum number of recorded references of one page.
const MAX_PAGE_REFERENCES: usize = 256;

/// A body on its way from an origin into a recording.
pub(crate) struct Pump {
    /// Dropped at the end.
    pub(crate) until_end: watch::Sender<()>,
    pub(crate) context: Arc<FetchContext>,
    pub(crate) request: ProxyRequest,
    /// Present if the response is shared with requests that wait for it.
    pub(crate) shared: Option<Arc<Stored>>,
    /// Whether it is then stored: a response that is stale on arrival may be useless for later requests.
    pub(crate) is_stored: bool,
    /// The head, if it is a page that any client may have.
    pub(crate) public_page: Option<Arc<Stored>>,
    pub(crate) status: StatusCode,
    /// Lives until the response is in the cache, so that no other request fetches it in between.
    pub(crate) leader: Option<FetchLeader>,
    pub(crate) rewriter: ResponseRewriter,
    /// What was observed of the site: the facts that the page is rewritten with.
    pub(crate) observations: Arc<SiteObservations>,
    /// No redirect led to it.
    pub(crate) is_redirect_free: bool,
    pub(crate) writer: SharedBodyWriter,
    pub(crate) since: PurgeSnapshot,
    pub(crate) page: PageProgress,
}

/// What was found in a page or a style sheet so far.
pub(crate) struct PageProgress {
    /// References to proxied resources or to the site's own.
    references: Vec<Reference>,
    prefetches: PagePrefetches,
    /// The time of rewriting so far.
    rewrite_time: Duration,
    /// The span of the rewriting, if there is one and it is recorded.
    span: Option<OpenSpan>,
}

impl PageProgress {
    pub(crate) fn new(prefetches: PagePrefetches, span: Option<OpenSpan>) -> Self {
        Self {
            references: Vec::new(),
            prefetches,
            rewrite_time: Duration::ZERO,
            span,
        }
    }
}

impl Pump {
    /// Moves `body` to its readers and to the cache in a task. If the first piece is available and cheap, it is processed at once, so that
    /// it is sent with the head.
    pub(crate) fn start(self, body: Body) {
        let runtime = self.context.clock.runtime.clone();
        match self.rewriter.first_chunk_len() {
            Some(_) => runtime.begin(Box::pin(self.run(body))),
            None => runtime.spawn(Box::pin(self.run(body))),
        }
    }

    /// Runs until the body ends, or until no reader is left.
    async fn run(mut self, mut body: Body) {
        let runtime = self.context.clock.runtime.clone();
        let deadline = runtime.now() + self.context.cache.limits.fetch_timeout;
        let is_shared = self.shared.is_some();
        let mut store_timeout = is_shared.then(|| runtime.sleep_until(deadline));
        let mut turns = YieldPolicy::default();
        // Starts when bytes are held and no more are available. Later pieces do not restart it.
        let mut pause = None;
        loop {
            let is_waiting = self.rewriter.is_waiting();
            let event = std::future::poll_fn(|cx| {
                if let Poll::Ready(frame) = Pin::new(&mut body).poll_frame(cx) {
                    return Poll::Ready(PumpEvent::Frame(frame));
                }
                // If only the end is missing, its connection can be used again after it.
                let is_complete = body.size_hint().exact() == Some(0);
                if !is_complete && self.writer.poll_no_readers(cx).is_ready() {
                    return Poll::Ready(PumpEvent::NoReaders);
                }
                if is_waiting {
                    let sleep = || runtime.sleep_until(runtime.now() + MAX_PAGE_START_DELAY);
                    if pause.get_or_insert_with(sleep).as_mut().poll(cx).is_ready() {
                        return Poll::Ready(PumpEvent::Pause);
                    }
                }
                match &mut store_timeout {
                    Some(store_timeout) => store_timeout
                        .as_mut()
                        .poll(cx)
                        .map(|()| PumpEvent::StoreTimeout),
                    None => Poll::Pending,
                }
            });
            let mut piece = match event.await {
                PumpEvent::Frame(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => data,
                    Err(frame) => {
                        if let Ok(trailers) = frame.into_trailers() {
                            self.pass_trailers(trailers);
                        }
                        continue;
                    }
                },
                PumpEvent::Frame(Some(Err(error))) => return self.abort(error.to_string()),
                PumpEvent::Frame(None) => return self.finish().await,
                PumpEvent::NoReaders => return,
                PumpEvent::Pause => {
                    let text = self.rewriter.flush();
                    self.prefetch_references();
                    turns.must_yield(0, usize::MAX, !text.is_empty(), false);
                    if !text.is_empty() && self.writer.write(text).await.is_err() {
                        return;
                    }
                    continue;
                }
                PumpEvent::StoreTimeout => {
                    store_timeout = None;
                    if self.writer.stop_retaining() {
                        self.context
                            .telemetry
                            .counters
                            .count(CounterFamily::Limits, "fetch_timeout_s");
                    }
                    continue;
                }
            };
            while !piece.is_empty() {
                let turn_bytes = self.rewriter.chunk_len();
                let max_bytes = match turns.has_begun {
                    true => turn_bytes,
                    // The head of a page and its references wait for no more than this.
                    false => self.rewriter.first_chunk_len().unwrap_or(turn_bytes),
                };
                let chunk = piece.split_to(piece.len().min(max_bytes));
                let consumed = chunk.len();
                let began = self.context.clock.now();
                let text = self.rewriter.write(chunk);
                self.page.rewrite_time += self.context.clock.now() - began;
                let text = match text {
                    Ok(text) => text,
                    Err(error) => return self.abort(error.to_string()),
                };
                self.prefetch_references();
                let must_yield =
                    turns.must_yield(consumed, turn_bytes, !text.is_empty(), !piece.is_empty());
                if !text.is_empty() && self.writer.write(text).await.is_err() {
                    return;
                }
                if must_yield {
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    /// Passes `trailers` to the client of a response that is neither rewritten nor stored. Trailers of other responses are dropped.
    fn pass_trailers(&mut self, mut trailers: HeaderMap) {
        let is_passed = self.shared.is_none()
            && self.rewriter.is_pass_through()
            && self.request.streams.takes_trailers;
        if is_passed {
            let rule = self.request.path_rule.as_deref();
            trailer_fields::restrict_response(&mut trailers, rule);
            self.writer.set_trailers(trailers);
        }
    }

    /// The body is complete: its readers get the rest, and the cache gets the results.
    async fn finish(mut self) {
        let (rest, report) = match self.rewriter.finish() {
            Ok(rest) => rest,
            Err(error) => return self.abort(error.to_string()),
        };
        self.prefetch_references();
        self.end_rewrite_span(report.as_ref());
        if !rest.is_empty() && self.writer.write(rest).await.is_err() {
            return;
        }
        // Before a client can have all of it, and request a page that pins it.
        let stylesheet = self.rewriter.take_stylesheet();
        let is_stylesheet = stylesheet.is_some();
        let is_unchanged = stylesheet
            .as_ref()
            .is_some_and(StylesheetResult::is_unchanged);
        let mut note_line = None;
        if let Some(stylesheet) = stylesheet
            && let (Some(url), true) = (self.request.client_url(), self.is_redirect_free)
        {
            let rules = &self.request.site.rules;
            note_line = Some(stylesheet.line());
            self.context
                .pages
                .stylesheets
                .record(rules, &url, stylesheet);
        }
        let stored = self.shared.as_deref().filter(|_| self.is_stored);
        if is_stylesheet && stored.is_some_and(is_client_independent) {
            let observer = &self.context.observer;
            observer.stylesheet_finished(&self.request, &self.page.references);
        }
        let is_own = self.request.proxied.is_none();
        let policy = report
            .as_ref()
            .filter(|report| is_own && report.skip_reason.is_none());
        let policy = policy.map(|report| PagePolicy {
            csp_guard: report.guarded.clone(),
            hides_referrer: report.referrer_scope == ReferrerScope::SameSite,
        });
        if let Some(report) = report {
            let done = FinishedPage {
                report,
                status: self.status,
                references: &self.page.references,
                is_shared: self.shared.is_some(),
                public: self.public_page.as_deref(),
                prefetched: &self.page.prefetches.started,
                rewriting: self.page.rewrite_time,
                is_dry_run: self.rewriter.is_dry_run(),
            };
            finished_page::record(&self.context, &self.request, done);
        }
        let pieces = self.writer.finish();
        match (pieces, self.shared) {
            (Some(pieces), Some(stored)) if self.is_stored => {
                let body = body_from_pieces(&pieces);
                let is_rewritten = !self.rewriter.is_pass_through();
                let stored = match is_rewritten {
                    false => stored,
                    true => with_validators(&self.request, &stored, &body, is_unchanged),
                };
                let stored = match policy {
                    Some(policy) => {
                        let facts = is_rewritten.then(|| self.observations.facts());
                        with_page_note(&stored, policy, facts.as_ref())
                    }
                    None => stored,
                };
                let stored = match note_line {
                    Some(note_line) => {
                        let note = [stored.note(), note_line.as_bytes()].concat();
                        Arc::new(Stored::clone(&stored).with_note(note))
                    }
                    None => stored,
                };
                let stored_object =
                    self.context
                        .cache
                        .store(&self.request.key, &stored, body, self.since);
                if let Some(object) = stored_object {
                    if !is_rewritten {
                        let (context, request) = (&self.context, &self.request);
                        let observer = &context.observer;
                        observer.unchanged_stored(context, request, &stored, object.body());
                    }
                    self.writer.replace_with_stored(object.body().clone());
                }
            }
            // Followers may not have started to read.
            (Some(_), Some(_)) => self.writer.finish_unstored(),
            _ => {}
        }
        drop((self.leader, self.until_end));
    }

    /// Ends the recording with an error: its readers get an incomplete body.
    fn abort(mut self, reason: String) {
        if let Some(span) = &mut self.page.span {
            span.set_error(BROKEN);
        }
        self.writer.fail(reason);
    }

    /// Ends the span of the rewriting.
    fn end_rewrite_span(&mut self, report: Option<&PageReport>) {
        if let (Some(mut span), Some(kind)) = (self.page.span.take(), self.rewriter.kind()) {
            span.set_ok();
            let busy_ms = self.page.rewrite_time.as_secs_f64() * 1e3;
            set_rewrite(&mut span, kind, busy_ms, report);
        }
    }

    /// Prefetches the references found since the last call.
    fn prefetch_references(&mut self) {
        let references = self.rewriter.take_references();
        if references.is_empty() {
            return;
        }
        // In a dry run, clients load the resources from elsewhere.
        if !self.rewriter.is_dry_run() {
            let (context, prefetches) = (&self.context, &mut self.page.prefetches);
            let observer = &context.observer;
            observer.references_found(context, &self.request, prefetches, &references);
        }
        let room = MAX_PAGE_REFERENCES.saturating_sub(self.page.references.len());
        self.page
            .references
            .extend(references.into_iter().take(room));
    }
}

/// The next event of a body.
enum PumpEvent {
    /// A frame, or its end.
    Frame(Option<Result<http_body::Frame<bytes::Bytes>, BoxError>>),
    /// Nothing yet, and no reader is left.
    NoReaders,
    /// No bytes for so long that held bytes should be sent.
    Pause,
    /// Nothing yet, and it takes too long to be stored.
    StoreTimeout,
}

/// Decides when other tasks run: a reader can send the available bytes, and no task waits for the end of a long page.
#[derive(Debug, Default)]
struct YieldPolicy {
    /// There was some text.
    has_begun: bool,
    /// Bytes since the last yield, in any number of pieces.
    bytes: usize,
}

impl YieldPolicy {
    /// Whether to yield after `bytes` more bytes. `is_text` is whether they produced text, and `turn_bytes` is the length of a turn. The pump
    /// yields after each turn, and after the first text if there `is_more`.
    fn must_yield(
        &mut self,
        bytes: usize,
        turn_bytes: usize,
        is_text: bool,
        is_more: bool,
    ) -> bool {
        let begins = is_text && !self.has_begun;
        self.has_begun |= is_text;
        self.bytes += bytes;
        let yields = self.bytes >= turn_bytes || begins && is_more;
        if yields {
            self.bytes = 0;
        }
        yields
    }
}

/// `stored` with a note: the policy of the whole page, and the facts that it was rewritten with.
fn with_page_note(
    stored: &Arc<Stored>,
    mut policy: PagePolicy,
    facts: Option<&RewriteFacts>,
) -> Arc<Stored> {
    if let Some(head_policy) = PagePolicy::parse_note(stored.note()) {
        policy.csp_guard.extend(head_policy.csp_guard);
    }
    let mut note = policy.note();
    let lines = facts.map(RewriteFacts::format_lines).unwrap_or_default();
    note.extend_from_slice(lines.as_bytes());
    note.extend_from_slice(page_text::line_of(stored.note()).as_bytes());
    let mut served = stored.served().clone();
    rewrite_facts::mark_etag(&note, &mut served);
    let stored = Stored::clone(stored).with_client_headers(served);
    Arc::new(stored.with_note(note))
}

/// `stored` for a complete body, with new validators if those of the origin do not fit. Later clients can revalidate with them.
fn with_validators(
    request: &ProxyRequest,
    stored: &Arc<Stored>,
    body: &CacheBody,
    is_unchanged: bool,
) -> Arc<Stored> {
    let mut served = stored.served().clone();
    let pieces = body.chunks().map(|piece| &piece[..]);
    rewritten_head::tag_body(&request.site.rules, &mut served, pieces);
    if is_unchanged && let Some(modified) = stored.headers().get(header::LAST_MODIFIED) {
        served.insert(header::LAST_MODIFIED, modified.clone());
    }
    Arc::new(Stored::clone(stored).with_client_headers(served))
}

#[cfg(test)]
mod tests {
    use super::YieldPolicy;

    #[test]
    fn pump_yields_at_start_and_after_enough_bytes() {
        let mut turns = YieldPolicy::default();
        assert!(!turns.must_yield(100, 1000, false, true), "nothing to send");
        assert!(turns.must_yield(100, 1000, true, true), "it begins");
        assert!(!turns.must_yield(600, 1000, true, false));
        assert!(turns.must_yield(600, 1000, true, false), "1200 bytes");
        assert!(
            !turns.must_yield(999, 1000, true, true),
            "the count starts again"
        );

        let mut short = YieldPolicy::default();
        let is_all = !short.must_yield(100, 1000, true, false);
        assert!(is_all, "a short page is done at once");
        assert!(!short.must_yield(100, 1000, true, true), "it has begun");
        let mut without_text = YieldPolicy::default();
        assert!(
            without_text.must_yield(1000, 1000, false, true),
            "no text either"
        );
    }
}
