//! Names of the pseudo-headers of the first line, and headers that must not be forwarded.
//!
//! | | SPDY/2 | SPDY/3, 3.1 |
//! | --- | --- | --- |
//! | method | `method` | `:method` |
//! | target | `url` | `:path` |
//! | version | `version` | `:version` |
//! | authority | `host` | `:host` |
//! | scheme | `scheme` | `:scheme` |
//! | status | `status` | `:status` |
//!
//! SPDY/2 has one name space for these and the message's own headers, so a header with the name `url` cannot be sent there. The
//! colon of later versions prevents such collisions.

use http::HeaderMap;
use http::header::{self, HeaderName};
use spdy_frame::version::Version;

/// The names of a version.
#[derive(Debug)]
pub struct Names {
    /// The method.
    pub method: &'static str,
    /// The target: `url` may be absolute in SPDY/2, `:path` is in origin form.
    pub path: &'static str,
    /// The HTTP version.
    pub version: &'static str,
    /// The authority.
    pub host: &'static str,
    /// The scheme.
    pub scheme: &'static str,
    /// The status of a response.
    pub status: &'static str,
}

const PLAIN: Names = Names {
    method: "method",
    path: "url",
    version: "version",
    host: "host",
    scheme: "scheme",
    status: "status",
};

const COLON: Names = Names {
    method: ":method",
    path: ":path",
    version: ":version",
    host: ":host",
    scheme: ":scheme",
    status: ":status",
};

impl Names {
    /// The names that `version` uses.
    #[must_use]
    pub const fn of(version: Version) -> &'static Self {
        match version {
            Version::V2 => &PLAIN,
            Version::V3 | Version::V31 => &COLON,
        }
    }

    /// True if `name` is a part of the first line.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        [
            self.method,
            self.path,
            self.version,
            self.host,
            self.scheme,
            self.status,
        ]
        .contains(&name)
    }
}

/// True for hop-by-hop headers of HTTP/1.1, which have no meaning on a stream: ignored when received, never sent.
///
/// `te`, `upgrade` and `http2-settings` are included because the features that they request are not available here.
#[must_use]
pub fn is_hop_by_hop(name: &[u8]) -> bool {
    // The length decides for nearly every header.
    match name.len() {
        2 => name == b"te",
        7 => name == b"upgrade",
        10 => name == b"connection" || name == b"keep-alive",
        14 => name == b"http2-settings",
        16 => name == b"proxy-connection",
        17 => name == b"transfer-encoding",
        _ => false,
    }
}

/// The names that a message's Connection header lists: they are hop-by-hop too.
pub(crate) fn listed_in_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let mut listed = Vec::new();
    // Faster than a lookup in the few headers of a message.
    if !headers.keys().any(|name| *name == header::CONNECTION) {
        return listed;
    }
    for value in headers.get_all(header::CONNECTION) {
        let tokens = value
            .as_bytes()
            .split(|byte| *byte == b',')
            .map(<[u8]>::trim_ascii);
        // A token that is not a valid header name (an empty one, say) is skipped.
        listed.extend(tokens.filter_map(|token| HeaderName::from_bytes(token).ok()));
    }
    listed
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn hop_by_hop_names_are_recognized_and_others_are_not() {
        for name in [
            "te",
            "upgrade",
            "connection",
            "keep-alive",
            "http2-settings",
            "proxy-connection",
            "transfer-encoding",
        ] {
            assert!(is_hop_by_hop(name.as_bytes()), "{name}");
        }
        for name in [
            "tf",
            "trailer",
            "set-cookie",
            "accept-encoding",
            "host",
            "content-length",
            "",
        ] {
            assert!(!is_hop_by_hop(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn connection_lists_names_between_commas_in_any_case() {
        let mut headers = HeaderMap::new();
        headers.append(
            header::CONNECTION,
            HeaderValue::from_static("close, X-Hop ,,"),
        );
        headers.append(header::CONNECTION, HeaderValue::from_static("x-other"));
        assert_eq!(
            listed_in_connection(&headers),
            ["close", "x-hop", "x-other"]
        );
    }
}
