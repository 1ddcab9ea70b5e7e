//! Detects responses whose type contradicts the extension of their path, so that they are not stored for other clients.
//!
//! Origins have rules by extension: a path that ends in `.css` is public, and fresh for a year. Some also answer `/account/x.css`
//! like `/account/`. An attacker that makes a visitor open such a link could then read that visitor's page from a shared cache
//! (*web cache deception*).

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode};

/// Extensions of files that are neither pages nor data, and that are the same for all clients.
const STATIC: [&str; 38] = [
    "avif", "bmp", "css", "eot", "flac", "gif", "ico", "jpeg", "jpg", "js", "m4a", "m4s", "m4v",
    "mjs", "mov", "mp3", "mp4", "oga", "ogg", "ogv", "opus", "otf", "pdf", "png", "svg", "svgz",
    "tif", "tiff", "ts", "ttf", "vtt", "wasm", "wav", "webm", "webp", "woff", "woff2", "zip",
];

/// True if the response to `path` (not normalized) is a page or data (HTML, JSON), although the path has another extension.
///
/// Only successful responses count: a redirect or an error may have a page of any type for clients without access.
#[must_use]
pub fn is_mismatched(path: &str, status: StatusCode, headers: &HeaderMap) -> bool {
    status.is_success() && names_static(path) && is_page_or_data(headers)
}

fn names_static(path: &str) -> bool {
    let path = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
    // Some origins decode percent-encoding twice.
    let again = percent_encoding::percent_decode_str(&path).decode_utf8_lossy();
    ends_like_static(&path) || again != path && ends_like_static(&again)
}

fn ends_like_static(path: &str) -> bool {
    // Origins disagree on where a path ends: at parameters (`;`), or at an encoded character.
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    name.split([';', '?', '#', '\0']).any(|name| {
        name.rsplit_once('.').is_some_and(|(_, extension)| {
            STATIC
                .iter()
                .any(|listed| extension.eq_ignore_ascii_case(listed))
        })
    })
}

fn is_page_or_data(headers: &HeaderMap) -> bool {
    headers
        .get_all(CONTENT_TYPE)
        .iter()
        .any(|kind: &HeaderValue| {
            let essence = kind.as_bytes().split(|byte| *byte == b';').next();
            let essence = essence
                .unwrap_or_default()
                .trim_ascii()
                .to_ascii_lowercase();
            matches!(
                &essence[..],
                b"text/html" | b"application/xhtml+xml" | b"application/json" | b"text/json"
            ) || essence.ends_with(b"+json")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_at_a_stylesheet_path_is_a_mismatch() {
        let answer = |kind| HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]);
        let is_other = |path, kind| is_mismatched(path, StatusCode::OK, &answer(kind));
        for path in [
            "/account/x.css",
            "/account/x.CSS",
            "/account;x.css",
            "/account/x.css;session=1",
            "/account%2fx.js",
            "/account%3fx.woff2",
            "/account%23x.j%73",
            "/account/x.jpg%00.html",
            "/account/..;/x.css;v",
            "/account/x.css%253bv",
        ] {
            for kind in [
                "text/html; charset=utf-8",
                "Application/JSON",
                "application/ld+json",
            ] {
                assert!(is_other(path, kind), "{path} as {kind}");
            }
            for kind in ["text/css", "image/png", "text/javascript", ""] {
                assert!(!is_other(path, kind), "{path} as {kind}");
            }
            for status in [StatusCode::MOVED_PERMANENTLY, StatusCode::NOT_FOUND] {
                let is_other = is_mismatched(path, status, &answer("text/html"));
                assert!(!is_other, "{path}, {status}");
            }
        }
        for path in [
            "/",
            "/account",
            "/a.html",
            "/a.json",
            "/a.js.map",
            "/css",
            "/v1.2/list",
            "/next.js/docs",
            "/next.js/",
        ] {
            assert!(!is_other(path, "text/html"), "{path}");
            assert!(!is_other(path, "application/json"), "{path}");
        }
    }

    #[test]
    fn extensions_are_sorted_and_lower_case() {
        assert!(STATIC.is_sorted());
        assert!(
            STATIC
                .iter()
                .all(|extension| *extension == extension.to_ascii_lowercase())
        );
    }
}
