//! Rewrites one element of a page: which of its attributes are references, of which kind, and their new values.

use std::borrow::Cow;

use lol_html::send::Element;
use url::Url;

use crate::csp::CspCredentials;
use crate::csp::inline::Inline;
use crate::html::import_map_element::insert_import_map;
use crate::html::link_use::{self, LinkUse};
use crate::html::page_state::{EmbeddedText, PageState};
use crate::html::tag::Tag;
use crate::kind::{Kind, is_javascript};
use crate::reference::ReferenceContext;
use crate::reference::integrity;
use crate::reference::pinned_reference::{self, IntegrityRewrite};
use crate::referrer::ReferrerScope;
use crate::rules::OPT_OUT;
use crate::rules::verdict::SkipReason;

/// Rewrites the attributes of `element`, and determines the kind of its text.
pub(crate) fn rewrite(page: &mut PageState, element: &mut Element<'_, '_>) {
    let tag = &mut Tag::new(element);
    let name = tag.name();
    let is_of_media = matches!(name.as_str(), "source" | "track");
    let with_cookies = sends_cookies(tag) || page.media_with_cookies && is_of_media;
    let reason = if tag.is_malformed() {
        Some(SkipReason::MalformedTag)
    } else if tag.has(OPT_OUT) {
        Some(SkipReason::OptOut)
    } else if with_cookies {
        Some(SkipReason::Credentials)
    } else {
        None
    };
    page.by_cors = tag.has("crossorigin");
    page.cannot_preload = with_cookies || is_pinned(tag);
    let referrer_policy = tag.get("referrerpolicy");
    page.element_referrer = referrer_policy.and_then(|word| ReferrerScope::from_token(&word));
    match name.as_str() {
        "template" if tag.is_html() => page.templates += 1,
        "base" if tag.is_html() && page.templates == 0 => {
            if let Some(href) = tag.get("href") {
                match page.decode_attribute(&href).map(Cow::into_owned) {
                    Some(href) => page.set_base(&href),
                    None => page.set_unreadable_base(),
                }
            }
        }
        "meta" if page.templates == 0 => meta(page, tag, reason.as_ref()),
        // In SVG it is neither a link nor a void element: removing it would remove everything after it.
        "link" if tag.is_html() => link(page, tag, reason.as_ref()),
        "script" => script(page, tag, reason.as_ref()),
        "style" => style(page, tag, reason.as_ref()),
        "img" => {
            url(page, tag, "src", Kind::Image, reason.as_ref());
            rewrite_srcset(page, tag, "srcset", reason.as_ref());
        }
        "picture" => {
            page.media_with_cookies = false;
            page.source_kind = Kind::Image;
        }
        "source" => {
            url(page, tag, "src", Kind::Media, reason.as_ref());
            rewrite_srcset(page, tag, "srcset", reason.as_ref());
        }
        "video" | "audio" => {
            page.media_with_cookies = reason == Some(SkipReason::Credentials);
            page.source_kind = Kind::Media;
            url(page, tag, "src", Kind::Media, reason.as_ref());
            // A poster is an image without CORS, regardless of the element's attributes.
            page.by_cors = false;
            page.cannot_preload = false;
            let reason = reason
                .as_ref()
                .filter(|reason| **reason != SkipReason::Credentials);
            url(page, tag, "poster", Kind::Image, reason);
        }
        "track" => url(page, tag, "src", Kind::Media, reason.as_ref()),
        "input" => {
            let is_image = tag
                .get("type")
                .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("image"));
            if is_image {
                url(page, tag, "src", Kind::Image, reason.as_ref());
            }
        }
        // `image` outside of SVG is a synonym of `img` in browsers.
        "image" | "feimage" => {
            for name in ["href", "xlink:href", "src"] {
                url(page, tag, name, Kind::Image, reason.as_ref());
            }
            rewrite_srcset(page, tag, "srcset", reason.as_ref());
        }
        "iframe" | "frame" | "embed" => document(page, tag, "src", reason.as_ref()),
        "object" => document(page, tag, "data", reason.as_ref()),
        "portal" => left(page, tag, "src", &SkipReason::Document),
        "use" => {
            left(page, tag, "href", &SkipReason::Fragment);
            left(page, tag, "xlink:href", &SkipReason::Fragment);
        }
        _ => {}
    }
    url(page, tag, "background", Kind::Image, reason.as_ref());
    rewrite_lazy_attributes(page, tag, &name, reason.as_ref());
    if let Some(source) = tag.get("style")
        && !is_skipped(reason.as_ref())
    {
        style_attribute(page, tag, &source);
    }
}

