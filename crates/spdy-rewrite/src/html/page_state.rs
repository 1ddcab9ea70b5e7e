//! The state of a page while it is streamed: its base, its policies, the buffered text, and the report.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use spdy_markup::charset::Charset;
use spdy_markup::{entities, srcset};
use url::Url;

use crate::csp::guard::CspGuard;
use crate::csp::{CspCredentials, Policies};
use crate::css;
use crate::html::import_map;
use crate::html::page_head::PageHead;
use crate::kind::Kind;
use crate::limits::MAX_EMBEDDED_BYTES;
use crate::reference::origin_cache::OriginCache;
use crate::reference::page_report::PageReport;
use crate::reference::site_facts::SiteFacts;
use crate::reference::{Reference, ReferenceContext, ReferenceRewrite};
use crate::referrer::ReferrerScope;
use crate::rules::Rules;
use crate::rules::verdict::{ReferenceSource, SkipReason};

/// The kind of an embedded text, which decides how it is rewritten.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum EmbeddedText {
    Style,
    ImportMap,
}

/// The buffer for the text of an element, until it is complete.
#[derive(Debug, Default)]
pub(crate) struct TextBuffer {
    what: Option<EmbeddedText>,
    /// True if the text is only reported, and stays unchanged.
    is_read_only: bool,
    text: String,
}

impl TextBuffer {
    /// Begins buffering the text of an element; an earlier element without text is dropped.
    pub(crate) fn open(&mut self, what: EmbeddedText) {
        self.what = Some(what);
        self.is_read_only = false;
        self.text.clear();
    }

    /// The same for a text that the page's policy admits only unchanged.
    pub(crate) fn open_read_only(&mut self, what: EmbeddedText) {
        self.open(what);
        self.is_read_only = true;
    }

    /// True if the next text is to be buffered.
    pub(crate) fn is_open(&self) -> bool {
        self.what.is_some()
    }

    /// Cancels buffering: the next text belongs to another element.
    pub(crate) fn close(&mut self) {
        self.what = None;
    }

    /// Buffers more text. Above [`MAX_EMBEDDED_BYTES`] it returns the buffered text, and buffers no more.
    pub(crate) fn push(&mut self, text: &str) -> Option<String> {
        if self.text.len() + text.len() > MAX_EMBEDDED_BYTES {
            self.what = None;
            return Some(std::mem::take(&mut self.text));
        }
        self.text.push_str(text);
        None
    }

    /// Takes the buffered text, unchanged.
    pub(crate) fn take(&mut self) -> String {
        self.what = None;
        std::mem::take(&mut self.text)
    }
}

/// The state of a page.
pub(crate) struct PageState {
    pub(crate) rules: Arc<Rules>,
    pub(crate) document: Url,
    /// Its base in the browser, if it is a page of a host with an alias.
    browser_base: Option<Url>,
    base: Option<Url>,
    absolute_urls: bool,
    origin_cache: OriginCache,
    pub(crate) policies: Policies,
    pub(crate) charset: Charset,
    pub(crate) seen: Option<Arc<dyn SiteFacts>>,
    /// Which hosts get a `Referer` from the page, unless an element overrides it.
    pub(crate) referrer_scope: ReferrerScope,
    /// The referrer policy of the current element.
    pub(crate) element_referrer: Option<ReferrerScope>,
    pub(crate) held: TextBuffer,
    /// The text of the current inline module so far. It passes unchanged.
    pub(crate) inline_module: Option<String>,
    /// True if the page has an import map, or was given one, or it is too late for one.
    pub(crate) has_import_map: bool,
    /// True if the current element loads its resource by CORS, so that the page may read it.
    pub(crate) by_cors: bool,
    /// True if no hint can express that load.
    pub(crate) cannot_preload: bool,
    /// True if the last `video` or `audio` sends cookies for its sources and tracks.
    pub(crate) media_with_cookies: bool,
    /// The kind of the sources of the last `video`, `audio` or `picture`.
    pub(crate) source_kind: Kind,
    /// Number of open `template` elements, whose content is not part of the document.
    pub(crate) templates: usize,
    pub(crate) report: PageReport,
}

impl PageState {
    pub(crate) fn new(
        rules: &Arc<Rules>,
        url: &Url,
        head: PageHead,
        seen: Option<Arc<dyn SiteFacts>>,
    ) -> Self {
        let mut report = PageReport::default();
        report.skip_reason = head.left;
        head.references
            .into_iter()
            .for_each(|reference| report.add(reference));
        Self {
            absolute_urls: false,
            browser_base: head.browser_base,
            rules: rules.clone(),
            document: url.clone(),
            base: None,
            origin_cache: OriginCache::default(),
            policies: head.policies,
            charset: Charset::SingleByte,
            seen,
            referrer_scope: head.referrer_scope,
            element_referrer: None,
            held: TextBuffer::default(),
            inline_module: None,
            has_import_map: false,
            by_cors: false,
            cannot_preload: false,
            media_with_cookies: false,
            source_kind: Kind::Image,
            templates: 0,
            report,
        }
    }

