//! A body on its way: from an origin, rewritten if it is to be, into a recording that is read along, and from there into the cache.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::{StatusCode, header};
use http_body::Body as _;
use spdy::body::Body;
use spdy_cache::body::Body as KeptBody;
use spdy_cache::stored::Stored;
use spdy_rewrite::page_report::PageReport;
use spdy_rewrite::reference::Reference;
use spdy_rewrite::referrer::Tells;
use spdy_rewrite::rewritten;

use crate::ahead::PageDone;
use crate::ahead_budget::Budget;
use crate::counters::Family;
use crate::landing::Lead;
use crate::memory::gather;
use crate::page_policies::Said;
use crate::proxy::Proxy;
use crate::purge::Since;
use crate::recording::Writer;
use crate::sheets::Became;
use crate::span_attributes::of_rewriting;
use crate::spans::{BROKEN, OpenSpan};
use crate::transform::Rewriter;
use crate::wanted::Wanted;

/// Things that one page names and that are remembered of it.
const MAX_NAMED: usize = 256;

/// How much smaller than others is the first piece that is rewritten: about what one packet takes beside the head.
const FIRST_SIP_PART: usize = 16;

/// A body on its way from an origin into a recording.
pub(crate) struct Pump {
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) key: spdy_cache::key::Key,
    /// There if it is to be kept.
    pub(crate) stored: Option<Arc<Stored>>,
    pub(crate) status: StatusCode,
    /// Lives until it is in the cache, so that nobody fetches it in between.
    pub(crate) leader: Option<Lead>,
    pub(crate) rewriter: Rewriter,
    /// No redirect led to it.
    pub(crate) is_in_its_place: bool,
    pub(crate) writer: Writer,
    pub(crate) since: Since,
    pub(crate) wanted: Wanted,
    /// What it named so far, of what is moved or the site's own.
    pub(crate) named: Vec<Reference>,
    /// What may still be fetched ahead for what led to it.
    pub(crate) budget: Budget,
    /// Things that may still be looked for to be fetched ahead.
    pub(crate) looked_for: usize,
    /// Targets of what was fetched ahead for it.
    pub(crate) ahead: Vec<String>,
    /// What rewriting took so far.
    pub(crate) rewriting: Duration,
    /// Of the rewriting, where there is some and it is recorded.
    pub(crate) span: Option<OpenSpan>,
}

impl Pump {
    /// Brings `body` to whoever reads it, and to the cache: at once what is here already, so that it goes out with the head; the rest by
    /// itself.
    pub(crate) fn begin(self, body: Body) {
        let runtime = self.proxy.runtime.clone();
        runtime.begin(Box::pin(self.run(body)));
    }

