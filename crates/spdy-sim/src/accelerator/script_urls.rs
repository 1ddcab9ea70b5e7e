//! URLs that scripts build: from their own URL, or from one that a text states in full.
//!
//! A loader such as Ace's or MathJax's requests its other files by the URL of its `script` element. A proxied script thereby requests
//! proxied URLs. A script that is configured with a URL in full (`paths: {vs: "https://cdn.test/vs"}`) requests them from the host. The
//! recording does not tell which: so if no text states the URL, or a part of it from its start, the script is taken to derive it.

use std::collections::BTreeMap;

use spdy_page::replica::{Exchange, Kind as PageKind};
use spdy_rewrite::kind::Kind;
use spdy_rewrite::response::sanitize_response::essence;
use url::Url;

use super::rewrite_context::{decode_body, response_of};

/// What a page's scripts can read: its documents, as a browser gets them, and its scripts.
#[derive(Debug)]
pub(super) struct ScriptUrls {
    texts: Vec<String>,
    /// For each host, the parts of URLs that follow its name in the texts.
    stated: BTreeMap<String, Vec<String>>,
}

impl ScriptUrls {
    /// The texts of `exchanges`.
    pub(super) fn of<'e>(exchanges: impl Iterator<Item = &'e Exchange>) -> Self {
        let texts = exchanges.filter_map(|exchange| {
            let is_document = exchange.kind == PageKind::Document;
            let is_read = matches!(exchange.kind, PageKind::Script | PageKind::Fetch);
            let is_text = (is_document || is_read) && exchange.body_is_real;
            let bytes = is_text.then(|| decode_body(exchange))??;
            let text = String::from_utf8_lossy(&bytes).replace("\\/", "/");
            Some(match is_document {
                true => without_connection_tags(&text),
                false => text,
            })
        });
        Self {
            texts: texts.collect(),
            stated: BTreeMap::new(),
        }
    }

    /// Whether a text states `url`, or the start of it: at least its host.
    pub(super) fn states(&mut self, url: &Url) -> bool {
        let host = url.authority();
        let texts = &self.texts;
        let parts = self.stated.entry(host.to_owned()).or_insert_with(|| {
            let place = format!("//{host}");
            let parts = texts.iter().flat_map(|text| text.split(&place).skip(1));
            parts.map(|rest| literal(rest).to_owned()).collect()
        });
        let target = &url[url::Position::BeforePath..];
        parts.iter().any(|part| target.starts_with(part.as_str()))
    }
}

/// The characters of a URL at the start of `text`.
fn literal(text: &str) -> &str {
    let is_of_url = |c: char| c.is_ascii_alphanumeric() || "-._~/%@+&=?#!*:".contains(c);
    let end = text.find(|c| !is_of_url(c)).unwrap_or(text.len());
    &text[..end]
}

/// A document without the tags that name hosts for connections, policies and imports: scripts take no URL from them.
fn without_connection_tags(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    for (number, part) in text.split('<').enumerate() {
        let tag = part.split('>').next().unwrap_or_default();
        let tag = tag.to_ascii_lowercase();
        let is_link =
            tag.starts_with("link") && (tag.contains("preconnect") || tag.contains("dns-prefetch"));
        let is_policy = tag.starts_with("meta") && tag.contains("content-security-policy");
        let is_import_map = tag.starts_with("script") && tag.contains("importmap");
        if number > 0 {
            kept.push('<');
        }
        if !(is_link || is_policy || is_import_map) {
            kept.push_str(part);
        } else if !is_import_map {
            // The text of an import map follows its tag, and has no `<`.
            kept.push_str(part.split_once('>').map_or("", |(_, rest)| rest));
        }
    }
    kept
}

/// The kind as which the accelerator serves `exchange` to a script's request; `None` if it serves it as none.
pub(super) fn requested_kind(exchange: &Exchange) -> Option<Kind> {
    match exchange.kind {
        PageKind::Stylesheet => Some(Kind::Style),
        PageKind::Script => Some(Kind::Script),
        PageKind::Font => Some(Kind::Font),
        PageKind::Image => Some(Kind::Image),
        PageKind::Media => Some(Kind::Media),
        // By the type of the response, as the accelerator does.
        PageKind::Fetch | PageKind::Other => {
            let (_, headers) = response_of(exchange)?;
            let essence = essence(&headers).ok()?;
            let kinds = [Kind::Image, Kind::Style, Kind::Script];
            kinds.into_iter().find(|kind| kind.admits(&essence))
        }
        PageKind::Document => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(texts: &[&str], url: &str) -> bool {
        let mut urls = ScriptUrls {
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
            stated: BTreeMap::new(),
        };
        urls.states(&Url::parse(url).expect("a URL"))
    }

    #[test]
    fn a_url_is_stated_by_a_text_that_has_its_start() {
        let url = "https://cdn.test/npm/a@1/vs/editor.js?v=1";
        for text in [
            "paths: {vs: 'https://cdn.test/npm/a@1/vs'}",
            "load(`//cdn.test/npm/${name}`)",
            "const base = \"https://cdn.test\"",
        ] {
            assert!(states(&[text], url), "{text}");
        }
        for text in [
            "https://cdn.test/npm/b@2/",
            "https://cdn.test:8443/npm/a@1/",
            "cdn.test",
            "https://other.test/",
        ] {
            assert!(!states(&[text], url), "{text}");
        }
    }

    #[test]
    fn tags_for_connections_state_no_url() {
        let text = without_connection_tags(
            "<LINK rel=preconnect href=https://cdn.test><p>one<link rel=icon href=//a.test/i>\
             <meta http-equiv=Content-Security-Policy content='script-src https://cdn.test'>two\
             <script type=importmap>{\"imports\": {\"https://cdn.test/\": \"/a/\"}}</script>",
        );
        assert_eq!(text, "<<p>one<link rel=icon href=//a.test/i><two<</script>");
    }
}
