//! Invalidation of stored responses by an unsafe request (RFC 9111 §4.4).

use http::header::{CONTENT_LOCATION, LOCATION};
use http::{HeaderMap, HeaderName, Method, StatusCode, Uri};
use url::Url;

/// True if a request of `method` leaves stored responses valid; false for an unknown method.
#[must_use]
pub fn is_safe(method: &Method) -> bool {
    method.is_safe() || matches!(method.as_str(), "PROPFIND" | "QUERY" | "REPORT" | "SEARCH")
}

/// The URIs to invalidate after a request of `method` for `uri` (absolute) was answered with `status` and `headers`:
/// its own, and the URIs of the same origin that the response names. Empty if the method is safe or the response is
/// an error.
#[must_use]
pub fn invalidated_by(
    method: &Method,
    uri: &Uri,
    status: StatusCode,
    headers: &HeaderMap,
) -> Vec<Uri> {
    if is_safe(method) || !(status.is_success() || status.is_redirection()) {
        return Vec::new();
    }
    let mut invalidated = vec![uri.clone()];
    let Ok(target) = Url::parse(&uri.to_string()) else {
        return invalidated;
    };
    for name in [LOCATION, CONTENT_LOCATION] {
        // Otherwise another origin could invalidate the responses of this one.
        let named = referenced_url(headers, &name, &target)
            .filter(|named| named.origin() == target.origin());
        let named = named.and_then(|named| named.as_str().parse().ok());
        invalidated.extend(named.filter(|named| *named != *uri));
    }
    invalidated.dedup();
    invalidated
}

fn referenced_url(headers: &HeaderMap, name: &HeaderName, target: &Url) -> Option<Url> {
    let mut named = target.join(headers.get(name)?.to_str().ok()?).ok()?;
    named.set_fragment(None);
    Some(named)
}
