//! Guards against BREACH: a response that may contain a secret next to text from an attacker is not compressed here.
//!
//! ```text
//!  page of an attacker ─▶ the client's browser ──▶ GET /search?q=csrf=a   with the client's cookies
//!                                                  "…you looked for csrf=a … <input value=csrf=7f3…>"
//!  on the wire: a byte fewer if the guess is right, whatever TLS does
//! ```
//!
//! Compression encodes repeated text in fewer bytes, so the length of a response shows whether an attacker's guess occurs in it. A response
//! that every client may have contains no client's secret. For a response to one client only, the origin decides: what it encoded is
//! encoded again, and what it did not encode stays uncoded. A stored response that is selected by cookies is also for one client only. A
//! response for a path that needs a password counts as one to a request with credentials, also if the origin does not get them.

use http::{HeaderMap, HeaderName, header};

use spdy_cache::stored::Stored;

use crate::body::content_coding::Coding;
use crate::request::forgeable_headers::has_credentials;
use crate::request::proxy_request::ProxyRequest;

/// Fields by which an origin recognizes a client.
const CREDENTIAL_FIELDS: [HeaderName; 2] = [header::COOKIE, header::AUTHORIZATION];

/// Whether the unshared response to `request` with the origin's head `response_headers` is sent without a coding.
pub(crate) fn may_contain_secret(request: &ProxyRequest, response_headers: &HeaderMap) -> bool {
    let has_credentials = request.needs_password || has_credentials(&request.head.headers);
    is_uncoded_private_response(request, response_headers)
        && (is_private(response_headers)
            || has_credentials && !is_public_response(response_headers))
}

/// Whether the response `stored` to `request` is sent without a coding: by `Vary`, only requests with the same credentials get it, or only
/// those with a password.
pub(crate) fn is_stored_per_client(request: &ProxyRequest, stored: &Stored) -> bool {
    let request_headers = &request.head.headers;
    let mut selecting = stored.selecting_names();
    let is_of_credentials =
        |name: &HeaderName| CREDENTIAL_FIELDS.contains(name) && request_headers.contains_key(name);
    (selecting.any(is_of_credentials)
        || request.needs_password && !is_public_response(stored.headers()))
        && is_uncoded_private_response(request, stored.headers())
}

/// Whether the response with the head `response_headers` is from the site's own origin and uncoded, and the site does not compress private responses.
fn is_uncoded_private_response(request: &ProxyRequest, response_headers: &HeaderMap) -> bool {
    request.proxied.is_none()
        && !request.site.compress_private
        && Coding::of(response_headers) == Some(Coding::Identity)
}

/// Whether the origin marks the response as private, or sets a cookie.
fn is_private(response_headers: &HeaderMap) -> bool {
    response_headers.contains_key(header::SET_COOKIE)
        || has_cache_directive(response_headers, &["private", "no-store"])
}

/// Whether the origin marks the response as public. It gets here if it is too long to be stored, or there is no room.
fn is_public_response(response_headers: &HeaderMap) -> bool {
    has_cache_directive(response_headers, &["public", "s-maxage"])
}

/// Whether `Cache-Control` has one of these directives.
fn has_cache_directive(response_headers: &HeaderMap, names: &[&str]) -> bool {
    let fields = response_headers.get_all(header::CACHE_CONTROL).into_iter();
    let mut words = fields
        .filter_map(|field| field.to_str().ok())
        .flat_map(|field| field.split([',', '=']))
        .map(str::trim);
    words.any(|word| names.iter().any(|name| word.eq_ignore_ascii_case(name)))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn response_is_private_if_marked_or_sets_cookie() {
        for (name, value, expected) in [
            ("cache-control", "max-age=60, Private", true),
            ("cache-control", "private=\"x-user\"", true),
            ("cache-control", "no-store", true),
            ("set-cookie", "a=1", true),
            ("cache-control", "no-cache, max-age=0", false),
            ("expires", "0", false),
        ] {
            let name = HeaderName::from_static(name);
            let response_headers = HeaderMap::from_iter([(name, HeaderValue::from_static(value))]);
            assert_eq!(is_private(&response_headers), expected, "{value}");
        }
    }
}
