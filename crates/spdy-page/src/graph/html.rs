//! Finds the references of an HTML text, with their offsets, as a preload scanner requests them when the bytes arrive.

use std::borrow::Cow;
use std::ops::Range;

use lol_html::html_content::Element;
use lol_html::{HtmlRewriter, Settings, element};
use spdy_markup::{entities, srcset};

use crate::graph::css;

/// The use of a reference in the document.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// A style sheet; one for another medium does not block.
    Stylesheet {
        blocking: bool,
    },
    Script(ScriptMode),
    /// A frame: a separate document.
    Frame,
    /// An image, font, media file, object or manifest.
    Embedded,
    /// A preload: another reference may use it.
    Preload,
    /// An image of a style: layout requests it.
    Styled,
    /// A lazy image: layout requests it.
    Lazy,
    /// A prefetch: the load event does not wait for it.
    Aside,
    /// An icon: requested after the load event.
    Icon,
}

impl Role {
    /// True if it is requested when its tag has arrived, and not by layout or after the load event.
    pub(crate) fn is_requested_at_once(self) -> bool {
        !matches!(self, Self::Styled | Self::Lazy | Self::Aside | Self::Icon)
    }
}

/// When a script runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ScriptMode {
    /// Immediately; the parser waits.
    Sync,
    /// As soon as it has arrived.
    Async,
    /// After parsing, before DOMContentLoaded (`defer` and modules).
    Defer,
}

/// A URL in a document.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Reference {
    /// As written, entities decoded; relative to the base.
    pub(crate) url: String,
    /// Offset in the text directly after the tag (or the URL, in a style element).
    pub(crate) at: usize,
    pub(crate) role: Role,
}

/// An origin whose name is resolved, or that a connection is opened to, ahead of requests.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct PreconnectHint {
    /// As written, entities decoded; relative to the base.
    pub(crate) url: String,
    /// Offset directly after the tag.
    pub(crate) at: usize,
    /// For requests without credentials.
    pub(crate) is_anonymous: bool,
    /// Only the name is resolved (`dns-prefetch`).
    pub(crate) is_only_name: bool,
}

/// The references of a scanned document.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Scan {
    /// `href` of the first `base`.
    pub(crate) base: Option<String>,
    pub(crate) references: Vec<Reference>,
    pub(crate) preconnects: Vec<PreconnectHint>,
    /// Offset of the last script that DOMContentLoaded waits for, including inline ones.
    pub(crate) last_script: Option<usize>,
    /// Texts of import maps.
    pub(crate) import_maps: Vec<String>,
    /// Where the texts of inline scripts and modules are.
    pub(crate) inline_scripts: Vec<Range<usize>>,
    pub(crate) inline_modules: Vec<InlineModule>,
    /// Offset directly after the first tag that a head cannot contain, usually `body`.
    pub(crate) body: Option<usize>,
}

/// An inline module.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct InlineModule {
    pub(crate) text: String,
    /// Offset of its end in the document.
    pub(crate) end: usize,
}

/// Elements that a head may contain.
const HEAD_ELEMENTS: [&str; 13] = [
    "html", "head", "title", "base", "basefont", "bgsound", "link", "meta", "noframes", "noscript",
    "script", "style", "template",
];

/// Scans `text`, in any encoding that is compatible with ASCII.
///
/// A browser with scripts ignores comments and `noscript`.
pub(crate) fn scan(text: &[u8]) -> Scan {
    let mut scan = Scan::default();
    let mut dark_until = 0;
    let look = element!("*", |element| {
        let location = element.source_location().bytes();
        if location.start < dark_until {
            return Ok(());
        }
        let tag = element.tag_name();
        if scan.body.is_none() && !HEAD_ELEMENTS.contains(&tag.as_str()) {
            scan.body = Some(location.end);
        }
        match tag.as_str() {
            "noscript" => dark_until = end_of(text, location.end, b"</noscript"),
            // Self-closed in SVG, they have no text.
            "style" if element.can_have_content() => {
                dark_until = end_of(text, location.end, b"</style");
                scan_style(&text[location.end..dark_until], location.end, &mut scan);
            }
            "script" => {
                scan_element(element, location.end, &mut scan);
                if element.can_have_content() && !element.has_attribute("src") {
                    dark_until = scan_script(element, text, location.end, &mut scan);
                }
            }
            _ => scan_element(element, location.end, &mut scan),
        }
        Ok(())
    });
    let settings = Settings::new()
        .append_element_content_handler(look)
        .with_strict(false);
    let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
    // A text with an error was scanned up to the error.
    if rewriter.write(text).is_ok() {
        let _ = rewriter.end();
    } else {
        drop(rewriter);
    }
    scan
}

