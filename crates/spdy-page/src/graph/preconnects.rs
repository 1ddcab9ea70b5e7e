//! Connections and names that a document asks for before any request needs them: `<link rel=preconnect>` and `dns-prefetch`.

use url::Url;

use crate::graph::builder::text_of;
use crate::graph::html;
use crate::replica::{Exchange, Kind};

/// Maximum number of hints in a document; further ones are ignored.
pub const MAX_PRECONNECTS: usize = 64;

/// A connection or a name that a document asks for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Preconnect {
    /// Transferred bytes of the document's body up to the end of the tag.
    pub at_byte: u64,
    /// A URL of the origin.
    pub url: Url,
    /// True for requests without credentials, such as those for fonts (`crossorigin`).
    pub without_credentials: bool,
    /// True if only the name is resolved, and no connection is opened (`dns-prefetch`).
    pub is_only_name: bool,
}

/// The hints of `exchange` in their order; none if it is no document or its body is not real.
#[must_use]
pub fn preconnects(exchange: &Exchange) -> Vec<Preconnect> {
    let text = Some(exchange).filter(|exchange| exchange.kind == Kind::Document);
    let Some(decoded) = text.and_then(text_of) else {
        return Vec::new();
    };
    let scan = html::scan(&decoded.text);
    let base = scan.base.as_deref();
    let base = base.and_then(|base| exchange.url.join(base).ok());
    let base = base.as_ref().unwrap_or(&exchange.url);
    let found = scan.preconnects.iter().filter_map(|found| {
        let url = base.join(&found.url).ok()?;
        let is_useful = match url.scheme() {
            "https" => url.has_host(),
            // A page over https upgrades its requests, but not these hints. Chromium keeps names for each scheme.
            "http" => url.has_host() && exchange.url.scheme() == "http",
            _ => false,
        };
        is_useful.then(|| Preconnect {
            at_byte: decoded.transferred_at(found.at),
            without_credentials: found.is_anonymous && url.origin() != exchange.url.origin(),
            is_only_name: found.is_only_name,
            url,
        })
    });
    found.take(MAX_PRECONNECTS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &'static str) -> Vec<(String, bool, &'static str)> {
        let url = "https://a.test/".parse().unwrap();
        let exchange = Exchange::synthetic(url, Kind::Document, "text/html", text);
        let found = preconnects(&exchange).into_iter();
        found
            .map(|it| {
                (
                    it.url.to_string(),
                    it.without_credentials,
                    &text[..it.at_byte as usize],
                )
            })
            .collect()
    }

    #[test]
    fn origins_are_found_with_their_credentials_and_places() {
        let text = "<link rel='preconnect' href=https://b.test><link rel=preconnect href=//c.test crossorigin>\
            <link rel='DNS-PREFETCH preconnect' href=https://d.test crossorigin=use-credentials><link rel=preconnect href=/ crossorigin>\
            <link rel=preconnect href=data:x><link rel=preconnect><!-- <link rel=preconnect href=//no.test> -->";
        let found = found(text);
        let origins: Vec<_> = found
            .iter()
            .map(|(url, anonymous, _)| (&url[..], *anonymous))
            .collect();
        assert_eq!(
            origins,
            [
                ("https://b.test/", false),
                ("https://c.test/", true),
                ("https://d.test/", false),
                ("https://a.test/", false),
            ]
        );
        assert_eq!(found[0].2, "<link rel='preconnect' href=https://b.test>");
    }

    #[test]
    fn dns_prefetch_asks_only_for_a_name() {
        let text = "<link rel=dns-prefetch href=//b.test><link rel='dns-prefetch preconnect' href=//c.test>";
        let url = "https://a.test/".parse().unwrap();
        let exchange = Exchange::synthetic(url, Kind::Document, "text/html", text);
        let found = preconnects(&exchange).into_iter();
        let found: Vec<_> = found
            .map(|hint| (hint.url.to_string(), hint.is_only_name))
            .collect();
        assert_eq!(
            found,
            [
                ("https://b.test/".to_owned(), true),
                ("https://c.test/".to_owned(), false)
            ]
        );
    }

    #[test]
    fn hints_at_http_help_only_a_page_over_http() {
        let text = "<link rel=preconnect href=http://b.test><link rel=dns-prefetch href=http://c.test>\
            <link rel=preconnect href=https://d.test>";
        for (scheme, expected) in [("http", 3), ("https", 1)] {
            let url = format!("{scheme}://a.test/").parse().unwrap();
            let exchange = Exchange::synthetic(url, Kind::Document, "text/html", text);
            assert_eq!(preconnects(&exchange).len(), expected, "{scheme}");
        }
    }

    #[test]
    fn the_number_of_hints_is_limited() {
        let text: String = (0..100)
            .map(|n| format!("<link rel=preconnect href=//h{n}.test>"))
            .collect();
        assert_eq!(found(text.leak()).len(), MAX_PRECONNECTS);
    }
}
