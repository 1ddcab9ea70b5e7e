//! The `priority` field (RFC 9218) that Chromium 156 sends over HTTP/2 and HTTP/3.
//!
//! ```text
//! urgency      0  documents, style sheets, fonts     1  scripts that block the parser, fetches     2  the first images of a document
//!              3  other images, media, other scripts (the default, which is not written)           4  prefetches
//! incremental  all but style sheets, scripts and fonts
//! ```
//!
//! A recording over one of these protocols has the field. Other recordings of Chromium have the priority of the request, and others
//! only its kind.

use http::HeaderValue;
use spdy_net::priority::{HttpPriority, PRIORITY_HEADER};
use spdy_page::head::Head;
use spdy_page::replica::{Exchange, Kind};

use crate::page_load::Urgency;

/// The field of the request for `exchange`, whose `urgency` is recorded or estimated; `None` if it states only defaults.
pub(crate) fn priority_field(exchange: &Exchange, urgency: Urgency) -> Option<HeaderValue> {
    if let Some(recorded) = Head::parse(&exchange.request_head)
        && let Some(field) = recorded.values(PRIORITY_HEADER.as_str()).next()
    {
        return HeaderValue::from_bytes(field).ok();
    }
    let recorded = exchange.observed.priority.as_deref();
    let level = recorded.and_then(urgency_of_name);
    let level = level.unwrap_or(match (exchange.kind, urgency) {
        (Kind::Document | Kind::Stylesheet | Kind::Font, _) => 0,
        (_, Urgency::High) => 1,
        (_, Urgency::Medium) => 2,
        (_, Urgency::Low) => 3,
    });
    let is_incremental = is_incremental(exchange.kind);
    let field = match (level == HttpPriority::default().urgency, is_incremental) {
        (true, true) => "i".to_owned(),
        (true, false) => return None,
        (false, true) => format!("u={level}, i"),
        (false, false) => format!("u={level}"),
    };
    Some(HeaderValue::try_from(field).expect("digits and letters are a valid header value"))
}

/// The urgency that Chromium sends for its priority `name`.
fn urgency_of_name(name: &str) -> Option<u8> {
    let names = ["VeryHigh", "High", "Medium", "Low", "VeryLow"];
    let at = names.iter().position(|it| *it == name)?;
    u8::try_from(at).ok()
}

fn is_incremental(kind: Kind) -> bool {
    match kind {
        Kind::Stylesheet | Kind::Script | Kind::Font => false,
        Kind::Document | Kind::Image | Kind::Media | Kind::Fetch | Kind::Other => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(kind: Kind) -> Exchange {
        let url = "https://a.test/x".parse().unwrap();
        Exchange::synthetic(url, kind, "text/plain", "")
    }

    fn field(exchange: &Exchange, urgency: Urgency) -> String {
        let field = priority_field(exchange, urgency);
        field.map_or(String::new(), |field| field.to_str().unwrap().to_owned())
    }

    #[test]
    fn fields_are_those_of_chromium_by_kind_and_urgency() {
        for (kind, urgency, expected) in [
            (Kind::Document, Urgency::High, "u=0, i"),
            (Kind::Stylesheet, Urgency::High, "u=0"),
            (Kind::Font, Urgency::High, "u=0"),
            (Kind::Script, Urgency::High, "u=1"),
            (Kind::Fetch, Urgency::High, "u=1, i"),
            (Kind::Image, Urgency::Medium, "u=2, i"),
            (Kind::Image, Urgency::Low, "i"),
            (Kind::Script, Urgency::Low, ""),
        ] {
            assert_eq!(field(&exchange(kind), urgency), expected, "{kind:?}");
        }
    }

    #[test]
    fn recorded_fields_and_priorities_win() {
        let mut image = exchange(Kind::Image);
        image.observed.priority = Some("High".to_owned());
        assert_eq!(field(&image, Urgency::High), "u=1, i");
        image.observed.priority = Some("unknown".to_owned());
        assert_eq!(field(&image, Urgency::Low), "i");
        let head = "GET /x HTTP/1.1\r\nHost: a.test\r\nPriority: u=5\r\n\r\n";
        image.request_head = head.into();
        assert_eq!(field(&image, Urgency::Low), "u=5");
    }
}
