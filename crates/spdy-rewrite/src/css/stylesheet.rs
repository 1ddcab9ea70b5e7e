//! Rewrites a style sheet: replaces the tokens that are URLs, and leaves every other byte unchanged.
//!
//! In a proxied style sheet, relative references stay correct, because a proxied path has the same form. A reference from the root
//! (`/x.png`) or above would now mean the site's, so it is rewritten. A reference that must not be proxied is written as an
//! absolute URL. If the style sheet's bytes cannot be decoded with certainty, it is not served under the site's name, but replaced
//! by one line that imports it from its host.

use std::borrow::Cow;

use spdy_markup::charset::{Charset, encoding_of_sheet};
use spdy_markup::css_urls::{CssUrl, TokenForm, UrlUse, end_of_rules, urls};
use url::Url;

use crate::csp::CspCredentials;
use crate::kind::Kind;
use crate::reference::{Reference, ReferenceContext, ReferenceRewrite};
use crate::referrer::ReferrerScope;
use crate::rules::Rules;
use crate::rules::verdict::{ReferenceSource, SkipReason};
use crate::urls::proxied_url::ProxiedUrl;

/// The context of a style sheet that is a separate resource.
#[derive(Clone, Debug)]
pub struct StylesheetContext {
    base: Url,
    /// The URL under which it is served, if that is not its own.
    browser_base: Option<Url>,
    /// Its URL on its host, if it is proxied.
    original_url: Option<Url>,
    finder: ReferenceSource,
}

impl StylesheetContext {
    /// A style sheet of the site itself at `url`, served under its own URL.
    pub fn own(url: &Url) -> Self {
        Self {
            base: url.clone(),
            browser_base: None,
            original_url: None,
            finder: ReferenceSource::Site,
        }
    }

    /// A style sheet that was requested as `moved`, and received from `last` (the same, unless redirects were followed).
    pub fn moved(rules: &Rules, moved: &ProxiedUrl, last: &ProxiedUrl) -> Self {
        Self {
            base: last.url().clone(),
            browser_base: rules.site().join(&moved.path()).ok(),
            original_url: Some(moved.url().clone()),
            finder: last.reference_source(),
        }
    }

    /// The replacement for a proxied style sheet that must be loaded from its host: it imports it from there. `None` for a style
    /// sheet of the site itself.
    ///
    /// It begins with a BOM, which overrides any encoding in the head (CSS Syntax §3.2).
    pub fn import_only_body(&self) -> Option<Vec<u8>> {
        let mut text = "\u{feff}@import ".to_owned();
        write(
            &mut text,
            "\"",
            TokenForm::Quoted,
            self.original_url.as_ref()?.as_str(),
        );
        text.push_str(";\n");
        Some(text.into_bytes())
    }

    fn place<'a>(&'a self, rules: &'a Rules) -> ReferenceContext<'a> {
        let page = match self.browser_base {
            Some(_) => rules.site(),
            None => &self.base,
        };
        ReferenceContext {
            rules,
            page,
            base: &self.base,
            browser_base: self.browser_base.as_ref(),
            absolute_urls: false,
            source: self.finder,
            ascii_only: false,
            policies: None,
            seen: None,
            origin_cache: None,
        }
    }
}

/// A rewritten style sheet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RewrittenStylesheet<'t> {
    /// Its bytes: unchanged, if nothing was to be rewritten; or [`StylesheetContext::import_only_body`], if it must be loaded from
    /// its host.
    pub body: Cow<'t, [u8]>,
    /// Its references, in order.
    pub references: Vec<Reference>,
    /// Why it was not rewritten, if so.
    pub left: Option<SkipReason>,
}

/// Rewrites the bytes of a style sheet; `declared` is the charset of its Content-Type.
///
/// A style sheet whose encoding is not a superset of ASCII is unchanged, and so is one in a multi-byte encoding other than UTF-8,
/// in which a byte that looks like a quote may be a part of a character. A proxied one whose references would then have another
/// meaning is replaced.
pub fn rewrite_bytes<'t>(
    rules: &Rules,
    sheet: &StylesheetContext,
    bytes: &'t [u8],
    declared: Option<&str>,
) -> RewrittenStylesheet<'t> {
    let left = |body| RewrittenStylesheet {
        body,
        references: Vec::new(),
        left: Some(SkipReason::UnknownEncoding),
    };
    let charset = match Charset::of_stylesheet(bytes, declared) {
        // No multi-byte character contains a byte of ASCII, well-formed or not (Encoding §8.1.1).
        Charset::Utf8 if std::str::from_utf8(bytes).is_err() => Charset::SingleByte,
        charset => charset,
    };
    let Some(text) = charset.decode(bytes) else {
        let astray = import_only_if_unsafe(rules, sheet, bytes, declared, |_| true);
        return left(astray.map_or(Cow::Borrowed(bytes), Cow::Owned));
    };
    let mut references = Vec::new();
    let place = ReferenceContext {
        ascii_only: charset != Charset::Utf8,
        ..sheet.place(rules)
    };
    if place.ascii_only
        && let Some(elsewhere) =
            import_only_if_unsafe(rules, sheet, bytes, declared, |text| !text.is_ascii())
    {
        return left(Cow::Owned(elsewhere));
    }
    let rewritten = match rewrite_at(&place, &text, &mut |found| references.push(found)) {
        Cow::Borrowed(_) => Cow::Borrowed(bytes),
        Cow::Owned(rewritten) => Cow::Owned(charset.encode(rewritten)),
    };
    RewrittenStylesheet {
        body: rewritten,
        references,
        left: None,
    }
}

