//! One element of a page: which of its attributes name what is fetched, as what, and what is written for them.

use std::borrow::Cow;

use lol_html::html_content::ContentType;
use lol_html::send::Element;
use url::Url;

use crate::csp::Credentials;
use crate::html_page::{Embedded, Page};
use crate::import_map;
use crate::integrity::{self, Pinned};
use crate::kind::{Kind, is_javascript};
use crate::link_rel::{self, LinkUse};
use crate::rules::OPT_OUT;
use crate::verdict::{Reason, Verdict};

const HTML: &str = "http://www.w3.org/1999/xhtml";

/// Rewrites the attributes of `element`, and says what its text is.
pub(crate) fn rewrite(page: &mut Page, element: &mut Element<'_, '_>) {
    let tag = element.tag_name();
    let reason = if is_malformed(element) {
        Some(Reason::MalformedTag)
    } else if element.has_attribute(OPT_OUT) {
        Some(Reason::OptOut)
    } else if with_cookies(element)
        || page.media_with_cookies && matches!(tag.as_str(), "source" | "track")
    {
        Some(Reason::Credentials)
    } else {
        None
    };
    page.by_cors = element.has_attribute("crossorigin");
    match tag.as_str() {
        "base" if element.namespace_uri() == HTML => {
            if let Some(href) = element.get_attribute("href") {
                match page.meant(&href).map(Cow::into_owned) {
                    Some(href) => page.set_base(&href),
                    None => page.set_unreadable_base(),
                }
            }
        }
        "meta" => meta(page, element, reason.as_ref()),
        // In SVG it is no link, and no void element either: to remove it would be to remove all that follows.
        "link" if element.namespace_uri() == HTML => link(page, element, reason.as_ref()),
        "script" => script(page, element, reason.as_ref()),
        "style" => style(page, element, reason.as_ref()),
        "img" => {
            url(page, element, "src", Kind::Image, reason.as_ref());
            set(page, element, "srcset", reason.as_ref());
        }
        "source" => {
            url(page, element, "src", Kind::Media, reason.as_ref());
            set(page, element, "srcset", reason.as_ref());
        }
        "video" | "audio" => {
            page.media_with_cookies = reason == Some(Reason::Credentials);
            url(page, element, "src", Kind::Media, reason.as_ref());
            // A poster is an image like another: no CORS, whatever the element says.
            page.by_cors = false;
            let reason = reason
                .as_ref()
                .filter(|reason| **reason != Reason::Credentials);
            url(page, element, "poster", Kind::Image, reason);
        }
        "track" => url(page, element, "src", Kind::Media, reason.as_ref()),
        "input" => {
            let is_image = element
                .get_attribute("type")
                .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("image"));
            if is_image {
                url(page, element, "src", Kind::Image, reason.as_ref());
            }
        }
        // `image` outside of SVG is how some write `img`, and browsers read it so.
        "image" | "feimage" => {
            for name in ["href", "xlink:href", "src"] {
                url(page, element, name, Kind::Image, reason.as_ref());
            }
            set(page, element, "srcset", reason.as_ref());
        }
        "iframe" | "frame" | "embed" => document(page, element, "src", reason.as_ref()),
        "object" => document(page, element, "data", reason.as_ref()),
        "portal" => left(page, element, "src", &Reason::Document),
        "use" => {
            left(page, element, "href", &Reason::Fragment);
            left(page, element, "xlink:href", &Reason::Fragment);
        }
        _ => {}
    }
    url(page, element, "background", Kind::Image, reason.as_ref());
    lazy(page, element, &tag, reason.as_ref());
    if let Some(source) = element.get_attribute("style")
        && !is_left(reason.as_ref())
        && let Some(written) = page.judge_style(&source)
    {
        write(element, "style", &written);
    }
}

/// Whether it would be another tag once it is written anew: `=` after a blank is read as the value of what stands before,
/// after a slash as the begin of a name.
fn is_malformed(element: &Element<'_, '_>) -> bool {
    let mut attributes = element.attributes().iter();
    attributes.any(|attribute| attribute.name().starts_with('='))
}

/// Whether the element stays as it is, whatever it names.
fn is_left(reason: Option<&Reason>) -> bool {
    matches!(reason, Some(Reason::OptOut | Reason::MalformedTag))
}

fn with_cookies(element: &Element<'_, '_>) -> bool {
    element
        .get_attribute("crossorigin")
        .is_some_and(|mode| mode.trim().eq_ignore_ascii_case("use-credentials"))
}

fn write(element: &mut Element<'_, '_>, name: &str, value: &str) {
    element
        .set_attribute(name, value)
        .expect("the attribute was there under this name");
}

