//! Rewrites the references of a page while its bytes are streamed.
//!
//! ```text
//!  bytes ──► sniffing ──► rewriting ──► bytes        lol_html finds the tags, html/element.rs decides
//!            BOM, head,      │
//!            meta            └──► passing            once a tag is longer than the buffer
//!               └───────────────► passing            the encoding is not a superset of ASCII, or the rules exclude the page
//! ```
//!
//! A page whose encoding is unknown is buffered until a `meta` states it, or 1 KiB has arrived. If its origin pauses before that
//! ([`flush`](HtmlRewriter::flush)), the bytes so far are rewritten as far as any encoding allows, and the search for the `meta`
//! continues.
//!
//! Tags without changes are passed byte for byte. In other tags, only the changed attributes are rewritten. The content of
//! `noscript`, comments and scripts is not changed. The text of `style` elements and import maps is buffered until it is complete;
//! other text is not.
//!
//! lol_html parses the page as windows-1252, in which every byte is a character and is encoded as the same byte. So every
//! byte that we do not insert stays the same, for any encoding of the page.

use std::borrow::Cow;
use std::sync::Arc;

use lol_html::html_content::{ContentType, TextChunk};
use lol_html::send::{Element, ElementContentHandlers, HtmlRewriter as LolRewriter, Settings};
use lol_html::{AsciiCompatibleEncoding, MemorySettings};
use parking_lot::{Mutex, MutexGuard};
use spdy_markup::charset::{Charset, PRESCAN_BYTES};
use url::Url;

use crate::html::page_head::PageHead;
use crate::html::page_state::PageState;
use crate::limits::MAX_HTML_BUFFER_BYTES;
use crate::reference::Reference;
use crate::reference::page_report::{PageReport, PageSkipReason};
use crate::reference::site_facts::SiteFacts;
use crate::rules::Rules;

/// The output of lol_html, until it is taken.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl lol_html::OutputSink for Sink {
    fn handle_chunk(&mut self, chunk: &[u8]) {
        lock(&self.0).extend_from_slice(chunk);
    }
}

/// No code panics while it holds one of these locks. If it did, the state would still be usable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// The escape byte. In ISO-2022-JP, which a `meta` may state, the ASCII bytes after it are other characters.
const ESCAPE: u8 = 0x1b;
/// The first bytes of byte order marks.
const MARK_STARTS: [u8; 3] = [0xef, 0xfe, 0xff];

enum RewriteStage {
    /// Buffers the first bytes, in which a `meta` may state the encoding.
    DetectingCharset(Vec<u8>),
    Rewriting(Box<LolRewriter<'static, Sink>>),
    PassThrough,
}

/// Rewrites one page.
///
/// ```
/// use http::{HeaderMap, StatusCode, header};
/// use spdy_rewrite::rules::config::{Config, HostConfig};
/// use spdy_rewrite::html::HtmlRewriter;
/// use spdy_rewrite::html::page_head::PageHead;
/// use spdy_rewrite::rules::Rules;
/// use url::Url;
///
/// let site = Url::parse("https://www.site.test")?;
/// let config = Config { hosts: vec![HostConfig::passive("cdn.test")], ..Config::default() };
/// let rules = std::sync::Arc::new(Rules::compile(&site, &config, None)?);
///
/// let mut headers = HeaderMap::new();
/// headers.insert(header::CONTENT_TYPE, "text/html; charset=utf-8".parse()?);
/// let head = PageHead::rewrite(&rules, &site, StatusCode::OK, &mut headers, true);
/// let mut page = HtmlRewriter::new(&rules, &site, head, None);
/// let mut out = Vec::new();
/// page.write(b"<img src=https://cdn.te", &mut out);
/// page.write(b"st/a.png>", &mut out);
/// let report = page.end(&mut out);
/// assert_eq!(out, br#"<img src="/.spdy/1/-/s/cdn.test/a.png">"#);
/// assert_eq!(report.proxied, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct HtmlRewriter {
    stage: RewriteStage,
    page: Arc<Mutex<PageState>>,
    sink: Sink,
    declared: Option<String>,
    /// The first bytes, which are already rewritten although a later `meta` may state the encoding.
    rewritten_prefix: Option<Vec<u8>>,
}

