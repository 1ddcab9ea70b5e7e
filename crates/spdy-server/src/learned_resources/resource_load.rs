//! Decides which requests may be learned from, by how a request states that its resource is loaded.

use http::{HeaderMap, Method};
use spdy_page::replica::Kind;

/// A subresource that a client requested, and how it is loaded, if the request states that.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ResourceLoad<'a> {
    /// Its URL.
    pub url: &'a str,
    /// The kind of resource.
    pub kind: Option<Kind>,
    /// True if it is loaded by CORS, so that the page may read it.
    pub by_cors: Option<bool>,
}

impl<'a> ResourceLoad<'a> {
    /// The load of `url` by a request with this method and these fields; `None` if nothing may be learned from it.
    ///
    /// Only a GET counts. A browser with Fetch Metadata must state that the request is from the page's own origin and for a
    /// resource that a page shows or runs. Navigations, frames, `fetch()` and forms do not count: their requests may be actions, or
    /// for one client only.
    #[must_use]
    pub fn of(url: &'a str, method: &Method, headers: &HeaderMap) -> Option<Self> {
        let word = |name| headers.get(name).map(|word| word.to_str().unwrap_or(""));
        let mode = word("sec-fetch-mode");
        let is_own = word("sec-fetch-site").is_none_or(|site| site == "same-origin");
        let is_navigation = mode == Some("navigate");
        if method != Method::GET || !is_own || is_navigation {
            return None;
        }
        let kind = match word("sec-fetch-dest") {
            None => None,
            Some(destination) => Some(kind_of_destination(destination)?),
        };
        let by_cors = mode.map(|mode| mode == "cors");
        Some(Self { url, kind, by_cors })
    }
}

/// The kind of a request's destination (Fetch, *destination*), if it is one that may be learned.
fn kind_of_destination(destination: &str) -> Option<Kind> {
    match destination {
        "style" => Some(Kind::Stylesheet),
        "script" => Some(Kind::Script),
        "font" => Some(Kind::Font),
        "image" => Some(Kind::Image),
        "audio" | "video" | "track" => Some(Kind::Media),
        _ => None,
    }
}
