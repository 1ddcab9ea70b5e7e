//! Decides which requests may be learned from: what a request says about how its resource is loaded.

use http::{HeaderMap, Method};
use spdy_page::replica::Kind;

/// A subresource that a client requested, and how, as far as the client says that.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ResourceLoad<'a> {
    /// Its URL.
    pub url: &'a str,
    /// As what it is loaded.
    pub kind: Option<Kind>,
    /// So that the page may read it (CORS), or not.
    pub by_cors: Option<bool>,
}

impl<'a> ResourceLoad<'a> {
    /// The load of `url` that a request with this method and these fields is; `None` if nothing may be learned from it.
    ///
    /// Only a GET counts. A browser with Fetch Metadata must say that the request is of the page's own origin and for
    /// something that a page shows or runs. A navigation, a frame, `fetch()` and a form are none of this: what they request
    /// may be an action, or for one client only.
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
