//! How urgent an answer is by what it is: for clients that say nothing of it (SPDY/3.1 §2.3.3).
//!
//! The levels are those that browsers gave the kinds of resources: the page, what its layout waits for, what it
//! runs and is set in, what plays, and what fills a frame that stands already.

use http::HeaderMap;
use http::header;
use spdy_frame::priority::Priority;

/// The priority that a browser would have given to an answer with `headers`, by its content-type.
#[must_use]
pub fn by_content_type(headers: &HeaderMap) -> Priority {
    let value = headers.get(header::CONTENT_TYPE);
    let value = value.and_then(|value| value.to_str().ok());
    let kind = value.unwrap_or_default().split(';').next();
    let kind = kind.unwrap_or_default().trim().as_bytes();
    let is = |names: &[&str]| {
        let mut names = names.iter();
        names.any(|name| kind.eq_ignore_ascii_case(name.as_bytes()))
    };
    let begins = |with: &str| {
        let start = kind.get(..with.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(with.as_bytes()))
    };
    let ends = |with: &str| {
        let at = kind.len().checked_sub(with.len());
        at.is_some_and(|at| kind[at..].eq_ignore_ascii_case(with.as_bytes()))
    };
    Priority::new(if is(&["text/html", "application/xhtml+xml"]) {
        0
    } else if is(&["text/css", "text/xsl", "application/xslt+xml"]) {
        1
    } else if begins("image/") {
        4 // a picture, though it may end like XML
    } else if is(&["application/json", "application/xml", "text/xml"])
        || ends("+json")
        || ends("+xml")
        || begins("font/")
        || begins("application/font-")
        || begins("application/x-font-")
        || ends("javascript")
        || ends("ecmascript")
    {
        2
    } else {
        3 // what plays, what is downloaded, and what says nothing
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn kinds_stand_in_the_order_of_browsers_and_whatever_is_unknown_before_pictures() {
        for (value, level) in [
            ("text/html; charset=utf-8", 0),
            ("Text/CSS", 1),
            ("text/javascript", 2),
            ("application/ld+json", 2),
            ("font/woff2", 2),
            ("video/mp4", 3),
            ("application/octet-stream", 3),
            ("", 3),
            ("image/svg+xml", 4),
        ] {
            let value = (header::CONTENT_TYPE, HeaderValue::from_static(value));
            let headers = HeaderMap::from_iter([value]);
            assert_eq!(
                by_content_type(&headers),
                Priority::new(level),
                "{headers:?}"
            );
        }
        assert_eq!(by_content_type(&HeaderMap::new()), Priority::new(3));
    }
}