/// Scans the style sheet of a `style` element that starts at `from`.
fn scan_style(sheet: &[u8], from: usize, scan: &mut Scan) {
    let found = css::scan(&String::from_utf8_lossy(sheet)).into_iter();
    scan.references.extend(found.map(|found| Reference {
        url: found.url,
        // Invalid UTF-8 has become longer by the conversion.
        at: from + found.at.min(sheet.len()),
        role: if found.is_import {
            Role::Stylesheet { blocking: true }
        } else {
            Role::Styled
        },
    }));
}

/// Stores the inline script in `text` from `from` on, and returns its end.
fn scan_script(element: &Element<'_, '_>, text: &[u8], from: usize, scan: &mut Scan) -> usize {
    let script = from..end_of(text, from, b"</script");
    let content = || String::from_utf8_lossy(&text[script.clone()]).into_owned();
    let kind = element.get_attribute("type").unwrap_or_default();
    let kind = kind.trim().to_ascii_lowercase();
    let end = script.end;
    if kind == "module" || is_classic(&kind) {
        scan.inline_scripts.push(script.clone());
    }
    match &kind[..] {
        "importmap" => scan.import_maps.push(content()),
        "module" => scan.inline_modules.push(InlineModule {
            text: content(),
            end,
        }),
        _ => {}
    }
    end
}

/// True if a script of this type, in lower case, is a classic one.
fn is_classic(kind: &str) -> bool {
    kind.is_empty() || kind.contains("javascript") || kind.contains("ecmascript")
}

fn scan_element(element: &Element<'_, '_>, at: usize, scan: &mut Scan) {
    let attribute = |name: &str| {
        element
            .get_attribute(name)
            .map(|value| decode_entities(value.trim()))
    };
    let mut push = |url: Option<String>, role: Role| {
        if let Some(url) =
            url.filter(|url| !url.is_empty() && !url.starts_with("data:") && !url.starts_with('#'))
        {
            scan.references.push(Reference { url, at, role });
        }
    };
    match element.tag_name().as_str() {
        "base" if scan.base.is_none() => scan.base = attribute("href"),
        "script" => {
            let kind = attribute("type").unwrap_or_default().to_ascii_lowercase();
            let is_module = kind == "module";
            if !is_module && !is_classic(&kind) {
                return;
            }
            let src = attribute("src");
            let mode = match (
                element.has_attribute("async"),
                is_module || element.has_attribute("defer"),
            ) {
                (true, _) if src.is_some() => ScriptMode::Async,
                (_, true) if src.is_some() || is_module => ScriptMode::Defer,
                _ => ScriptMode::Sync,
            };
            push(src, Role::Script(mode));
            if mode != ScriptMode::Async {
                scan.last_script = Some(at);
            }
        }
        "link" => {
            let rel = attribute("rel").unwrap_or_default().to_ascii_lowercase();
            let has = |word: &str| rel.split_ascii_whitespace().any(|rel| rel == word);
            let is_hint = has("preconnect") || has("dns-prefetch");
            if let (true, Some(url)) = (is_hint, attribute("href")) {
                let mode = attribute("crossorigin");
                scan.preconnects.push(PreconnectHint {
                    url,
                    at,
                    is_only_name: !has("preconnect"),
                    is_anonymous: mode
                        .is_some_and(|mode| !mode.eq_ignore_ascii_case("use-credentials")),
                });
            }
            let role = if has("stylesheet") {
                let media = attribute("media").unwrap_or_default().to_ascii_lowercase();
                let other_medium =
                    ["print", "speech", "aural", "tty", "handheld"].contains(&media.as_str());
                Role::Stylesheet {
                    blocking: !has("alternate")
                        && !other_medium
                        && !element.has_attribute("disabled"),
                }
            } else if has("preload") || has("modulepreload") {
                Role::Preload
            } else if has("manifest") {
                Role::Embedded
            } else if rel.contains("icon") {
                Role::Icon
            } else if has("prefetch") {
                Role::Aside
            } else {
                return;
            };
            push(attribute("href"), role);
        }
        "img" | "source" | "video" | "audio" | "track" | "embed" | "input" => {
            let loading = attribute("loading").unwrap_or_default();
            let role = match loading.eq_ignore_ascii_case("lazy") {
                true if element.tag_name() == "img" => Role::Lazy,
                _ => Role::Embedded,
            };
            push(attribute("src"), role);
            push(attribute("poster"), Role::Embedded);
            let set = attribute("srcset").unwrap_or_default();
            for url in srcset::urls(&set) {
                push(Some(set[url].to_owned()), role);
            }
        }
        "iframe" | "frame" => push(attribute("src"), Role::Frame),
        "object" => push(attribute("data"), Role::Embedded),
        "image" | "use" => {
            push(attribute("href"), Role::Embedded);
            push(attribute("xlink:href"), Role::Embedded);
        }
        _ => push(attribute("background"), Role::Styled),
    }
    if let Some(style) = attribute("style") {
        let found = css::scan(&style).into_iter();
        scan.references.extend(found.map(|found| Reference {
            url: found.url,
            at,
            role: Role::Styled,
        }));
    }
}