fn url(
    page: &mut Page,
    element: &mut Element<'_, '_>,
    name: &str,
    kind: Kind,
    reason: Option<&Reason>,
) {
    if let Some(source) = element.get_attribute(name)
        && let Some(written) = page.judge(&source, kind, Credentials::default(), reason.cloned())
    {
        write(element, name, &written);
    }
}

fn set(page: &mut Page, element: &mut Element<'_, '_>, name: &str, reason: Option<&Reason>) {
    if let Some(source) = element.get_attribute(name)
        && let Some(written) = page.judge_srcset(&source, reason)
    {
        write(element, name, &written);
    }
}

/// A frame or a plug-in: moved if its host has a name of its own.
fn document(page: &mut Page, element: &mut Element<'_, '_>, name: &str, reason: Option<&Reason>) {
    let is_named = named_by(page, element, name).is_some_and(|url| {
        let rules = &page.rules;
        rules.named_of(&url).is_some()
    });
    match is_named {
        true => url(page, element, name, Kind::Document, reason),
        false => left(page, element, name, &Reason::Document),
    }
}

/// What an attribute means, if that is certain.
fn named_by(page: &Page, element: &Element<'_, '_>, name: &str) -> Option<Url> {
    let source = element.get_attribute(name)?;
    let text = page.meant(&source)?;
    page.place().base.join(text.trim()).ok()
}

/// Tells of what is never moved, if it is another host's.
fn left(page: &mut Page, element: &Element<'_, '_>, name: &str, reason: &Reason) {
    let Some(url) = named_by(page, element, name) else {
        return;
    };
    let is_foreign = url.host_str().is_some_and(|host| !page.rules.is_own(host));
    if is_foreign {
        page.report.count_left(url.as_str(), reason);
    }
}

/// Attributes that a script of the page will copy into others.
fn lazy(page: &mut Page, element: &mut Element<'_, '_>, tag: &str, reason: Option<&Reason>) {
    let kind = match tag {
        "script" => Kind::Script,
        "link" => Kind::Style,
        "video" | "audio" | "track" => Kind::Media,
        "iframe" | "frame" | "embed" | "object" => return,
        _ => Kind::Image,
    };
    let rules = page.rules.clone();
    for name in rules.lazy_attributes() {
        let Some(source) = element.get_attribute(name) else {
            continue;
        };
        if name.ends_with("srcset") {
            set(page, element, name, reason);
        } else if source.contains("url(") {
            if reason.is_none()
                && let Some(written) = page.judge_style(&source)
            {
                write(element, name, &written);
            }
        } else {
            url(page, element, name, kind, reason);
        }
    }
}

fn meta(page: &mut Page, element: &mut Element<'_, '_>, reason: Option<&Reason>) {
    let is_policy = element
        .get_attribute("http-equiv")
        .is_some_and(|name| name.trim().eq_ignore_ascii_case("content-security-policy"));
    let content = element.get_attribute("content").filter(|_| is_policy);
    let Some(text) = content.as_deref().and_then(|content| page.meant(content)) else {
        return;
    };
    if reason == Some(&Reason::MalformedTag) {
        page.policies.add_unreadable();
        return;
    }
    let rules = page.rules.clone();
    if let Some(written) = page.policies.add(&rules, &text) {
        let written = page.spelled(&written);
        write(element, "content", &written);
    }
}

fn style(page: &mut Page, element: &Element<'_, '_>, reason: Option<&Reason>) {
    // In SVG the text of a style element is markup, with references in it; there lol_html gives no whole text.
    if element.namespace_uri() == HTML && !is_left(reason) {
        page.held.open(Embedded::Style);
    } else {
        page.held.close();
    }
}

fn link(page: &mut Page, element: &mut Element<'_, '_>, reason: Option<&Reason>) {
    let rel = element.get_attribute("rel").unwrap_or_default();
    let used = link_rel::of(&rel, element.get_attribute("as").as_deref());
    let kind = match used {
        LinkUse::Fetch(kind) => kind,
        LinkUse::Module => {
            import_map_before(page, element, reason);
            page.by_cors = true;
            Kind::Script
        }
        LinkUse::Connect => {
            if let Some(href) = element.get_attribute("href").filter(|_| !is_left(reason))
                && let Some(href) = page.meant(&href).map(Cow::into_owned)
                && page.place().drops_connect(&href)
            {
                page.report.drop_connect(href);
                // Not nothing: `<` before it and `img` after it would become a tag.
                element.replace("<!---->", ContentType::Html);
            }
            return;
        }
        LinkUse::Other => return,
    };
    if kind == Kind::Image {
        set(page, element, "imagesrcset", reason);
    }
    // `'strict-dynamic'` trusts what no parser inserted, and module preloads count as that; other preloads do not.
    fetched(page, element, "href", kind, used == LinkUse::Module, reason);
}

