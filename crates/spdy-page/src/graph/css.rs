//! References of a style sheet, with their offsets.

use spdy_markup::css_urls::{UrlUse, urls};

/// A URL in a style sheet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct CssReference {
    /// As written, without escapes; relative to the style sheet.
    pub(crate) url: String,
    /// Offset in the text directly after it.
    pub(crate) at: usize,
    /// A reference by `@import`: a style sheet that this one waits for. Layout requests all others.
    pub(crate) is_import: bool,
}

/// The URLs in `text` that a browser requests.
pub(crate) fn scan(text: &str) -> Vec<CssReference> {
    let is_requested =
        |url: &str| !url.is_empty() && !url.starts_with('#') && !url.starts_with("data:");
    urls(text)
        .into_iter()
        .filter(|found| is_requested(&found.url))
        .map(|found| CssReference {
            at: found.span.end,
            is_import: found.usage == UrlUse::Import,
            url: found.url,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requested_urls_are_found_with_their_offsets() {
        let text = r#"@import "a.css"; p { background: url(e\.png); mask: url(#here) url(data:,x) url() }"#;
        let found = scan(text);
        let urls_found: Vec<_> = found
            .iter()
            .map(|found| (found.url.as_str(), found.is_import))
            .collect();
        assert_eq!(urls_found, [("a.css", true), ("e.png", false)]);
        assert_eq!(&text[..found[0].at], r#"@import "a.css""#);
    }
}
