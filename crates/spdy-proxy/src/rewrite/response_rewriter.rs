//! Rewrites responses: the references of pages and sheets are changed to proxied URLs, and other bodies pass unchanged.
//!
//! ```text
//! origin's bytes ── decoded ───────▶ text ── html/, css/ of spdy-rewrite ───────▶ stored and served
//!                                              └─ references ──▶ prefetched (prefetch/prefetcher.rs), hinted (prefetch/page_resources.rs)
//! ```
//!
//! A page is rewritten while it arrives (`rewrite/page_rewriter.rs`). A sheet is rewritten after its last byte, or in parts if it is longer than
//! the buffer (`rewrite/stylesheet_rewriter.rs`).

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use spdy_rewrite::csp::Policies;
use spdy_rewrite::csp::guard;
use spdy_rewrite::css::StylesheetContext;
use spdy_rewrite::html::HtmlRewriter;
use spdy_rewrite::html::page_head::{self, PageHead};
use spdy_rewrite::kind::Kind as MovedKind;
use spdy_rewrite::reference::Reference;
use spdy_rewrite::reference::page_report::{PageReport, PageSkipReason};
use spdy_rewrite::reference::site_facts::SiteFacts;
use spdy_rewrite::response::rewritten_head;

use crate::body::content_coding::Coding;
use crate::body::decoder::{CodingError, Decoder};
use crate::request::forward_headers;
use crate::request::proxy_request::ProxyRequest;
use crate::rewrite::page_rewriter::PageRewriter;
use crate::rewrite::stylesheet_index::StylesheetResult;
use crate::rewrite::stylesheet_rewriter::StylesheetRewriter;

/// Maximum decoded length of a page or a sheet, bytes.
const MAX_TEXT_BYTES: usize = 64 * 1024 * 1024;

/// How a body is rewritten.
#[derive(Debug)]
pub enum RewritePlan {
    /// It is not.
    Pass,
    /// It is a page of the site's own that is not rewritten, for this reason.
    SkipPage(PageSkipReason),
    /// It is a page of the site's own that is only parsed, in a dry run. It would have this head.
    DryRun(Box<PageHead>),
    /// It is a page of the site's own or of an alias, with this head.
    Page(Box<PageHead>),
    /// It is a sheet, the site's own or a proxied one.
    Sheet(Box<StylesheetContext>),
}

/// Plans the rewriting of the response to `request`, which came from `at` (the same, unless redirects were followed), with the `facts` of
/// the site. Changes its head `served` in place.
///
/// The site's own sheets are rewritten for all of its pages, even those that pass unchanged, so the policies of these pages name the new
/// places. `no-transform` does not forbid that: it is about the content (RFC 9110 §7.7), which stays. With the original policy the page
/// would lack the resources that its sheets name.
#[must_use]
pub fn plan_rewrite(
    request: &ProxyRequest,
    at: &ProxyRequest,
    status: StatusCode,
    served: &mut HeaderMap,
    facts: Option<&dyn SiteFacts>,
) -> RewritePlan {
    let plan = plan_body(request, at, status, served, facts);
    let is_rewritten = !request.rewriting_disabled && !request.site.rules.is_dry_run();
    if matches!(plan, RewritePlan::Pass | RewritePlan::SkipPage(_))
        && is_rewritten
        && request.proxied.is_none()
        && guard::may_run_scripts(served)
        && let Some(url) = at.client_url()
    {
        Policies::rewrite_head(&request.site.rules, &url, served);
    }
    plan
}