fn style_attribute(page: &mut PageState, tag: &mut Tag<'_, '_, '_>, source: &str) {
    if !page.policies.allow_rewriting(Inline::StyleAttribute) {
        page.report_fixed_style(source);
    } else if let Some(written) = page.rewrite_style(source) {
        tag.set("style", &written);
    }
}

/// True if the element stays unchanged, regardless of its references.
fn is_skipped(reason: Option<&SkipReason>) -> bool {
    matches!(reason, Some(SkipReason::OptOut | SkipReason::MalformedTag))
}

fn sends_cookies(tag: &Tag<'_, '_, '_>) -> bool {
    tag.get("crossorigin")
        .is_some_and(|mode| mode.trim().eq_ignore_ascii_case("use-credentials"))
}

fn is_pinned(tag: &Tag<'_, '_, '_>) -> bool {
    let metadata = tag.get("integrity");
    metadata.is_some_and(|metadata| integrity::has_integrity(&metadata))
}

fn url(
    page: &mut PageState,
    tag: &mut Tag<'_, '_, '_>,
    name: &str,
    kind: Kind,
    reason: Option<&SkipReason>,
) {
    if let Some(source) = tag.get(name)
        && let Some(written) =
            page.rewrite_reference(&source, kind, CspCredentials::default(), reason.cloned())
    {
        tag.set(name, &written);
    }
}

fn rewrite_srcset(
    page: &mut PageState,
    tag: &mut Tag<'_, '_, '_>,
    name: &str,
    reason: Option<&SkipReason>,
) {
    if let Some(source) = tag.get(name)
        && let Some(written) = page.rewrite_srcset(&source, reason)
    {
        tag.set(name, &written);
    }
}

/// A frame or a plug-in: rewritten if its host has an alias.
fn document(
    page: &mut PageState,
    tag: &mut Tag<'_, '_, '_>,
    name: &str,
    reason: Option<&SkipReason>,
) {
    let unnamed = match attribute_url(page, tag, name) {
        Some(url) if page.rules.alias_of(&url).is_some() => None,
        Some(url) => Some(page.rules.no_alias_reason(&url)),
        None => Some(SkipReason::Document),
    };
    match unnamed {
        None => url(page, tag, name, Kind::Document, reason),
        Some(no_alias) => left(page, tag, name, &no_alias),
    }
}

/// The URL in an attribute, if it is certain.
fn attribute_url(page: &PageState, tag: &Tag<'_, '_, '_>, name: &str) -> Option<Url> {
    let source = tag.get(name)?;
    let text = page.decode_attribute(&source)?;
    page.place().base.join(text.trim()).ok()
}

/// Reports a reference that is never rewritten, if it is to another host.
fn left(page: &mut PageState, tag: &Tag<'_, '_, '_>, name: &str, reason: &SkipReason) {
    let Some(url) = attribute_url(page, tag, name) else {
        return;
    };
    let is_foreign = url
        .host_str()
        .is_some_and(|host| !page.rules.is_site_host(host));
    if is_foreign {
        page.report.count_unchanged(url.as_str(), reason);
    }
}

