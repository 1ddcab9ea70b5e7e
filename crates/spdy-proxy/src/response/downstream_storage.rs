//! Keeps responses that need a password out of the shared caches between this proxy and the client.

use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue};

/// Directives that let a shared cache store a response to a request with `Authorization` (RFC 9111 §3.5).
const ALLOW: [&str; 3] = ["public", "s-maxage", "must-revalidate"];

/// Changes a response with `headers` so that only the client's own cache may store it.
///
/// The origin does not know that the path needs a password. Its `public` would let a CDN in front of this proxy give the response to
/// anyone.
pub(crate) fn restrict_to_client(headers: &mut HeaderMap) {
    let targeted: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str() == "surrogate-control" || is_targeted_control(name))
        .cloned()
        .collect();
    for name in targeted {
        headers.remove(name);
    }
    let values = headers.get_all(header::CACHE_CONTROL).iter();
    let directives: Vec<&str> = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|directive| !directive.is_empty())
        .collect();
    let name_of = |directive: &str| {
        let name = directive.split('=').next().unwrap_or_default();
        name.trim().to_ascii_lowercase()
    };
    let is_allowed = |directive: &&str| ALLOW.contains(&&*name_of(directive));
    if !directives.iter().any(is_allowed) {
        return; // shared caches store nothing, because of the request's `Authorization`
    }
    let kept = directives.iter().copied();
    let mut kept: Vec<&str> = kept.filter(|one| !is_allowed(one)).collect();
    kept.push("private");
    // A client must still not use it when it is stale.
    kept.push("must-revalidate");
    if let Ok(value) = HeaderValue::try_from(kept.join(", ")) {
        headers.insert(header::CACHE_CONTROL, value);
    }
}

/// A field for some caches alone, such as `CDN-Cache-Control` (RFC 9213).
fn is_targeted_control(name: &HeaderName) -> bool {
    name.as_str().ends_with("-cache-control")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_clients_own_cache_stores_what_is_left() {
        let after = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(value));
            headers.insert("cdn-cache-control", HeaderValue::from_static("max-age=60"));
            restrict_to_client(&mut headers);
            assert_eq!(headers.len(), 1);
            let value = headers[header::CACHE_CONTROL].to_str();
            value.expect("ASCII").to_owned()
        };
        assert_eq!(after("max-age=60"), "max-age=60");
        assert_eq!(after("no-store"), "no-store");
        assert_eq!(
            after("Public, max-age=60, s-maxage=600"),
            "max-age=60, private, must-revalidate"
        );
        assert_eq!(
            after("max-age=60, must-revalidate, no-cache=\"a, b\""),
            "max-age=60, no-cache=\"a, b\", private, must-revalidate"
        );
    }
}
