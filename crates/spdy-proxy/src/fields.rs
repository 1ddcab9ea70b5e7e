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

/// What clients say of themselves and who comes after them believes, beside all that begins with `x-forwarded-`.
const CLAIMS: [&str; 6] = [
    "forwarded",
    "x-real-ip",
    "x-host",
    "x-original-host",
    "x-url-scheme",
    "front-end-https",
];
/// By which a GET says that it is for another target, or another method, than its request line: what comes of it would be kept
/// under the wrong name.
const OVERRIDES: [&str; 5] = [
    "x-original-url",
    "x-rewrite-url",
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
];
/// What frames a message. Gateways that hand fields on as variables read `_` as `-`.
const FRAMING: [&str; 3] = ["content-length", "transfer-encoding", "host"];

/// Takes out what only a proxy in front may say, under whatever spelling.
fn strip_claims(headers: &mut HeaderMap) {
    let is_claim = |name: &str| {
        let plain = name.replace('_', "-");
        plain.starts_with("x-forwarded-")
            || CLAIMS.contains(&plain.as_str())
            || plain != name && FRAMING.contains(&plain.as_str())
    };
    let claims: Vec<HeaderName> = headers
        .keys()
        .filter(|name| is_claim(name.as_str()))
        .cloned()
        .collect();
    for name in claims {
        headers.remove(name);
    }
}

/// Takes out of a GET or HEAD what makes another request of it.
pub(crate) fn strip_overrides(headers: &mut HeaderMap) {
    let names = headers.keys();
    let names = names.filter(|name| OVERRIDES.contains(&&*name.as_str().replace('_', "-")));
    for name in names.cloned().collect::<Vec<_>>() {
        headers.remove(name);
    }
}

/// Who asked, for a site's own origin. What the client claimed of that is not passed on.
pub(crate) fn tell_client(
    headers: &mut HeaderMap,
    from: Option<std::net::IpAddr>,
    arrival: Option<Arrival>,
    authority: &str,
) {
    strip_claims(headers);
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

fn scheme_of(arrival: Option<Arrival>) -> &'static str {
    match arrival {
        Some(Arrival { secure: true, .. }) => "https",
        _ => "http",
    }
}

/// What [`tell_client`] says of where the client thinks it is: an origin.
pub(crate) fn as_asked(authority: &str, arrival: Option<Arrival>) -> String {
    format!("{}://{authority}", scheme_of(arrival))
}

/// Whether that is `origin`.
pub(crate) fn is_asked_as(origin: &str, authority: &str, arrival: Option<Arrival>) -> bool {
    let rest = origin.strip_prefix(scheme_of(arrival));
    rest.and_then(|rest| rest.strip_prefix("://")) == Some(authority)
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