/// Rewrites attributes that a script of the page copies to others.
fn rewrite_lazy_attributes(
    page: &mut PageState,
    tag: &mut Tag<'_, '_, '_>,
    element: &str,
    reason: Option<&SkipReason>,
) {
    let rules = page.rules.clone();
    let kind = match element {
        "script" => Kind::Script,
        "link" => Kind::Style,
        "video" | "audio" | "track" => Kind::Media,
        "source" => page.source_kind,
        "iframe" | "frame" | "embed" | "object" => return,
        _ => Kind::Image,
    };
    for name in rules.lazy_attributes() {
        let Some(source) = tag.get(name) else {
            continue;
        };
        if name.ends_with("srcset") {
            rewrite_srcset(page, tag, name, reason);
        } else if source.contains("url(") {
            if reason.is_none()
                && let Some(written) = page.rewrite_style(&source)
            {
                tag.set(name, &written);
            }
        } else {
            url(page, tag, name, kind, reason);
        }
    }
}

fn meta(page: &mut PageState, tag: &mut Tag<'_, '_, '_>, reason: Option<&SkipReason>) {
    let name = tag.get("name").unwrap_or_default();
    if name.trim().eq_ignore_ascii_case("referrer")
        && let Some(content) = tag.get("content")
        && let Some(referrer_scope) = ReferrerScope::from_token(&content)
    {
        page.referrer_scope = referrer_scope;
    }
    let is_policy = tag
        .get("http-equiv")
        .is_some_and(|name| name.trim().eq_ignore_ascii_case("content-security-policy"));
    let content = tag.get("content").filter(|_| is_policy);
    let Some(text) = content
        .as_deref()
        .and_then(|content| page.decode_attribute(content))
    else {
        return;
    };
    if reason == Some(&SkipReason::MalformedTag) {
        page.policies.add_unreadable();
        return;
    }
    let rules = page.rules.clone();
    if let Some(written) = page.policies.add(&rules, &text) {
        let written = page.encode_attribute(&written);
        tag.set("content", &written);
    }
}

fn style(page: &mut PageState, tag: &Tag<'_, '_, '_>, reason: Option<&SkipReason>) {
    page.inline_module = None;
    // In SVG the text of a style element is markup with character references, and lol_html does not return the whole text.
    if !tag.is_html() || is_skipped(reason) {
        page.held.close();
        return;
    }
    let nonce = tag.get("nonce");
    match page
        .policies
        .allow_rewriting(Inline::Style(nonce.as_deref()))
    {
        true => page.held.open(EmbeddedText::Style),
        false => page.held.open_read_only(EmbeddedText::Style),
    }
}

fn link(page: &mut PageState, tag: &mut Tag<'_, '_, '_>, reason: Option<&SkipReason>) {
    let rel = tag.get("rel").unwrap_or_default();
    let used = link_use::of(&rel, tag.get("as").as_deref());
    let kind = match used {
        LinkUse::Fetch(kind) => kind,
        LinkUse::Module => {
            insert_import_map(page, tag, is_skipped(reason));
            module(page, tag, "href", true, reason);
            return;
        }
        LinkUse::Connect => {
            if let Some(href) = tag.get("href").filter(|_| !is_skipped(reason))
                && let Some(href) = page.decode_attribute(&href).map(Cow::into_owned)
                && page.place().removes_preconnect(&href)
            {
                page.report.add_removed_preconnect(href);
                // Must not be empty: `<` before it and `img` after it would become a tag.
                tag.replace("<!---->");
            }
            return;
        }
        LinkUse::Other => return,
    };
    if kind == Kind::Image {
        rewrite_srcset(page, tag, "imagesrcset", reason);
    }
    rewrite_subresource(page, tag, "href", kind, false, reason);
}