/// The end of the raw text that starts at `from`: at `mark` in any case, or at the end of the text.
fn end_of(text: &[u8], from: usize, mark: &[u8]) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    rest.windows(mark.len())
        .position(|window| window.eq_ignore_ascii_case(mark))
        .map_or(text.len(), |at| from + at)
}

/// Decodes character references in an attribute; names that are not in our table stay as written.
fn decode_entities(value: &str) -> String {
    entities::decode(value).map_or_else(|| value.to_owned(), Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_found_in_order_with_their_roles() {
        let text = br#"<!doctype html><base href="/b/"><link rel="stylesheet" href=a.css><LINK REL='alternate stylesheet' href=p.css>
            <!-- <img src=no.png> --><noscript><img src=no2.png></noscript>
            <script src="s.js?a=1&amp;b=2"></script><script async src=t.js></script><script defer src=u.js></script>
            <script type=text/template src=no.js></script><style>@import "i.css"; p { background: url(bg.png) }</style>
            <img src=x.png srcset="y.png 1x, z.png 2x,w.png"><img loading=LAZY src=l.png><iframe src=f.html></iframe><div style="background:url('d.png')">
            <video poster=v.jpg><source src=v.mp4></video><link rel="shortcut icon" href=/favicon.ico><script>inline()</script>"#;
        let scan = scan(text);
        let (blocking, other) = (
            Role::Stylesheet { blocking: true },
            Role::Stylesheet { blocking: false },
        );
        let script = Role::Script;
        let expected = [
            ("a.css", blocking),
            ("p.css", other),
            ("s.js?a=1&b=2", script(ScriptMode::Sync)),
            ("t.js", script(ScriptMode::Async)),
            ("u.js", script(ScriptMode::Defer)),
            ("i.css", blocking),
            ("bg.png", Role::Styled),
            ("x.png", Role::Embedded),
            ("y.png", Role::Embedded),
            ("z.png", Role::Embedded),
            ("w.png", Role::Embedded),
            ("l.png", Role::Lazy),
            ("f.html", Role::Frame),
            ("d.png", Role::Styled),
            ("v.jpg", Role::Embedded),
            ("v.mp4", Role::Embedded),
            ("/favicon.ico", Role::Icon),
        ];
        let found: Vec<_> = scan
            .references
            .iter()
            .map(|found| (found.url.as_str(), found.role))
            .collect();
        assert_eq!(found, expected);
        assert_eq!(scan.base.as_deref(), Some("/b/"));
        assert!(scan.references.is_sorted_by_key(|found| found.at));
        assert!(text[..scan.references[0].at].ends_with(b"href=a.css>"));
        assert!(text[..scan.last_script.unwrap()].ends_with(b"<script>"));
    }

    #[test]
    fn self_closed_scripts_and_styles_of_svg_have_no_text() {
        let scan = scan(
            b"<svg><script href=x.js /><style/></svg><img src=a.png><script>inline()</script>",
        );
        let found = scan.references.iter().map(|found| found.url.as_str());
        assert_eq!(found.collect::<Vec<_>>(), ["a.png"]);
        assert_eq!(scan.inline_scripts.len(), 1);
    }

    #[test]
    fn invalid_markup_is_scanned_to_its_end() {
        scan(b"<<<img src=<script src=\xff\xfe<style>@import url(");
        scan(&b"<div>".repeat(20_000));
        scan(&b"<svg><style>".repeat(20_000));
        scan(&[b"<svg>", &b"<script type=module>".repeat(20_000)[..]].concat());
        scan(&[b"<img src='", &b"&".repeat(1 << 20)[..], b"'>"].concat());
    }
}