    /// The first `base` with an `href` is used, from its position on; it has no effect if it is not a web URL, or not allowed by
    /// the page's policy.
    pub(crate) fn set_base(&mut self, href: &str) {
        if self.base.is_some() {
            return;
        }
        let base = self.document.join(href.trim()).ok();
        let base = base.filter(|base| is_http(base) && self.policies.allow_base(base));
        let base = base.unwrap_or_else(|| self.document.clone());
        self.absolute_urls = base.origin() != self.document.origin();
        self.browser_base = self.browser_base.take().map(|seen| {
            let base = seen.join(href.trim()).ok();
            let base = base.filter(|base| is_http(base) && self.policies.allow_browser_base(base));
            base.unwrap_or(seen)
        });
        self.base = Some(base);
        self.origin_cache = OriginCache::default();
    }

    /// Sets a base that cannot be read with certainty: relative references are left unchanged, and rewritten ones are written in
    /// full.
    pub(crate) fn set_unreadable_base(&mut self) {
        if self.base.is_none() {
            self.base = Some(self.document.clone());
            self.absolute_urls = true;
            self.origin_cache = OriginCache::default();
        }
    }

    /// The facts about the page at its end, for later requests.
    pub(crate) fn end(&mut self) -> PageReport {
        let mut report = std::mem::take(&mut self.report);
        report.referrer_scope = self.referrer_scope;
        let base = self.browser_base.as_ref().or(self.base.as_ref());
        report.modules.base = base.map(Url::to_string);
        if !self.is_named() {
            report.guarded = CspGuard::from_policies(&self.rules, &self.policies);
        }
        report
    }

    /// True if it is a page of a host with an alias, not of the site itself.
    pub(crate) fn is_named(&self) -> bool {
        self.browser_base.is_some()
    }

