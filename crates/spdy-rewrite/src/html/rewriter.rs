//! Rewrites the references of a page while its bytes stream through.
//!
//! ```text
//!  bytes ──► sniffing ──► rewriting ──► bytes        lol_html finds the tags, html/element.rs decides
//!            BOM, head,      │
//!            meta            └──► passing            once a tag is longer than what is held
//!               └───────────────► passing            the encoding is no superset of ASCII, or the rules leave the page
//! ```
//!
//! A page whose encoding is unknown is held until a `meta` states it, or 1 KiB has arrived. If its origin pauses before that
//! ([`flush`](HtmlRewriter::flush)), the bytes so far are rewritten as far as any encoding allows, and the search for the `meta` continues.
//!
//! Tags without changes pass byte for byte. In other tags, only the changed attributes are rewritten. The content of `noscript`, of
//! comments and of scripts is not touched. The text of `style` elements and import maps is held until it is whole; no other text is.
//!
//! lol_html gets windows-1252 as the encoding of the page, in which every byte is a character and comes back as itself. So every byte
//! that we do not insert stays the same, for any encoding that the page states.

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

/// Where lol_html puts what it has, until it is taken.
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

/// The escape byte. In ISO-2022-JP, which a `meta` may state, ASCII stands for other characters behind it.
const ESCAPE: u8 = 0x1b;
/// What a byte order mark may begin with.
const MARK_STARTS: [u8; 3] = [0xef, 0xfe, 0xff];

enum RewriteStage {
    /// The first bytes, in which a `meta` may state the encoding.
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
    /// The first bytes, which are already rewritten though a `meta` behind them may state the encoding.
    rewritten_prefix: Option<Vec<u8>>,
}

impl HtmlRewriter {
    /// A rewriter for the site's own page at `url`, whose head was rewritten before; `seen` holds the known facts about the site.
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

    /// Takes the next bytes of the page, and appends to `out` what is to be sent. How the page is cut changes nothing
    /// but when what is sent.
    pub fn write(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if let RewriteStage::DetectingCharset(start) = &mut self.stage {
            start.extend_from_slice(bytes);
            // A BOM has three bytes; before them nothing is certain.
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

    /// Whether bytes are held that [`flush`](Self::flush) would send.
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

    /// Appends to `out` what need not wait for the page's encoding: its origin pauses, and the client should see what is there.
    ///
    /// Until the encoding is determined, only ASCII can be read for certain: a reference with other characters is not rewritten, although
    /// it would be without the pause. If the encoding turns out to be no superset of ASCII (ISO-2022-JP), the rest passes as it came.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        if !self.is_waiting() {
            return;
        }
        if let RewriteStage::DetectingCharset(start) = &self.stage
            && Charset::of_page(start, self.declared.as_deref()).is_some()
        {
            self.begin(out); // no byte order mark comes
            return;
        }
        if let RewriteStage::DetectingCharset(start) =
            std::mem::replace(&mut self.stage, RewriteStage::PassThrough)
        {
            self.rewritten_prefix = Some(start.clone());
            // Of all encodings the one that leaves most as it is.
            self.rewrite_as(Charset::MultiByte);
            self.write_chunk(&start, out);
        }
    }

    /// The encoding of the bytes that were rewritten so far is determined.
    fn set_charset(&mut self, charset: Charset, out: &mut Vec<u8>) {
        self.rewritten_prefix = None;
        if charset != Charset::Opaque {
            lock(&self.page).charset = charset;
            return;
        }
        // An end gives out what lol_html holds, as it came.
        if let RewriteStage::Rewriting(rewriter) =
            std::mem::replace(&mut self.stage, RewriteStage::PassThrough)
        {
            let _ = rewriter.end();
        }
        lock(&self.page).report.skip_reason = Some(PageSkipReason::Encoding);
        self.drain(out);
    }

    /// Ends the page: appends the held bytes to `out`, and returns the report.
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

    /// The references that were found since the last call, those of the head first.
    pub fn take_references(&mut self) -> Vec<Reference> {
        lock(&self.page).report.take_references()
    }

    /// Ends the search for the encoding, found or not, and releases the bytes that were held.
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

    /// What lol_html held it has given out as it came; the rest follows it.
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
            let before = lock(&of_elements).templates;
            crate::html::element::rewrite(&mut lock(&of_elements), element);
            if lock(&of_elements).templates > before {
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

/// Holds the text of a style element or an import map until it is whole.
fn rewrite_text(page: &mut PageState, chunk: &mut TextChunk<'_>) {
    if !page.held.is_open() {
        return;
    }
    if let Some(before) = page.held.push(chunk.as_str()) {
        // It is too long, so it passes: what was held, then this chunk as it is.
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
