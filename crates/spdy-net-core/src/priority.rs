//! Priority of a response over HTTP/2 and HTTP/3: urgency and incremental (RFC 9218).

use http::HeaderName;

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