/// How a body is rewritten; the head is changed if it is.
fn plan_body(
    request: &ProxyRequest,
    at: &ProxyRequest,
    status: StatusCode,
    served: &mut HeaderMap,
    facts: Option<&dyn SiteFacts>,
) -> RewritePlan {
    let rules = &request.site.rules;
    let is_candidate = is_displayed(status)
        && !request.rewriting_disabled
        && matches!(
            request.head.method,
            Method::GET | Method::HEAD | Method::POST
        );
    if !is_candidate {
        return RewritePlan::Pass;
    }
    if let Some(reason) = skip_reason(served) {
        let is_page = essence(served) == "text/html" && request.proxied.is_none();
        return match is_page {
            true => RewritePlan::SkipPage(reason),
            false => RewritePlan::Pass,
        };
    }
    let Some(url) = at.client_url() else {
        return RewritePlan::Pass;
    };
    match (essence(served).as_str(), &request.proxied, &at.proxied) {
        ("text/html", None, None) => {
            let mut head = served.clone();
            remove_content_coding(&mut head);
            let page = PageHead::rewrite_with_facts(rules, &url, status, &mut head, false, facts);
            if let Some(reason) = page.left {
                return RewritePlan::SkipPage(reason);
            }
            if rules.is_dry_run() {
                return RewritePlan::DryRun(Box::new(page));
            }
            *served = head;
            RewritePlan::Page(Box::new(page))
        }
        ("text/html", Some((proxied, _)), Some(_)) if proxied.kinds().has(MovedKind::Document) => {
            let mut head = served.clone();
            remove_content_coding(&mut head);
            let page = PageHead::rewrite_alias(rules, proxied, status, &mut head);
            if page.left.is_some() {
                return RewritePlan::Pass;
            }
            *served = head;
            RewritePlan::Page(Box::new(page))
        }
        ("text/css", ..) if status != StatusCode::OK => RewritePlan::Pass,
        ("text/css", None, None) if !rules.is_dry_run() => {
            remove_content_coding(served);
            rewritten_head::mark_etag(rules, served, true);
            RewritePlan::Sheet(Box::new(StylesheetContext::own(&url)))
        }
        ("text/css", Some((proxied, _)), Some((last, _))) => {
            remove_content_coding(served);
            rewritten_head::mark_etag(rules, served, true);
            RewritePlan::Sheet(Box::new(StylesheetContext::moved(rules, proxied, last)))
        }
        _ => RewritePlan::Pass,
    }
}

/// Whether browsers show the body of a response with this status: a page, or an error page.
#[must_use]
pub(crate) fn is_displayed(status: StatusCode) -> bool {
    let is_empty = matches!(status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT);
    let is_error = status.is_client_error() || status.is_server_error();
    status.is_success() && !is_empty || is_error
}

/// Whether a proxied response is a sheet that may not be rewritten or cannot be decoded: its URLs that begin with `/` would lead to the site.
#[must_use]
pub fn is_unrewritable_stylesheet(status: StatusCode, served: &HeaderMap) -> bool {
    status == StatusCode::OK && essence(served) == "text/css" && skip_reason(served).is_some()
}

/// Why a response with these fields is not rewritten, for any type.
fn skip_reason(headers: &HeaderMap) -> Option<PageSkipReason> {
    if headers.contains_key(header::CONTENT_RANGE) {
        Some(PageSkipReason::Partial)
    } else if rewritten_head::has_no_transform(headers) {
        Some(PageSkipReason::NoTransform)
    } else if Coding::of(headers).is_none() {
        Some(PageSkipReason::ContentCoding)
    } else {
        None
    }
}

/// Removes the coding: the body is sent without it, or with another one.
fn remove_content_coding(headers: &mut HeaderMap) {
    headers.remove(header::CONTENT_ENCODING);
    forward_headers::remove_vary(headers, "accept-encoding");
}