    /// The context of references in the page itself.
    pub(crate) fn place(&self) -> ReferenceContext<'_> {
        ReferenceContext {
            rules: &self.rules,
            page: &self.document,
            base: self.base.as_ref().unwrap_or(&self.document),
            browser_base: self.browser_base.as_ref(),
            absolute_urls: self.absolute_urls,
            source: match self.is_named() {
                true => ReferenceSource::Alias,
                false => ReferenceSource::Site,
            },
            ascii_only: self.charset != Charset::Utf8,
            policies: Some(&self.policies),
            seen: self.seen.as_deref(),
            origin_cache: Some(&self.origin_cache),
        }
    }

    /// Decodes the source of an attribute's value; `None` if the result is not certain.
    pub(crate) fn decode_attribute<'s>(&self, source: &'s str) -> Option<Cow<'s, str>> {
        let meant = match self.charset.decode_attribute(source)? {
            Cow::Borrowed(text) => entities::decode(text)?,
            Cow::Owned(text) => Cow::Owned(entities::decode(&text)?.into_owned()),
        };
        (self.charset == Charset::Utf8 || meant.is_ascii()).then_some(meant)
    }

    /// Encodes a value as source, without quotes.
    pub(crate) fn encode_attribute<'m>(&self, meant: &'m str) -> Cow<'m, str> {
        self.charset.encode_attribute(entities::encode(meant))
    }

    fn encode_owned(&self, meant: String) -> String {
        let encoded = match self.encode_attribute(&meant) {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => Some(text),
        };
        encoded.unwrap_or(meant)
    }

    /// Rewrites one URL, and reports it; returns the replacement, if any.
    pub(crate) fn rewrite_reference(
        &mut self,
        source: &str,
        kind: Kind,
        credentials: CspCredentials<'_>,
        reason: Option<SkipReason>,
    ) -> Option<String> {
        let judged = match self.decode_attribute(source) {
            Some(text) => self
                .place()
                .rewrite_unless(reason, &text, kind, credentials),
            None => self.unreadable(source, kind),
        };
        self.report(judged).map(|url| self.encode_owned(url))
    }

    fn unreadable(&self, source: &str, kind: Kind) -> ReferenceRewrite {
        let url = source.to_owned();
        ReferenceRewrite {
            written: None,
            reference: Some(Reference {
                url,
                kind,
                by_cors: kind == Kind::Font,
                cannot_preload: false,
                is_candidate: false,
                referrer_scope: ReferrerScope::All,
                outcome: Err(SkipReason::UnknownEncoding),
            }),
        }
    }

    fn report(&mut self, judged: ReferenceRewrite) -> Option<String> {
        if let Some(mut reference) = judged.reference {
            reference.by_cors |= self.by_cors;
            reference.cannot_preload |= self.cannot_preload;
            reference.referrer_scope = self.element_referrer.unwrap_or(self.referrer_scope);
            self.report.add(reference);
        }
        judged.written
    }

    /// The same for each URL of a `srcset`.
    pub(crate) fn rewrite_srcset(
        &mut self,
        source: &str,
        reason: Option<&SkipReason>,
    ) -> Option<String> {
        let Some(text) = self.decode_attribute(source) else {
            let judged = self.unreadable(source, Kind::Image);
            return self.report(judged);
        };
        let written = srcset::replace_urls(&text, |url| {
            let judged = self.place().rewrite_candidate(reason.cloned(), url);
            self.report(judged)
        });
        written.map(|text| self.encode_owned(text))
    }

    /// The same for the value of a `style` attribute.
    pub(crate) fn rewrite_style(&mut self, source: &str) -> Option<String> {
        // Without a parenthesis there is no reference; a parenthesis may be written as a character reference.
        if !source.contains(['(', '&']) {
            return None;
        }
        let text = self.decode_attribute(source)?;
        let (rewritten, found) = rewrite_css(&self.place(), &text);
        self.report_all(found);
        rewritten.map(|text| self.encode_owned(text))
    }

    /// The same for a value that the page's policy allows only unchanged: references are only reported.
    pub(crate) fn report_fixed_style(&mut self, source: &str) {
        if let Some(text) = self.decode_attribute(source) {
            let (_, found) = rewrite_css(&self.place(), &text);
            self.report_all(found.into_iter().map(skipped_by_policy));
        }
    }

    fn report_all(&mut self, found: impl IntoIterator<Item = Reference>) {
        let referrer_scope = self.referrer_scope;
        let found = found.into_iter().map(|found| Reference {
            referrer_scope,
            ..found
        });
        found.for_each(|reference| self.report.add(reference));
    }

    /// The origins of other hosts that the page has referenced so far.
    pub(crate) fn referenced_origins(&self) -> BTreeSet<String> {
        self.report.hosts.keys().cloned().collect()
    }

    /// Adds text to the current inline module; `is_last` ends it. A module that is too long is dropped.
    pub(crate) fn read_inline_module(&mut self, text: &str, is_last: bool) {
        let Some(mut script) = self.inline_module.take() else {
            return;
        };
        if script.len() + text.len() > MAX_EMBEDDED_BYTES {
            return;
        }
        script.push_str(text);
        match is_last {
            true => self.report.modules.add_inline(&script),
            false => self.inline_module = Some(script),
        }
    }

    /// Rewrites the buffered text.
    pub(crate) fn finish_text(&mut self) -> String {
        let (what, is_fixed) = (self.held.what, self.held.is_read_only);
        let source = self.held.take();
        // If not every character is certain, those of ASCII are, unless they may be parts of others.
        let meant = self.charset.decode_attribute(&source);
        let place = ReferenceContext {
            ascii_only: meant.is_none() || self.charset != Charset::Utf8,
            ..self.place()
        };
        let text = match &meant {
            Some(text) => text,
            None if self.charset == Charset::MultiByte => return source,
            None => source.as_str(),
        };
        let (rewritten, found) = match what {
            Some(EmbeddedText::Style) => rewrite_css(&place, text),
            Some(EmbeddedText::ImportMap) => {
                let mut found = Vec::new();
                (
                    import_map::rewrite(
                        &place,
                        text,
                        &self.referenced_origins(),
                        &mut |reference| {
                            // Modules read their imports.
                            let by_cors = true;
                            found.push(Reference {
                                by_cors,
                                ..reference
                            });
                        },
                    ),
                    found,
                )
            }
            None => (None, Vec::new()),
        };
        let is_meant = meant.is_some();
        if what == Some(EmbeddedText::ImportMap) && self.templates == 0 {
            let served = rewritten.as_deref().filter(|_| !is_fixed).unwrap_or(text);
            self.report.modules.add_import_map(served);
        }
        if is_fixed {
            self.report_all(found.into_iter().map(skipped_by_policy));
            return source;
        }
        self.report_all(found);
        match rewritten {
            Some(text) if is_meant => self.charset.encode_attribute(text).into_owned(),
            Some(text) => text,
            None => source,
        }
    }
}

fn is_http(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

/// A reference in a text that stays unchanged.
fn skipped_by_policy(reference: Reference) -> Reference {
    let outcome = reference.outcome.and(Err(SkipReason::Policy));
    Reference {
        outcome,
        ..reference
    }
}

fn rewrite_css(place: &ReferenceContext<'_>, text: &str) -> (Option<String>, Vec<Reference>) {
    let mut found = Vec::new();
    let rewritten = css::rewrite_at(place, text, &mut |reference| found.push(reference));
    let rewritten = match rewritten {
        Cow::Owned(text) => Some(text),
        Cow::Borrowed(_) => None,
    };
    (rewritten, found)
}
