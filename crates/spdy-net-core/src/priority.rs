//! Priority of a response over HTTP/2 and HTTP/3: urgency and incremental (RFC 9218).

use http::{HeaderMap, HeaderName, HeaderValue};
use spdy_frame::priority::Priority;

/// Header in which a request states its priority (RFC 9218 §5).
pub const PRIORITY_HEADER: HeaderName = HeaderName::from_static("priority");

/// Priority of a response (RFC 9218 §4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HttpPriority {
    /// From 0, the most urgent, to 7.
    pub urgency: u8,
    /// The response can be used before it is complete, so it may share bandwidth.
    pub incremental: bool,
}

impl Default for HttpPriority {
    fn default() -> Self {
        Self {
            urgency: 3,
            incremental: false,
        }
    }
}

impl HttpPriority {
    /// Parses a `priority` header field: `u=N`, `i`, `i=?1`, in any order; unknown members are ignored.
    pub fn parse(field: &str) -> Self {
        let mut precedence = Self::default();
        for item in field.split(',') {
            match item.trim().split_once('=') {
                Some(("u", level)) => {
                    if let Ok(urgency @ 0..=7) = level.trim().parse() {
                        precedence.urgency = urgency;
                    }
                }
                Some(("i", flag)) => precedence.incremental = flag.trim() == "?1",
                None if item.trim() == "i" => precedence.incremental = true,
                _ => {}
            }
        }
        precedence
    }

    /// The priority in the `priority` field of a request's `headers`; the default without one.
    pub fn of(headers: &HeaderMap) -> Self {
        let field = headers.get(PRIORITY_HEADER);
        let field = field.and_then(|field| field.to_str().ok());
        field.map_or_else(Self::default, Self::parse)
    }

    /// Writes `priority` as urgency into a request's `headers`, unless they have a `priority` field or the urgency is the default.
    /// Returns the priority that the request has now.
    pub fn announce(headers: &mut HeaderMap, priority: Priority) -> Self {
        if !headers.contains_key(PRIORITY_HEADER) && priority.level() != Self::default().urgency {
            let field = HeaderValue::try_from(format!("u={priority}"));
            let field = field.expect("a digit is a valid header value");
            headers.insert(PRIORITY_HEADER, field);
        }
        Self::of(headers)
    }
}

impl HttpPriority {
    /// The priority of an upload, which shares bandwidth with others.
    pub const SHARED: Self = Self {
        urgency: 3,
        incremental: true,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explicit_field_is_kept_and_the_default_urgency_needs_none() {
        for (field, level, expected) in [
            (None, 3, None),
            (None, 0, Some("u=0")),
            (Some("u=5, i"), 0, Some("u=5, i")),
            (Some("i"), 3, Some("i")),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(field) = field {
                headers.insert(PRIORITY_HEADER, HeaderValue::from_static(field));
            }
            let announced = HttpPriority::announce(&mut headers, Priority::new(level));
            let sent = headers.get(PRIORITY_HEADER);
            assert_eq!(sent.map(|field| field.to_str().unwrap()), expected);
            assert_eq!(announced, HttpPriority::parse(expected.unwrap_or("")));
        }
    }

    #[test]
    fn a_priority_field_is_read_and_what_is_odd_is_skipped() {
        for (field, urgency, incremental) in [
            ("", 3, false),
            ("u=0", 0, false),
            ("u=5, i", 5, true),
            ("i=?1,u=1", 1, true),
            ("u=8", 3, false),
            ("u=x, q=7", 3, false),
        ] {
            assert_eq!(
                HttpPriority::parse(field),
                HttpPriority {
                    urgency,
                    incremental
                },
                "{field:?}"
            );
        }
    }
}