fn essence(headers: &HeaderMap) -> String {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

impl RewritePlan {
    /// Whether the body passes unchanged.
    #[must_use]
    pub fn passes(&self) -> bool {
        matches!(self, Self::Pass | Self::SkipPage(_) | Self::DryRun(_))
    }
}

/// Rewrites a body, piece by piece.
#[derive(Debug)]
pub struct ResponseRewriter(RewriterKind);

#[derive(Debug)]
enum RewriterKind {
    Pass,
    Page(PageRewriter),
    Sheet(StylesheetRewriter),
}

impl ResponseRewriter {
    /// For the response to `request`, with the `origin_headers` of the response and the `facts` of the site.
    #[must_use]
    pub fn new(
        plan: RewritePlan,
        request: &ProxyRequest,
        origin_headers: &HeaderMap,
        facts: Option<Arc<dyn SiteFacts>>,
    ) -> Self {
        let coding = Coding::of(origin_headers).unwrap_or(Coding::Identity);
        let rules = &request.site.rules;
        let page = |head: PageHead, url| {
            let links = head.references.clone();
            let decoder = Decoder::new(coding, MAX_TEXT_BYTES);
            PageRewriter::new(decoder, HtmlRewriter::new(rules, url, head, facts), links)
        };
        Self(match (plan, request.client_url()) {
            (RewritePlan::Page(head), Some(url)) => RewriterKind::Page(page(*head, &url)),
            (RewritePlan::DryRun(head), Some(url)) => {
                RewriterKind::Page(page(*head, &url).dry_run())
            }
            (RewritePlan::Sheet(sheet), _) => {
                let kind = origin_headers.get(header::CONTENT_TYPE);
                let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
                let decoder = Decoder::new(coding, MAX_TEXT_BYTES);
                let charset = page_head::charset(kind);
                RewriterKind::Sheet(StylesheetRewriter::new(decoder, rules, sheet, charset))
            }
            _ => RewriterKind::Pass,
        })
    }

    /// What is rewritten: a page or a sheet; `None` if nothing is.
    #[must_use]
    pub(crate) fn kind(&self) -> Option<&'static str> {
        match &self.0 {
            RewriterKind::Pass => None,
            RewriterKind::Page(page) if page.is_dry_run() => None,
            RewriterKind::Page(_) => Some("page"),
            RewriterKind::Sheet(_) => Some("sheet"),
        }
    }

    /// Bytes to [`write`](Self::write) at a time, so that the output of one write stays small.
    #[must_use]
    pub fn chunk_len(&self) -> usize {
        match &self.0 {
            RewriterKind::Pass => usize::MAX,
            RewriterKind::Page(page) => page.chunk_len(),
            RewriterKind::Sheet(sheet) => sheet.chunk_len(),
        }
    }

    /// Bytes to write at a time until there is output; `None` if there is no output before the end, or the number is unknown.
    pub(crate) fn first_chunk_len(&self) -> Option<usize> {
        match &self.0 {
            RewriterKind::Pass => Some(usize::MAX),
            RewriterKind::Page(page) => page.first_chunk_len(),
            RewriterKind::Sheet(_) => None,
        }
    }

    /// The output for `piece`.
    ///
    /// # Errors
    ///
    /// [`CodingError`]: it is not valid in its coding.
    pub fn write(&mut self, piece: Bytes) -> Result<Bytes, CodingError> {
        match &mut self.0 {
            RewriterKind::Pass => Ok(piece),
            RewriterKind::Page(page) => page.write(piece),
            RewriterKind::Sheet(sheet) => sheet.write(&piece),
        }
    }

    /// Whether bytes are buffered that [`flush`](Self::flush) would return: those of a page with an encoding that is not known yet. A sheet is
    /// buffered to its end, because no browser applies the beginning of one.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(&self.0, RewriterKind::Page(page) if page.is_waiting())
    }

    /// The output that need not wait for more input.
    pub(crate) fn flush(&mut self) -> Bytes {
        match &mut self.0 {
            RewriterKind::Page(page) => page.flush(),
            RewriterKind::Pass | RewriterKind::Sheet(_) => Bytes::new(),
        }
    }

    /// The remaining bytes at the end, and the result for a page.
    ///
    /// # Errors
    ///
    /// [`CodingError`]: it ended too early.
    pub fn finish(&mut self) -> Result<(Bytes, Option<PageReport>), CodingError> {
        match &mut self.0 {
            RewriterKind::Pass => Ok((Bytes::new(), None)),
            RewriterKind::Page(page) => page.finish(),
            RewriterKind::Sheet(sheet) => Ok((sheet.finish()?, None)),
        }
    }

    /// Whether the body passes unchanged.
    pub(crate) fn is_pass_through(&self) -> bool {
        self.is_dry_run() || matches!(self.0, RewriterKind::Pass)
    }

    /// Whether it is a dry run: parsed only to report the result.
    pub(crate) fn is_dry_run(&self) -> bool {
        matches!(&self.0, RewriterKind::Page(page) if page.is_dry_run())
    }

    /// The result for a sheet after its end.
    pub(crate) fn take_stylesheet(&mut self) -> Option<StylesheetResult> {
        match &mut self.0 {
            RewriterKind::Sheet(sheet) => sheet.take_result(),
            RewriterKind::Pass | RewriterKind::Page(_) => None,
        }
    }

    /// The references found since the last call.
    pub fn take_references(&mut self) -> Vec<Reference> {
        match &mut self.0 {
            RewriterKind::Pass => Vec::new(),
            RewriterKind::Sheet(sheet) => sheet.take_references(),
            RewriterKind::Page(page) => page.take_references(),
        }
    }
}
