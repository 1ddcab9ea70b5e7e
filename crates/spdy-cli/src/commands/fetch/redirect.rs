//! Redirects of `spdy fetch`: the next request, and which headers it keeps (RFC 9110 §15.4).

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri, header};
use spdy::body::Body;
use spdy_client::origin::Origin;

use super::request::FetchRequest;

/// The only headers that follow a redirect to another origin, if their values are not marked as secret. Any other may be a credential
/// (`Authorization`, `Cookie`, `X-Api-Key`) or describe the first origin (`Host`, `Referer`, `If-None-Match`).
const CROSS_ORIGIN_HEADERS: [header::HeaderName; 12] = [
    header::ACCEPT,
    header::ACCEPT_CHARSET,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::CACHE_CONTROL,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_TYPE,
    header::PRAGMA,
    header::RANGE,
    header::UPGRADE_INSECURE_REQUESTS,
    header::USER_AGENT,
];

/// Headers that describe the request's content. They are removed together with it.
const CONTENT_HEADERS: [header::HeaderName; 5] = [
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LENGTH,
    header::CONTENT_LOCATION,
    header::CONTENT_TYPE,
];

/// Removes headers that another origin must not receive.
fn strip_for_cross_origin(headers: &mut HeaderMap) {
    let is_allowed = |name: &header::HeaderName| {
        let mut values = headers.get_all(name).iter();
        CROSS_ORIGIN_HEADERS.contains(name) && !values.any(HeaderValue::is_sensitive)
    };
    let removed: Vec<_> = headers
        .keys()
        .filter(|name| !is_allowed(name))
        .cloned()
        .collect();
    for name in removed {
        headers.remove(name);
    }
}

/// The request after a redirect of `order` (RFC 9110 §15.4); `None` if `response` is not a redirect.
pub(crate) fn redirect_request(
    order: &FetchRequest,
    response: &Response<Body>,
) -> Result<Option<FetchRequest>, String> {
    let (status, headers) = (response.status(), response.headers());
    let is_one = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
    let Some(location) = headers
        .get(header::LOCATION)
        .filter(|_| is_one && order.redirects > 0)
    else {
        return Ok(None);
    };
    let location = location
        .to_str()
        .map_err(|_| "the Location header of the redirect is not text".to_owned())?;
    let bad = |reason: &dyn std::fmt::Display| {
        format!("cannot follow the redirect to {location}: {reason}")
    };
    let base = url::Url::parse(&order.url.to_string()).map_err(|error| bad(&error))?;
    let mut to = base.join(location).map_err(|error| bad(&error))?;
    to.set_fragment(None);
    let to: Uri = to.as_str().parse().map_err(|error| bad(&error))?;
    let origin = Origin::of(&to).map_err(|error| bad(&error))?;
    let mut next = FetchRequest {
        url: to,
        ..order.clone()
    };
    let as_get = match status {
        StatusCode::SEE_OTHER => order.method != Method::HEAD,
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => order.method == Method::POST,
        _ => false,
    };
    if as_get {
        next.method = Method::GET;
        next.body = Bytes::new();
        for name in CONTENT_HEADERS {
            next.headers.remove(name);
        }
    }
    if Origin::of(&order.url).ok() != Some(origin) {
        strip_for_cross_origin(&mut next.headers);
    }
    Ok(Some(next))
}
