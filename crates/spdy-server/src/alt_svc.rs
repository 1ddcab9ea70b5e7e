//! The `Alt-Svc` header of responses: HTTP/3 is available at a port of the same host (RFC 7838).

use http::HeaderValue;

/// How long clients may cache it, seconds.
const MAX_AGE: u32 = 3600;

/// The header for HTTP/3 at UDP `port`, as clients reach it.
///
/// # Panics
///
/// Never: digits are valid in a header value.
#[must_use]
pub fn h3_at(port: u16) -> HeaderValue {
    let value = format!("h3=\":{port}\"; ma={MAX_AGE}");
    HeaderValue::try_from(value).expect("digits are allowed in a field")
}