fn script(page: &mut Page, element: &mut Element<'_, '_>, reason: Option<&Reason>) {
    page.held.close();
    let kind = element
        .get_attribute("type")
        .unwrap_or_default()
        .to_ascii_lowercase();
    match kind.as_str() {
        "importmap" => {
            page.has_import_map = true;
            if !is_left(reason) && !element.has_attribute("src") {
                page.held.open(Embedded::ImportMap);
            }
        }
        kind if kind.trim() == "module" => {
            import_map_before(page, element, reason);
            page.by_cors = true;
            fetched(page, element, "src", Kind::Script, false, reason);
        }
        kind if kind.is_empty() || is_javascript(kind.trim()) => {
            fetched(page, element, "src", Kind::Script, false, reason);
            for name in ["href", "xlink:href"] {
                if element.namespace_uri() != HTML {
                    fetched(page, element, name, Kind::Script, false, reason);
                }
            }
        }
        // Data, templates, speculation rules: what is in them is the page's business.
        _ => {}
    }
}

/// A script, sheet or preload: what it bears may decide whether it moves.
fn fetched(
    page: &mut Page,
    element: &mut Element<'_, '_>,
    name: &str,
    kind: Kind,
    imported: bool,
    reason: Option<&Reason>,
) {
    let Some(source) = element.get_attribute(name) else {
        return;
    };
    let nonce = element.get_attribute("nonce");
    let integrity = element.get_attribute("integrity");
    let credentials = Credentials {
        nonce: nonce.as_deref(),
        integrity: integrity.as_deref(),
        imported,
    };
    let pinned = integrity
        .as_deref()
        .filter(|metadata| kind == Kind::Style && integrity::pins(metadata));
    if pinned.is_some()
        && reason != Some(&Reason::MalformedTag)
        && let Some(marked) = marked(page, &source)
    {
        // Told of as it will be asked for; it stays where it is, for it is the site's own.
        page.judge(&marked, kind, credentials, reason.cloned());
        write(element, name, &marked);
        return;
    }
    let pinned = pinned.map(|metadata| known(page, &source, metadata));
    let reason = match pinned {
        Some(Pinned::Unknown) => reason.cloned().or(Some(Reason::Integrity)),
        _ => reason.cloned(),
    };
    if let Some(written) = page.judge(&source, kind, credentials, reason) {
        write(element, name, &written);
        if let Some(Pinned::Rewritten(hash)) = pinned {
            write(element, "integrity", &hash);
        }
    }
}

/// The source of a reference to a sheet of the site's own, with the mark that leaves the sheet as it is; `None` if
/// it would be left so anyway.
fn marked(page: &Page, source: &str) -> Option<String> {
    if page.rules.move_nothing() || page.is_named() {
        return None;
    }
    let text = page.meant(source)?;
    let text = text.trim();
    let url = page.place().base.join(text).ok()?;
    let is_own = url.origin() == page.rules.site().origin() && !text.is_empty();
    is_own.then(|| page.spelled(&integrity::as_it_came(text)))
}

/// What is known of a sheet that would be moved.
fn known(page: &Page, source: &str, metadata: &str) -> Pinned {
    let place = page.place();
    let url = page
        .meant(source)
        .and_then(|text| place.base.join(text.trim()).ok());
    match (url, &page.sheets) {
        (Some(url), Some(sheets))
            if matches!(
                page.rules.verdict(&url, Kind::Style, place.finder),
                Verdict::Move(_)
            ) =>
        {
            sheets.pinned(&url, metadata)
        }
        _ => Pinned::Unknown,
    }
}

/// Puts an import map before the first module of a page that has none before it.
///
/// If the page has one further down, browsers that take several merge both; the others would have refused the
/// page's own, which comes after a module.
fn import_map_before(page: &mut Page, element: &mut Element<'_, '_>, reason: Option<&Reason>) {
    if page.has_import_map || is_left(reason) {
        return;
    }
    page.has_import_map = true;
    let nonce = element
        .get_attribute("nonce")
        .filter(|nonce| !nonce.is_empty());
    let is_plain = |nonce: &String| {
        nonce
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+/=-_".contains(&byte))
    };
    if nonce.as_ref().is_some_and(|nonce| !is_plain(nonce))
        || !page.policies.allow_inline_script(nonce.as_deref())
    {
        return;
    }
    if let Some(map) = import_map::fresh(&page.place()) {
        let nonce = nonce
            .map(|nonce| format!(" nonce=\"{nonce}\""))
            .unwrap_or_default();
        element.before(
            &format!("<script type=\"importmap\"{nonce}>{map}</script>"),
            ContentType::Html,
        );
        page.report.import_map_added = true;
    }
}
