//! Which trailer fields are passed on: none that changes how a message is framed, routed, authorized or stored (RFC 9110 §6.5.1).
//!
//! Some servers merge trailers into the headers. A client could otherwise send as a trailer what this proxy checks, sets or removes
//! in the head.

use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue};

use crate::request::forward_headers::{is_hop_by_hop, is_set_by_proxy};
use crate::sites::path_rules::PathRule;

/// Fields of a request that have a meaning only in its head.
const REQUEST: [HeaderName; 11] = [
    header::AUTHORIZATION,
    header::CACHE_CONTROL,
    header::COOKIE,
    header::EXPECT,
    header::MAX_FORWARDS,
    header::ORIGIN,
    header::PRAGMA,
    header::RANGE,
    header::REFERER,
    HeaderName::from_static("early-data"),
    HeaderName::from_static("priority"),
];
/// Fields of a response that have a meaning only in its head.
const RESPONSE: [HeaderName; 18] = [
    header::AGE,
    header::ALT_SVC,
    header::CACHE_CONTROL,
    header::DATE,
    header::EXPIRES,
    header::LINK,
    header::LOCATION,
    header::PRAGMA,
    header::REFRESH,
    header::RETRY_AFTER,
    header::SET_COOKIE,
    header::STRICT_TRANSPORT_SECURITY,
    header::VARY,
    header::VIA,
    header::WARNING,
    header::WWW_AUTHENTICATE,
    HeaderName::from_static("clear-site-data"),
    HeaderName::from_static("surrogate-key"),
];

/// Removes the fields that may not be in the trailers of a request to an origin.
/// `rule` may set or remove further ones in the head.
pub(crate) fn restrict_request(trailers: &mut HeaderMap, rule: Option<&PathRule>) {
    retain(trailers, |name| {
        !is_of_head(name)
            && !is_set_by_proxy(name)
            && !rule.is_some_and(|rule| rule.edits_request(name))
            && !REQUEST.contains(name)
            && !name.as_str().starts_with("accept")
            && !name.as_str().starts_with("if-")
            && !name.as_str().starts_with("sec-")
    });
}

/// Removes the fields that may not be in the trailers of a response to a client.
/// `rule` may set or remove further ones in the head.
pub(crate) fn restrict_response(trailers: &mut HeaderMap, rule: Option<&PathRule>) {
    retain(trailers, |name| {
        is_response_trailer(name) && !rule.is_some_and(|rule| rule.edits_response(name))
    });
}

/// The `Trailer` field for a client, with those names of `headers` that are passed on; `None` if there are none.
pub(crate) fn announcement(headers: &HeaderMap) -> Option<HeaderValue> {
    let values = headers.get_all(header::TRAILER).iter();
    let names = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .filter(is_response_trailer);
    let names: Vec<String> = names.map(|name| name.to_string()).collect();
    let value = (!names.is_empty()).then(|| HeaderValue::try_from(names.join(", ")));
    value?.ok()
}

fn is_response_trailer(name: &HeaderName) -> bool {
    !is_of_head(name)
        && !RESPONSE.contains(name)
        && !name.as_str().starts_with("access-control-")
        && !name.as_str().starts_with("content-security-policy")
        && !name.as_str().starts_with("cross-origin-")
        && !name.as_str().ends_with("cache-control")
}

/// Whether the field frames or describes the content. `content-digest` may follow the content (RFC 9530 §6.6).
fn is_of_head(name: &HeaderName) -> bool {
    let name_text = name.as_str();
    is_hop_by_hop(name)
        || *name == header::HOST
        || name_text.starts_with("proxy-")
        || name_text.starts_with("content-") && name_text != "content-digest"
}

fn retain(trailers: &mut HeaderMap, is_passed: impl Fn(&HeaderName) -> bool) {
    let names: Vec<HeaderName> = trailers
        .keys()
        .filter(|name| !is_passed(name))
        .cloned()
        .collect();
    for name in names {
        trailers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trailers(names: &[&'static str]) -> HeaderMap {
        let names = names.iter().map(|name| HeaderName::from_static(name));
        names
            .map(|name| (name, HeaderValue::from_static("v")))
            .collect()
    }

    #[test]
    fn fields_of_a_head_are_no_trailers() {
        let mut request = trailers(&[
            "x-checksum",
            "x-forwarded-for",
            "x_real_ip",
            "client-cert",
            "authorization",
            "cookie",
            "host",
            "content-length",
            "transfer-encoding",
            "if-match",
            "te",
        ]);
        restrict_request(&mut request, None);
        assert_eq!(request, trailers(&["x-checksum"]));
        let passed = [
            "grpc-status",
            "grpc-message",
            "server-timing",
            "content-digest",
        ];
        let dropped = [
            "set-cookie",
            "content-type",
            "cdn-cache-control",
            "access-control-allow-origin",
            "connection",
        ];
        let mut response = trailers(&[&passed[..], &dropped].concat());
        restrict_response(&mut response, None);
        assert_eq!(response, trailers(&passed));
    }

    #[test]
    fn only_passed_trailers_are_announced() {
        let mut headers = HeaderMap::new();
        assert_eq!(announcement(&headers), None);
        for value in ["X-Sum, Set-Cookie", "content-length"] {
            headers.append(header::TRAILER, HeaderValue::from_static(value));
        }
        let expected = HeaderValue::from_static("x-sum");
        assert_eq!(announcement(&headers), Some(expected));
    }
}