fn script(page: &mut PageState, tag: &mut Tag<'_, '_, '_>, reason: Option<&SkipReason>) {
    page.held.close();
    page.inline_module = None;
    let kind = tag.get("type").unwrap_or_default().to_ascii_lowercase();
    match kind.as_str() {
        "importmap" => {
            page.has_import_map |= page.templates == 0;
            if !is_skipped(reason) && !tag.has("src") {
                let nonce = tag.get("nonce");
                match page
                    .policies
                    .allow_rewriting(Inline::Script(nonce.as_deref()))
                {
                    true => page.held.open(EmbeddedText::ImportMap),
                    false => page.held.open_read_only(EmbeddedText::ImportMap),
                }
            }
        }
        kind if kind.trim() == "module" => {
            insert_import_map(page, tag, is_skipped(reason));
            if page.templates == 0 && !tag.has("src") {
                page.inline_module = Some(String::new());
            }
            module(page, tag, "src", false, reason);
        }
        kind if kind.is_empty() || is_javascript(kind.trim()) => {
            rewrite_subresource(page, tag, "src", Kind::Script, false, reason);
            for name in ["href", "xlink:href"] {
                if !tag.is_html() {
                    rewrite_subresource(page, tag, name, Kind::Script, false, reason);
                }
            }
        }
        // Data, templates, speculation rules: their content is not rewritten.
        _ => {}
    }
}

/// A module. `'strict-dynamic'` trusts scripts that no parser inserted, and preloads of modules count as such (`imported`); others
/// do not.
fn module(
    page: &mut PageState,
    tag: &mut Tag<'_, '_, '_>,
    name: &str,
    imported: bool,
    reason: Option<&SkipReason>,
) {
    page.by_cors = true;
    let source = tag.get(name).unwrap_or_default();
    let stays = page
        .decode_attribute(&source)
        .and_then(|text| page.place().module_skip_reason(&text));
    let reason = reason.or(stays.as_ref());
    rewrite_subresource(page, tag, name, Kind::Script, imported, reason);
}

/// A script, style sheet or preload: its nonce or integrity may decide if it is rewritten.
fn rewrite_subresource(
    page: &mut PageState,
    tag: &mut Tag<'_, '_, '_>,
    name: &str,
    kind: Kind,
    imported: bool,
    reason: Option<&SkipReason>,
) {
    let Some(source) = tag.get(name) else {
        return;
    };
    let nonce = tag.get("nonce");
    let integrity = tag.get("integrity");
    let credentials = CspCredentials {
        nonce: nonce.as_deref(),
        integrity: integrity.as_deref(),
        imported,
    };
    let pins = integrity
        .as_deref()
        .filter(|metadata| kind == Kind::Style && integrity::has_integrity(metadata));
    let pin = pins.map_or(IntegrityRewrite::Rewrite(None), |metadata| {
        pin(page, &source, metadata, reason)
    });
    let (reason, hash) = match pin {
        IntegrityRewrite::RequestUnrewritten { text, plain } => {
            let marked = page.encode_attribute(&text);
            // Reported with the URL that will be requested; it is not rewritten, because it belongs to the site, or to its page.
            let written = page.rewrite_reference(&marked, kind, credentials, reason.cloned());
            page.report
                .add_uncounted(pinned_reference::unknown_stylesheet(&plain));
            tag.set(name, written.as_deref().unwrap_or(&marked));
            return;
        }
        IntegrityRewrite::Skip => (reason.cloned().or(Some(SkipReason::Integrity)), None),
        IntegrityRewrite::Rewrite(hash) => (reason.cloned(), hash),
    };
    let stays = reason.is_some();
    let written = page.rewrite_reference(&source, kind, credentials, reason);
    if let Some(written) = &written {
        tag.set(name, written);
    }
    if let Some(hash) = hash.filter(|_| written.is_some() || !stays) {
        tag.set("integrity", &hash);
    }
}

/// Rewrites a pinned style sheet. If the element is skipped, it stays unchanged.
fn pin(
    page: &PageState,
    source: &str,
    metadata: &str,
    reason: Option<&SkipReason>,
) -> IntegrityRewrite {
    let text = page.decode_attribute(source);
    let Some(text) = text.filter(|_| reason != Some(&SkipReason::MalformedTag)) else {
        return IntegrityRewrite::Skip;
    };
    let seen = page.seen.as_deref().filter(|_| reason.is_none());
    let place = ReferenceContext {
        seen,
        ..page.place()
    };
    pinned_reference::plan_integrity(&place, &text, metadata)
}
