//! Chooses the priority of a response by its content type, for clients that set no priorities (SPDY/3.1 §2.3.3).
//!
//! The levels are those of browsers for the kinds of resources: the page, then render-blocking resources, then scripts and fonts,
//! then media, then images.

use http::HeaderMap;
use http::header;
use spdy_frame::priority::Priority;

/// The priority that a browser would have given to a response with `headers`, by its content-type. `None` without a content-type,
/// and for an event stream, because its client waits for each event.
#[must_use]
pub fn by_content_type(headers: &HeaderMap) -> Option<Priority> {
    let value = headers.get(header::CONTENT_TYPE)?.as_bytes();
    let kind = value.split(|byte| *byte == b';').next()?.trim_ascii();
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
    if kind.is_empty() || is(&["text/event-stream"]) {
        return None;
    }
    Some(Priority::new(
        if is(&["text/html", "application/xhtml+xml"]) {
            0
        } else if is(&["text/css", "text/xsl", "application/xslt+xml"]) {
            1
        } else if begins("image/") {
            4 // an image, even if its type ends with `+xml`
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
            3 // media and downloads
        },
    ))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn kinds_follow_browser_order_with_unknown_before_images() {
        for (value, level) in [
            ("text/html; charset=utf-8", Some(0)),
            ("Text/CSS", Some(1)),
            ("text/javascript", Some(2)),
            ("application/ld+json", Some(2)),
            ("font/woff2", Some(2)),
            ("video/mp4", Some(3)),
            ("application/octet-stream", Some(3)),
            ("image/svg+xml", Some(4)),
            ("text/event-stream; charset=utf-8", None),
            (" ; charset=utf-8", None),
            ("", None),
        ] {
            let value = (header::CONTENT_TYPE, HeaderValue::from_static(value));
            let headers = HeaderMap::from_iter([value]);
            assert_eq!(
                by_content_type(&headers),
                level.map(Priority::new),
                "{headers:?}"
            );
        }
        assert_eq!(by_content_type(&HeaderMap::new()), None);
    }
}