impl HtmlRewriter {
    /// A rewriter for the site's own page at `url`, whose head was already rewritten; `seen` contains the known facts about the site.
    pub fn new(
        rules: &Arc<Rules>,
        url: &Url,
        head: PageHead,
        seen: Option<Arc<dyn SiteFacts>>,
    ) -> Self {
        let stage = match head.left {
            Some(_) => RewriteStage::PassThrough,
            None => RewriteStage::DetectingCharset(Vec::new()),
        };
        let declared = head.charset.clone();
        Self {
            stage,
            page: Arc::new(Mutex::new(PageState::new(rules, url, head, seen))),
            sink: Sink::default(),
            declared,
            rewritten_prefix: None,
        }
    }

    /// Rewrites the next bytes of the page, and appends the output to `out`. How the page is split affects only when output is
    /// available.
    pub fn write(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if let RewriteStage::DetectingCharset(start) = &mut self.stage {
            start.extend_from_slice(bytes);
            // A BOM has up to three bytes; with fewer nothing is certain.
            let has_charset = start.len() >= 3
                && (Charset::of_page(start, self.declared.as_deref()).is_some()
                    || Charset::of_whole_meta(start).is_some());
            if has_charset || start.len() >= PRESCAN_BYTES {
                self.begin(out);
            }
            return;
        }
        if let Some(start) = &mut self.rewritten_prefix {
            let room = PRESCAN_BYTES - start.len();
            start.extend_from_slice(&bytes[..bytes.len().min(room)]);
            let charset = Charset::of_whole_meta(start);
            let is_all = start.len() == PRESCAN_BYTES;
            match charset.or_else(|| is_all.then(|| Charset::of_meta(start))) {
                Some(charset) => self.set_charset(charset, out),
                None if start.contains(&ESCAPE) => self.set_charset(Charset::Opaque, out),
                None => {}
            }
        }
        self.write_chunk(bytes, out);
    }

    fn write_chunk(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        match &mut self.stage {
            RewriteStage::Rewriting(rewriter) => {
                if rewriter.write(bytes).is_err() {
                    self.pass_through();
                }
                self.drain(out);
            }
            RewriteStage::DetectingCharset(_) | RewriteStage::PassThrough => {
                out.extend_from_slice(bytes);
            }
        }
    }

    /// True if bytes are buffered that [`flush`](Self::flush) would return.
    pub fn is_waiting(&self) -> bool {
        match &self.stage {
            RewriteStage::DetectingCharset(start) => match start.first() {
                Some(first) => {
                    let may_be_mark = start.len() < 3 && MARK_STARTS.contains(first);
                    !may_be_mark && !start.contains(&ESCAPE)
                }
                None => false,
            },
            RewriteStage::Rewriting(_) | RewriteStage::PassThrough => false,
        }
    }

    /// Appends to `out` the bytes that need not wait for the page's encoding, because its origin pauses and the client should see
    /// them.
    ///
    /// Until the encoding is known, only ASCII can be read with certainty: a reference with other characters is not rewritten,
    /// although it would be without the pause. If the encoding is not a superset of ASCII (ISO-2022-JP), the rest is passed
    /// unchanged.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        if !self.is_waiting() {
            return;
        }
        if let RewriteStage::DetectingCharset(start) = &self.stage
            && Charset::of_page(start, self.declared.as_deref()).is_some()
        {
            self.begin(out); // there is no byte order mark
            return;
        }
        if let RewriteStage::DetectingCharset(start) =
            std::mem::replace(&mut self.stage, RewriteStage::PassThrough)
        {
            self.rewritten_prefix = Some(start.clone());
            // The encoding that leaves most unchanged.
            self.rewrite_as(Charset::MultiByte);
            self.write_chunk(&start, out);
        }
    }

    /// Sets the encoding of the bytes that were rewritten so far.
    fn set_charset(&mut self, charset: Charset, out: &mut Vec<u8>) {
        self.rewritten_prefix = None;
        if charset != Charset::Opaque {
            lock(&self.page).charset = charset;
            return;
        }
        // Ending lol_html returns its buffered bytes, unchanged.
        if let RewriteStage::Rewriting(rewriter) =
            std::mem::replace(&mut self.stage, RewriteStage::PassThrough)
        {
            let _ = rewriter.end();
        }
        lock(&self.page).report.skip_reason = Some(PageSkipReason::Encoding);
        self.drain(out);
    }

    /// Ends the page: appends the buffered bytes to `out`, and returns the report.
    pub fn end(mut self, out: &mut Vec<u8>) -> PageReport {
        if matches!(self.stage, RewriteStage::DetectingCharset(_)) {
            self.begin(out);
        }
        if let Some(start) = self.rewritten_prefix.take() {
            self.set_charset(Charset::of_meta(&start), out);
        }
        if let RewriteStage::Rewriting(rewriter) =
            std::mem::replace(&mut self.stage, RewriteStage::PassThrough)
            && rewriter.end().is_err()
        {
            self.pass_through();
        }
        self.drain(out);
        lock(&self.page).end()
    }

    /// Takes the references that were found since the last call, those of the head first.
    pub fn take_references(&mut self) -> Vec<Reference> {
        lock(&self.page).report.take_references()
    }

    /// Ends the search for the encoding, found or not, and releases the buffered bytes.
    fn begin(&mut self, out: &mut Vec<u8>) {
        let RewriteStage::DetectingCharset(start) =
            std::mem::replace(&mut self.stage, RewriteStage::PassThrough)
        else {
            return;
        };
        let charset = Charset::of_page(&start, self.declared.as_deref())
            .unwrap_or_else(|| Charset::of_meta(&start));
        if charset == Charset::Opaque {
            lock(&self.page).report.skip_reason = Some(PageSkipReason::Encoding);
        } else {
            self.rewrite_as(charset);
        }
        self.write_chunk(&start, out);
    }

    fn rewrite_as(&mut self, charset: Charset) {
        lock(&self.page).charset = charset;
        self.stage = RewriteStage::Rewriting(Box::new(rewriter(&self.page, self.sink.clone())));
    }

    /// lol_html has returned its buffered bytes unchanged; the rest follows unchanged.
    fn pass_through(&mut self) {
        self.stage = RewriteStage::PassThrough;
        lock(&self.page).report.skip_reason = Some(PageSkipReason::TooLong);
    }

    fn drain(&mut self, out: &mut Vec<u8>) {
        out.append(&mut lock(&self.sink.0));
    }
}