/// The replacement for a moved sheet in which a reference would lead elsewhere and, by `is_unread`, cannot be rewritten.
fn import_only_if_unsafe(
    rules: &Rules,
    sheet: &StylesheetContext,
    bytes: &[u8],
    declared: Option<&str>,
    is_unread: fn(&str) -> bool,
) -> Option<Vec<u8>> {
    let elsewhere = sheet.import_only_body()?;
    let (text, ..) = encoding_of_sheet(bytes, declared).decode(bytes);
    let place = sheet.place(rules);
    let mut named = urls(&text).into_iter();
    named
        .any(|named| {
            is_unread(&named.url)
                && place.resolves_elsewhere(&named.url, || rewrite_reference(&place, &named))
        })
        .then_some(elsewhere)
}

/// Rewrites the beginning of a style sheet that is too long to be buffered: up to the last rule in `bytes` that is certainly
/// complete. Returns the number of these bytes. The rest is rewritten in the same way, declared as UTF-8.
///
/// `None` if there is no such position, or if it is not UTF-8: then the end of a rule is not certain.
pub fn rewrite_prefix<'t>(
    rules: &Rules,
    sheet: &StylesheetContext,
    bytes: &'t [u8],
    declared: Option<&str>,
) -> Option<(RewrittenStylesheet<'t>, usize)> {
    if Charset::of_stylesheet(bytes, declared) != Charset::Utf8 {
        return None;
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // The end of a character has not arrived yet.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return None,
    };
    let end = end_of_rules(text)?;
    let rewritten = rewrite_bytes(rules, sheet, &bytes[..end], Some(UTF_8));
    Some((rewritten, end))
}

/// The declared encoding of the rest of a sheet whose beginning was rewritten.
pub const UTF_8: &str = "utf-8";

/// Rewrites the text of a style sheet; `found` is called for each reference, in order.
pub fn rewrite<'t>(
    rules: &Rules,
    sheet: &StylesheetContext,
    text: &'t str,
    found: &mut dyn FnMut(Reference),
) -> Cow<'t, str> {
    rewrite_at(&sheet.place(rules), text, found)
}

/// The same for CSS in a sheet, a `style` element or a `style` attribute.
pub(crate) fn rewrite_at<'t>(
    place: &ReferenceContext<'_>,
    text: &'t str,
    found: &mut dyn FnMut(Reference),
) -> Cow<'t, str> {
    let mut out = String::new();
    let mut copied = 0;
    for named in urls(text) {
        let mut judged = rewrite_reference(place, &named);
        if let Some(reference) = &mut judged.reference {
            reference.is_candidate = named.is_candidate;
        }
        judged.reference.into_iter().for_each(&mut *found);
        let Some(written) = judged.written else {
            continue;
        };
        out.push_str(&text[copied..named.span.start]);
        write(&mut out, &text[named.span.clone()], named.form, &written);
        copied = named.span.end;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

fn rewrite_reference(place: &ReferenceContext<'_>, named: &CssUrl) -> ReferenceRewrite {
    let kind = match named.usage {
        UrlUse::Import => Kind::Style,
        UrlUse::Font => Kind::Font,
        UrlUse::Image | UrlUse::Fragment | UrlUse::Custom => Kind::Image,
    };
    let text = named.url.as_str();
    let leave = |reason| {
        let url = place.base.join(text).ok();
        let reference = url.as_ref().map(|url| Reference {
            url: url.to_string(),
            kind,
            by_cors: kind == Kind::Font,
            cannot_preload: false,
            is_candidate: false,
            referrer_scope: ReferrerScope::All,
            outcome: Err(reason),
        });
        let written = url.and_then(|url| place.absolute_url(text, &url));
        ReferenceRewrite { written, reference }
    };
    match named.usage {
        // It is relative to the element that uses it, in some browsers to this style sheet. Only an absolute URL is certain, and
        // that a path from the root of a proxied style sheet's host does not mean the site's.
        UrlUse::Custom if !is_absolute(text) && !leaves_host(place, text) => ReferenceRewrite {
            written: None,
            reference: None,
        },
        UrlUse::Fragment if text.contains('#') && !text.starts_with('#') => {
            leave(SkipReason::Fragment)
        }
        _ => place.rewrite(text, kind, CspCredentials::default()),
    }
}

fn is_absolute(text: &str) -> bool {
    text.starts_with("//") || Url::parse(text).is_ok()
}

/// True if `text` is a path from the root, which would be that of another host than the style sheet's.
fn leaves_host(place: &ReferenceContext<'_>, text: &str) -> bool {
    place.browser_base.is_some() && text.trim_start().starts_with('/')
}

/// Writes `url` in the form of the token that it replaces.
fn write(out: &mut String, token: &str, form: TokenForm, url: &str) {
    match form {
        TokenForm::Quoted => {
            let quote = if token.starts_with('\'') { '\'' } else { '"' };
            out.push(quote);
            for letter in url.chars() {
                if letter == quote || letter == '\\' {
                    out.push('\\');
                }
                out.push(letter);
            }
            out.push(quote);
        }
        TokenForm::Unquoted => {
            let open = token.find('(').map_or(token.len(), |at| at + 1);
            out.push_str(&token[..open]);
            for letter in url.chars() {
                if matches!(letter, '(' | ')' | '\'' | '"' | '\\') {
                    out.push('\\');
                }
                out.push(letter);
            }
            out.push(')');
        }
    }
}
