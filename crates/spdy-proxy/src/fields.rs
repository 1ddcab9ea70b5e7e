//! Header fields between client, accelerator and origin: what is passed on, and what is said anew (RFC 9110 §7.6).

use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Version};
use spdy_net::handler::Arrival;

/// RFC 8586.
pub(crate) const CDN_LOOP: HeaderName = HeaderName::from_static("cdn-loop");
/// RFC 9209.
pub(crate) const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Fields of a connection that `Connection` need not name.
const OF_CONNECTION: [HeaderName; 8] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("keep-alive"),
];

/// Takes out what is about one connection.
pub(crate) fn strip_connection(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .collect();
    for name in named.iter().chain(&OF_CONNECTION) {
        headers.remove(name);
    }
    headers.remove("proxy-connection");
    headers.remove("http2-settings");
}

/// Who asked, for a site's own origin. What the client claimed of that is not passed on.
pub(crate) fn tell_client(
    headers: &mut HeaderMap,
    from: Option<std::net::IpAddr>,
    arrival: Option<Arrival>,
    authority: &str,
) {
    for name in ["forwarded", "x-real-ip", "x-forwarded-port"] {
        headers.remove(name);
    }
    let proto = match arrival {
        Some(Arrival { secure: true, .. }) => "https",
        _ => "http",
    };
    headers.insert(FORWARDED_PROTO, HeaderValue::from_static(proto));
    match from.and_then(|from| HeaderValue::try_from(from.to_string()).ok()) {
        Some(from) => headers.insert(FORWARDED_FOR, from),
        None => headers.remove(FORWARDED_FOR),
    };
    match HeaderValue::try_from(authority) {
        Ok(host) => headers.insert(FORWARDED_HOST, host),
        Err(_) => headers.remove(FORWARDED_HOST),
    };
}

/// Whether the message passed by this accelerator already, by the member that it adds itself.
pub(crate) fn has_looped(headers: &HeaderMap, site: &str) -> bool {
    let values = headers.get_all(CDN_LOOP).iter();
    values
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .any(|member| {
            let who = member
                .split(|byte| *byte == b';')
                .next()
                .unwrap_or_default();
            who.trim_ascii().eq_ignore_ascii_case(site.as_bytes())
        })
}

/// Adds this accelerator to `Via` and `CDN-Loop` of a request that came by `version`.
pub(crate) fn tell_passage(headers: &mut HeaderMap, version: Version, site: &str) {
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

/// Adds `name` to `Vary`, unless it is there.
pub(crate) fn vary_on(headers: &mut HeaderMap, name: &'static str) {
    let is_there = headers
        .get_all(header::VARY)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .any(|member| member == b"*" || member.eq_ignore_ascii_case(name.as_bytes()));
    if !is_there {
        headers.append(header::VARY, HeaderValue::from_static(name));
    }
}

/// Takes `name` out of `Vary`.
pub(crate) fn no_longer_vary_on(headers: &mut HeaderMap, name: &str) {
    let left: Vec<String> = headers
        .get_all(header::VARY)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|member| !member.is_empty() && !member.eq_ignore_ascii_case(name))
        .map(str::to_owned)
        .collect();
    headers.remove(header::VARY);
    if let Ok(value) = HeaderValue::try_from(left.join(", "))
        && !value.is_empty()
    {
        headers.insert(header::VARY, value);
    }
}

/// A strong tag as a weak one: for a body whose bytes are not those that it names, but mean the same (RFC 9110 §8.8.1).
pub(crate) fn weaken_tag(headers: &mut HeaderMap) {
    let tag = headers.get(header::ETAG).map(HeaderValue::as_bytes);
    let Some(tag) = tag.filter(|tag| !tag.starts_with(b"W/")) else {
        return;
    };
    let weak = HeaderValue::from_bytes(&[b"W/", tag].concat());
    if let Ok(weak) = weak {
        headers.insert(header::ETAG, weak);
    }
}
