//! Answers that may hold a secret beside what somebody else wrote: they are not compressed here (BREACH).
//!
//! ```text
//!  page of a stranger ──▶ the client's browser ──▶ GET /search?q=csrf=a   with his cookies
//!                                                  "…you looked for csrf=a … <input value=csrf=7f3…>"
//!  on the wire: a byte fewer if the guess is right, whatever TLS does
//! ```
//!
//! Compression puts what repeats itself in fewer bytes, so the length of an answer tells whether what somebody else had the client
//! ask for is in it a second time. An answer that everyone may have holds no client's secret. Of one that is a client's alone the origin
//! knows whether it does: what the origin coded is coded again, what it did not code is left so. What is kept for whoever sends the same
//! cookies is such a client's alone, too.

use http::{HeaderMap, HeaderName, header};

use spdy_cache::stored::Stored;

use crate::body::content_coding::Coding;
use crate::request::forgeable_headers::has_credentials;
use crate::request::proxy_request::ProxyRequest;

/// Fields by which an origin knows a client again.
const CREDENTIAL_FIELDS: [HeaderName; 2] = [header::COOKIE, header::AUTHORIZATION];

/// Whether the answer to `wanted` that the origin told as `told`, and that nobody else gets, goes out without a coding.
pub(crate) fn may_contain_secret(wanted: &ProxyRequest, told: &HeaderMap) -> bool {
    is_uncoded_private_response(wanted, told)
        && (is_private(told) || has_credentials(&wanted.ask.headers) && !is_public_response(told))
}

/// Whether what is kept as `stored`, and is the answer to `wanted`, goes out without a coding: by `Vary` it is for nobody but who says
/// that he is who asked first.
pub(crate) fn is_stored_per_client(wanted: &ProxyRequest, stored: &Stored) -> bool {
    let asked = &wanted.ask.headers;
    let mut selecting = stored.selecting_names();
    selecting.any(|name| CREDENTIAL_FIELDS.contains(name) && asked.contains_key(name))
        && is_uncoded_private_response(wanted, stored.headers())
}

/// Whether the site's own origin was asked, and coded nothing of what it told as `told`.
fn is_uncoded_private_response(wanted: &ProxyRequest, told: &HeaderMap) -> bool {
    wanted.moved.is_none()
        && !wanted.site.compress_private
        && Coding::of(told) == Some(Coding::Identity)
}

/// Whether the origin says that it is for one client, or makes it so.
fn is_private(told: &HeaderMap) -> bool {
    told.contains_key(header::SET_COOKIE) || says(told, &["private", "no-store"])
}

/// Whether the origin says that everyone may have it: it is too long to be kept, or there is no room.
fn is_public_response(told: &HeaderMap) -> bool {
    says(told, &["public", "s-maxage"])
}

/// Whether `Cache-Control` has one of these directives.
fn says(told: &HeaderMap, names: &[&str]) -> bool {
    let fields = told.get_all(header::CACHE_CONTROL).into_iter();
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
        for (name, value, want) in [
            ("cache-control", "max-age=60, Private", true),
            ("cache-control", "private=\"x-user\"", true),
            ("cache-control", "no-store", true),
            ("set-cookie", "a=1", true),
            ("cache-control", "no-cache, max-age=0", false),
            ("expires", "0", false),
        ] {
            let name = HeaderName::from_static(name);
            let told = HeaderMap::from_iter([(name, HeaderValue::from_static(value))]);
            assert_eq!(is_private(&told), want, "{value}");
        }
    }
}
