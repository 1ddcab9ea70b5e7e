//! Hop-by-hop header fields of HTTP/1.1, which no other protocol has.

use http::header::{self, HeaderMap, HeaderName};

/// Hop-by-hop headers of HTTP/1.1, which no other protocol has (RFC 9113 §8.2.2, SPDY/3.1 §3.2.1).
pub static CONNECTION_HEADERS: [HeaderName; 6] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("http2-settings"),
];

/// Removes hop-by-hop headers, and those that the `Connection` header lists.
pub fn drop_connection_headers(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    // Usually there are none.
    let is_one = |name: &&HeaderName| CONNECTION_HEADERS.contains(name) || named.contains(name);
    let those: Vec<HeaderName> = headers.keys().filter(is_one).cloned().collect();
    for name in those {
        headers.remove(name);
    }
}
