//! Header fields between client, accelerator and origin: which are passed on, and which are replaced (RFC 9110 §7.6).

use data_encoding::BASE64;
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Method, Version};
use spdy_net::client_certificate::ClientCertificate;
use spdy_net::handler::RequestInfo;

use crate::request::forgeable_headers;

/// RFC 8586.
pub(crate) const CDN_LOOP: HeaderName = HeaderName::from_static("cdn-loop");
/// RFC 9209.
pub(crate) const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");
pub(crate) const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
pub(crate) const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
/// RFC 9440.
const CLIENT_CERT: HeaderName = HeaderName::from_static("client-cert");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Fields of a connection that `Connection` need not name.
static HOP_BY_HOP: [HeaderName; 10] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("http2-settings"),
];

/// Whether the field is about one connection, even if `Connection` does not name it.
pub(crate) fn is_hop_by_hop(name: &HeaderName) -> bool {
    HOP_BY_HOP.contains(name)
}

/// Removes the fields about one connection.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named = headers.get_all(header::CONNECTION).iter();
    let named: Vec<HeaderName> = named
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .collect();
    strip(headers, |name| {
        HOP_BY_HOP.contains(name) || named.contains(name)
    });
}

/// Removes every field that matches `is_one`. Usually there is none, and then nothing is done.
fn strip(headers: &mut HeaderMap, is_one: impl Fn(&HeaderName) -> bool) {
    let names: Vec<HeaderName> = headers
        .keys()
        .filter(|name| is_one(name))
        .cloned()
        .collect();
    for name in names {
        headers.remove(name);
    }
}

/// Whether the proxy sets or removes this field itself: the client's value does not reach the origin.
pub(crate) fn is_set_by_proxy(name: &HeaderName) -> bool {
    *name == header::HOST
        || *name == header::VIA
        || *name == CDN_LOOP
        || forgeable_headers::is_forgeable(name)
}

/// States the client, for a site's own origin. What the client claimed of that was removed before (`request/forgeable_headers.rs`).
pub(crate) fn set_forwarded_headers(
    headers: &mut HeaderMap,
    from: Option<std::net::IpAddr>,
    arrival: Option<RequestInfo>,
    authority: &str,
) {
    let proto = HeaderValue::from_static(scheme_of(arrival));
    headers.insert(FORWARDED_PROTO, proto);
    match from.and_then(|from| HeaderValue::try_from(from.to_string()).ok()) {
        Some(from) => headers.insert(FORWARDED_FOR, from),
        None => headers.remove(FORWARDED_FOR),
    };
    match HeaderValue::try_from(authority) {
        Ok(host) => headers.insert(FORWARDED_HOST, host),
        Err(_) => headers.remove(FORWARDED_HOST),
    };
}

/// States the client's certificate, for a site's own origin (RFC 9440 §2.2). What the client claimed was removed before.
pub(crate) fn set_client_certificate(headers: &mut HeaderMap, certificate: &ClientCertificate) {
    let encoded = BASE64.encode(certificate.der());
    if let Ok(value) = HeaderValue::try_from(format!(":{encoded}:")) {
        headers.insert(CLIENT_CERT, value);
    }
}

/// The scheme that the client used.
pub(crate) fn scheme_of(arrival: Option<RequestInfo>) -> &'static str {
    match arrival {
        Some(RequestInfo { secure: true, .. }) => "https",
        _ => "http",
    }
}

/// Whether the origin that [`set_forwarded_headers`] states for the client is `origin`.
pub(crate) fn is_forwarded_origin(
    origin: &str,
    authority: &str,
    arrival: Option<RequestInfo>,
) -> bool {
    let rest = origin.strip_prefix(scheme_of(arrival));
    rest.and_then(|rest| rest.strip_prefix("://")) == Some(authority)
}

/// Whether the message passed this proxy before, by the member of `CDN-Loop` that the proxy adds.
pub(crate) fn has_looped(headers: &HeaderMap, site: &str) -> bool {
    let values = headers.get_all(CDN_LOOP).iter();
    values
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .any(|member| {
            let proxy_name = member
                .split(|byte| *byte == b';')
                .next()
                .unwrap_or_default();
            proxy_name
                .trim_ascii()
                .eq_ignore_ascii_case(site.as_bytes())
        })
}

/// How many more proxies may forward a request with these fields; `None` if that is not limited (RFC 9110 §7.6.2).
pub(crate) fn max_forwards(method: &Method, headers: &HeaderMap) -> Option<u64> {
    let remaining = headers.get(header::MAX_FORWARDS)?;
    let is_bounded = *method == Method::OPTIONS;
    remaining.to_str().ok()?.parse().ok().filter(|_| is_bounded)
}

/// Adds this accelerator to `Via` and `CDN-Loop` of a request with `version`.
pub(crate) fn append_via_and_cdn_loop(headers: &mut HeaderMap, version: Version, site: &str) {
    append_via(headers, version, site);
    if let Ok(member) = HeaderValue::try_from(site) {
        headers.append(CDN_LOOP, member);
    }
}

/// Adds this accelerator to `Via` (RFC 9110 §7.6.3).
pub(crate) fn append_via(headers: &mut HeaderMap, version: Version, site: &str) {
    let version = match version {
        Version::HTTP_09 => "0.9",
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        Version::HTTP_3 => "3",
        _ => "1.1",
    };
    if let Ok(member) = HeaderValue::try_from(format!("{version} {site}")) {
        headers.append(header::VIA, member);
    }
}

/// Adds `name` to `Vary`, unless it is listed already.
pub(crate) fn add_vary(headers: &mut HeaderMap, name: &'static str) {
    let is_listed = headers
        .get_all(header::VARY)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .any(|member| member == b"*" || member.eq_ignore_ascii_case(name.as_bytes()));
    if !is_listed {
        headers.append(header::VARY, HeaderValue::from_static(name));
    }
}

/// Removes `name` from `Vary`.
pub(crate) fn remove_vary(headers: &mut HeaderMap, name: &str) {
    let remaining: Vec<String> = headers
        .get_all(header::VARY)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|member| !member.is_empty() && !member.eq_ignore_ascii_case(name))
        .map(str::to_owned)
        .collect();
    headers.remove(header::VARY);
    if let Ok(value) = HeaderValue::try_from(remaining.join(", "))
        && !value.is_empty()
    {
        headers.insert(header::VARY, value);
    }
}

/// Makes a strong tag weak: for a body with other bytes than those it names, but the same meaning (RFC 9110 §8.8.1).
pub(crate) fn weaken_etag(headers: &mut HeaderMap) {
    let tag = headers.get(header::ETAG).map(HeaderValue::as_bytes);
    let Some(tag) = tag.filter(|tag| !tag.starts_with(b"W/")) else {
        return;
    };
    let weak = HeaderValue::from_bytes(&[b"W/", tag].concat());
    if let Ok(weak) = weak {
        headers.insert(header::ETAG, weak);
    }
}