    async fn run(mut self, mut body: Body) {
        let runtime = &self.proxy.runtime;
        let deadline = runtime.now() + self.proxy.fetch_timeout;
        let is_kept = self.stored.is_some();
        let mut patience = is_kept.then(|| runtime.sleep_until(deadline));
        let mut is_first = true;
        loop {
            let frame = std::future::poll_fn(|cx| {
                if let Poll::Ready(frame) = Pin::new(&mut body).poll_frame(cx) {
                    return Poll::Ready(Some(frame));
                }
                match &mut patience {
                    Some(patience) => patience.as_mut().poll(cx).map(|()| None),
                    None => Poll::Pending,
                }
            });
            let Some(frame) = frame.await else {
                patience = None;
                self.proxy.counters.count(Family::Limits, "fetch_timeout_s");
                if self.writer.pass_on().is_err() {
                    return;
                }
                continue;
            };
            let mut piece = match frame {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => data,
                    Err(_) => continue, // trailers are not kept, and not passed on
                },
                Some(Err(error)) => return self.break_off(error.to_string()),
                None => break,
            };
            while !piece.is_empty() {
                let mut sip = self.rewriter.sip();
                if std::mem::take(&mut is_first) {
                    // The head of a page, and what it names, waits for no more than that.
                    sip /= FIRST_SIP_PART;
                }
                let sip = piece.split_to(piece.len().min(sip));
                let began = self.proxy.runtime.now();
                let text = self.rewriter.write(sip);
                self.rewriting += self.proxy.runtime.now() - began;
                let text = match text {
                    Ok(text) => text,
                    Err(error) => return self.break_off(error.to_string()),
                };
                self.look_ahead();
                if !text.is_empty() && self.writer.write(text).await.is_err() {
                    return;
                }
                if !piece.is_empty() {
                    // Whoever reads it sends what there is, and nobody waits until a long page is done.
                    tokio::task::yield_now().await;
                }
            }
        }
        let (rest, report) = match self.rewriter.finish() {
            Ok(rest) => rest,
            Err(error) => return self.break_off(error.to_string()),
        };
        self.look_ahead();
        self.rewritten(report.as_ref());
        if !rest.is_empty() && self.writer.write(rest).await.is_err() {
            return;
        }
        // Before anybody can have all of it, and name it next.
        let became = self.rewriter.take_became();
        let is_untouched = became.as_ref().is_some_and(Became::is_untouched);
        if let Some(became) = became
            && let (Some(url), true) = (self.wanted.seen_url(), self.is_in_its_place)
        {
            let rules = &self.wanted.site.rules;
            self.proxy.sheets.note(rules, &url, became);
        }
        let is_own = self.wanted.moved.is_none();
        let said = report
            .as_ref()
            .filter(|report| is_own && report.left.is_none());
        let said = said.map(|report| Said {
            guarded: report.guarded.clone(),
            is_quiet: report.tells == Tells::Site,
        });
        if let Some(report) = report {
            let is_shared = self.stored.is_some();
            let done = PageDone {
                report,
                status: self.status,
                named: &self.named,
                is_shared,
                ahead: &self.ahead,
                rewriting: self.rewriting,
                is_tried: self.rewriter.tries(),
            };
            self.proxy.page_done(&self.wanted, done);
        }
        let pieces = self.writer.finish();
        if let (Some(pieces), Some(stored)) = (pieces, self.stored) {
            let body = gather(&pieces);
            let stored = match self.rewriter.passes() {
                true => stored,
                false => validated(&self.wanted, &stored, &body, is_untouched),
            };
            let stored = match said {
                Some(said) => noting(&stored, said),
                None => stored,
            };
            let kept = self.proxy.keep(&self.key, &stored, body, self.since);
            if let Some(object) = kept {
                self.writer.settle(object.body().clone());
            }
        }
        drop(self.leader);
    }

    /// It ends here: whoever reads it is told that it is not whole.
    fn break_off(mut self, why: String) {
        if let Some(span) = &mut self.span {
            span.failed(BROKEN);
        }
        self.writer.fail(why);
    }

    /// All of it is rewritten.
    fn rewritten(&mut self, report: Option<&PageReport>) {
        if let (Some(mut span), Some(kind)) = (self.span.take(), self.rewriter.kind()) {
            span.good();
            let busy_ms = self.rewriting.as_secs_f64() * 1e3;
            of_rewriting(&mut span, kind, busy_ms, report);
        }
    }

    /// Fetches what the text has named since the last time.
    fn look_ahead(&mut self) {
        let found = self.rewriter.take_references();
        if found.is_empty() {
            return;
        }
        // Where rules are tried, whoever reads it asks elsewhere.
        if !self.rewriter.tries() {
            let left = &mut self.looked_for;
            let begun = self
                .proxy
                .look_ahead(&self.wanted, &self.budget, left, &found);
            self.ahead.extend(begun);
        }
        let room = MAX_NAMED.saturating_sub(self.named.len());
        self.named.extend(found.into_iter().take(room));
    }
}

/// `stored` with the note of what all of the page says.
fn noting(stored: &Arc<Stored>, mut said: Said) -> Arc<Stored> {
    if let Some(by_head) = Said::of_note(stored.note()) {
        said.guarded.extend(by_head.guarded);
    }
    Arc::new(Stored::clone(stored).with_note(said.note()))
}

/// What is kept of an answer whose body is at hand, with validators of its own where the origin's did not do: clients that come next
/// may ask whether it is still the same.
fn validated(
    wanted: &Wanted,
    stored: &Arc<Stored>,
    body: &KeptBody,
    is_untouched: bool,
) -> Arc<Stored> {
    let mut served = stored.served().clone();
    let pieces = body.chunks().map(|piece| &piece[..]);
    rewritten::tag_body(&wanted.site.rules, &mut served, pieces);
    if is_untouched && let Some(modified) = stored.headers().get(header::LAST_MODIFIED) {
        served.insert(header::LAST_MODIFIED, modified.clone());
    }
    Arc::new(Stored::clone(stored).with_served(served))
}