impl std::fmt::Debug for HtmlRewriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stage = match &self.stage {
            RewriteStage::DetectingCharset(_) => "sniffing",
            RewriteStage::Rewriting(_) => "rewriting",
            RewriteStage::PassThrough => "passing",
        };
        f.debug_struct("HtmlRewriter")
            .field("stage", &stage)
            .finish_non_exhaustive()
    }
}

fn rewriter(page: &Arc<Mutex<PageState>>, sink: Sink) -> LolRewriter<'static, Sink> {
    let rules = lock(page).rules.clone();
    let selectors = rules.selectors();
    let (of_elements, of_text, of_end) = (page.clone(), page.clone(), page.clone());
    let on_element =
        ElementContentHandlers::default().element(move |element: &mut Element<'_, '_>| {
            let mut state = lock(&of_elements);
            let before = state.templates;
            crate::html::element::rewrite(&mut state, element);
            if state.templates > before {
                let page = of_elements.clone();
                element.on_end_tag(Box::new(move |_| {
                    lock(&page).templates = before;
                    Ok(())
                }))?;
            }
            Ok(())
        });
    let on_text = ElementContentHandlers::default().text(move |chunk: &mut TextChunk<'_>| {
        rewrite_text(&mut lock(&of_text), chunk);
        Ok(())
    });
    let on_bail_out =
        move |_: &lol_html::errors::RewritingError,
              bail_out: &mut lol_html::html_content::BailOut<'_>| {
            bail_out.append(&lock(&of_end).held.take(), ContentType::Html);
        };
    let transparent =
        AsciiCompatibleEncoding::new(encoding_rs::WINDOWS_1252).expect("windows-1252 has ASCII");
    let settings = Settings::new_send()
        .append_element_content_handler((Cow::Borrowed(&selectors.elements), on_element))
        .append_element_content_handler((Cow::Borrowed(&selectors.texts), on_text))
        .append_bail_out_handler(on_bail_out)
        .with_encoding(transparent)
        .with_strict(false)
        .with_memory_settings(
            MemorySettings::new()
                .with_max_allowed_memory_usage(MAX_HTML_BUFFER_BYTES)
                .with_graceful_bail_out_on_memory_limit_exceeded(true),
        );
    LolRewriter::new(settings, sink)
}

/// Buffers the text of a style element or an import map until it is complete, and reads that of an inline module.
fn rewrite_text(page: &mut PageState, chunk: &mut TextChunk<'_>) {
    page.read_inline_module(chunk.as_str(), chunk.last_in_text_node());
    if !page.held.is_open() {
        return;
    }
    if let Some(before) = page.held.push(chunk.as_str()) {
        // It is too long, so it is passed unchanged: first the buffered text, then this chunk.
        chunk.before(&before, ContentType::Html);
        return;
    }
    if chunk.last_in_text_node() {
        let text = page.finish_text();
        chunk.replace(&text, ContentType::Html);
    } else {
        chunk.remove();
    }
}
