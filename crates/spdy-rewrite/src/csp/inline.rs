//! The parts of a page's policies about the page itself: inline content, `base`, and whether it has an origin.
//!
//! A hash admits exactly one text (CSP §6.7.3.3): such a text is never rewritten, because no source would admit the new text. A
//! nonce, or `'unsafe-inline'` without a hash or nonce that disables it, admits any text.

use http::header::{CONTENT_SECURITY_POLICY, HeaderMap};
use url::Url;

use crate::csp::source::Source;
use crate::csp::{Policies, Policy, has, has_nonce, is_hash, is_nonce, parse_all};

/// Inline content of a page.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Inline<'a> {
    /// The text of a script element or an import map with this nonce.
    Script(Option<&'a str>),
    /// The text of a `style` element with this nonce.
    Style(Option<&'a str>),
    /// A `style` attribute.
    StyleAttribute,
}

impl Inline<'_> {
    /// The directives that apply to it; the first that is present is used.
    fn governing(self) -> &'static [&'static str] {
        match self {
            Self::Script(_) => &["script-src-elem", "script-src", "default-src"],
            Self::Style(_) => &["style-src-elem", "style-src", "default-src"],
            Self::StyleAttribute => &["style-src-attr", "style-src", "default-src"],
        }
    }

    /// True if it is admitted with any text (CSP §6.7.3.2).
    fn is_admitted_by(self, sources: &[String]) -> bool {
        let (nonce, is_script) = match self {
            Self::Script(nonce) => (nonce, true),
            Self::Style(nonce) => (nonce, false),
            Self::StyleAttribute => (None, false),
        };
        let is_strict = is_script && has(sources, "'strict-dynamic'")
            || sources
                .iter()
                .any(|source| is_hash(source) || is_nonce(source));
        has_nonce(sources, nonce) || has(sources, "'unsafe-inline'") && !is_strict
    }
}

impl Policies {
    /// True if `inline` may be inserted: no enforced policy blocks it, and no report-only policy reports it.
    pub(crate) fn allow_inline(&self, inline: Inline<'_>) -> bool {
        let mut all = self.original.iter().chain(&self.reported);
        all.all(|policy| admits(policy, inline))
    }

    /// True if any `inline` content in the page takes effect: report-only policies block nothing.
    pub(crate) fn allows_effect(&self, inline: Inline<'_>) -> bool {
        self.original.iter().all(|policy| admits(policy, inline))
    }

    /// True if the text of `inline`, which is in the page, may change: enforced policies still allow it, and report-only ones report it
    /// no more than before.
    pub(crate) fn allow_rewriting(&self, inline: Inline<'_>) -> bool {
        let is_named = |policy: &Policy| {
            let sources = policy.first_of(inline.governing()).unwrap_or_default();
            sources.iter().any(|source| is_hash(source))
        };
        let mut reported = self.reported.iter();
        self.allows_effect(inline)
            && reported.all(|policy| admits(policy, inline) || !is_named(policy))
    }

    /// True if a `base` element may set `url` on the page's own host (CSP §6.3.1): browsers ignore others.
    pub(crate) fn allow_base(&self, url: &Url) -> bool {
        self.allow_base_from(&self.at.original, url)
    }

    /// The same from the browser's view of the page.
    pub(crate) fn allow_browser_base(&self, url: &Url) -> bool {
        self.allow_base_from(&self.at.seen, url)
    }

    fn allow_base_from(&self, page: &Url, url: &Url) -> bool {
        self.original.iter().all(|policy| {
            policy.first_of(&["base-uri"]).is_none_or(|sources| {
                let mut sources = sources.iter().filter_map(|source| Source::parse(source));
                sources.any(|source| source.matches(page, url))
            })
        })
    }
}

fn admits(policy: &Policy, inline: Inline<'_>) -> bool {
    let sources = policy.first_of(inline.governing());
    sources.is_none_or(|sources| inline.is_admitted_by(sources))
}

/// True if these fields remove a page's origin (HTML §7.6, `sandbox`): all resources under the site's name are then cross-origin
/// for it.
pub(crate) fn has_csp_sandbox(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CONTENT_SECURITY_POLICY).iter();
    let texts = values.map(|value| String::from_utf8_lossy(value.as_bytes()));
    texts.into_iter().any(|text| {
        parse_all(&text).any(|policy| {
            let flags = policy.first_of(&["sandbox"]);
            flags.is_some_and(|flags| !has(flags, "allow-same-origin"))
        })
    })
}
