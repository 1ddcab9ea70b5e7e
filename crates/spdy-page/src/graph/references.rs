//! URLs in a text without a recording: for a server that pushes or hints at resources.

use url::Url;

use crate::graph::css;
use crate::graph::html::{self, Role};

/// URLs that a browser would request for the HTML document `text` at `url`: in the order of the text, resolved, without fragments.
/// Frames are omitted, and resources that the load event does not wait for, such as lazy images.
#[must_use]
pub fn in_html(text: &[u8], url: &Url) -> Vec<Url> {
    let scan = html::scan(text);
    let base = scan.base.as_deref().and_then(|base| url.join(base).ok());
    let base = base.as_ref().unwrap_or(url);
    let is_included =
        |role: Role| !matches!(role, Role::Frame | Role::Lazy | Role::Aside | Role::Icon);
    let references = scan.references.iter();
    resolved(
        base,
        references
            .filter(|reference| is_included(reference.role))
            .map(|reference| &reference.url[..]),
    )
}

/// URLs in the style sheet `text` at `url`, in the same form.
#[must_use]
pub fn in_css(text: &[u8], url: &Url) -> Vec<Url> {
    let found = css::scan(&String::from_utf8_lossy(text));
    resolved(url, found.iter().map(|reference| &reference.url[..]))
}

fn resolved<'a>(base: &Url, references: impl Iterator<Item = &'a str>) -> Vec<Url> {
    let mut urls = Vec::new();
    for reference in references {
        let Ok(mut url) = base.join(reference) else {
            continue;
        };
        url.set_fragment(None);
        if matches!(url.scheme(), "http" | "https") && !urls.contains(&url) {
            urls.push(url);
        }
    }
    urls
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(urls: &[Url]) -> Vec<&str> {
        urls.iter().map(Url::as_str).collect()
    }

    #[test]
    fn a_document_names_sheets_scripts_and_images_once_each_and_no_frames() {
        let url = Url::parse("http://a.test/dir/").unwrap();
        let text = br#"<base href="/b/"><link rel=stylesheet href=a.css><script src="/s.js"></script>
            <img src="i.png#x"><img src="i.png"><iframe src="f.html"></iframe><link rel=icon href=/favicon.ico>
            <img src="data:image/png,x"><img src="//b.test/far.png"><a href="/next">"#;
        assert_eq!(
            paths(&in_html(text, &url)),
            [
                "http://a.test/b/a.css",
                "http://a.test/s.js",
                "http://a.test/b/i.png",
                "http://b.test/far.png"
            ]
        );
    }

    #[test]
    fn a_style_sheet_names_imports_fonts_and_images() {
        let url = Url::parse("http://a.test/css/a.css").unwrap();
        let text =
            b"@import 'b.css'; p { background: url(../i.png) } @font-face { src: url(f.woff) }";
        assert_eq!(
            paths(&in_css(text, &url)),
            [
                "http://a.test/css/b.css",
                "http://a.test/i.png",
                "http://a.test/css/f.woff"
            ]
        );
    }
}
