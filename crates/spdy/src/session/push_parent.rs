//! A request with associated pushes: decides if such a push answers another request.

use http::header::{self, HeaderMap, HeaderName};
use http::{StatusCode, Uri};

/// Request headers that may select a response without being in `Vary`: credentials, and content negotiation.
pub const SELECTING_HEADERS: [HeaderName; 4] = [
    header::AUTHORIZATION,
    header::COOKIE,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
];

/// The parts of a request that are needed to check its pushes.
#[derive(Debug)]
pub(crate) struct PushParent {
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
}

impl PushParent {
    /// True if a push associated with this request answers another request with `headers`, as far as the push's head is known.
    pub(crate) fn is_same_response(
        &self,
        headers: &HeaderMap,
        response: Option<(StatusCode, &HeaderMap)>,
    ) -> bool {
        response.is_none_or(|(status, _)| answers(status))
            && selects_same_response(&self.headers, headers, response.map(|(_, headers)| headers))
    }
}

/// True if `request` has the same values as the page's request in all headers that select the pushed response.
fn selects_same_response(
    page: &HeaderMap,
    request: &HeaderMap,
    response: Option<&HeaderMap>,
) -> bool {
    let same = |name: &HeaderName| page.get_all(name).iter().eq(request.get_all(name).iter());
    let vary = response.map(|headers| headers.get_all(header::VARY));
    let mut named = vary.iter().flat_map(header::GetAll::iter);
    SELECTING_HEADERS.iter().all(same)
        && named.all(|value| {
            value.to_str().is_ok_and(|value| {
                value.split(',').map(str::trim).all(|name| {
                    // `*` would be a valid name, and means that no request matches another.
                    name.is_empty()
                        || name != "*"
                            && HeaderName::from_bytes(name.as_bytes()).is_ok_and(|name| same(&name))
                })
            })
        })
}

/// True if a pushed response of this status answers a plain GET.
fn answers(status: StatusCode) -> bool {
    !status.is_informational()
        && status != StatusCode::NOT_MODIFIED
        && status != StatusCode::PARTIAL_CONTENT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            let value = http::HeaderValue::from_static(value);
            (HeaderName::from_static(name), value)
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn selecting_headers_must_equal_those_of_the_page() {
        let page = headers(&[("cookie", "a=1"), ("accept", "text/html"), ("x-a", "1")]);
        for (request, vary, expected) in [
            (&[("cookie", "a=1"), ("accept", "text/css")][..], None, true),
            (&[("accept", "text/css")], None, false),
            (&[("cookie", "a=2")], None, false),
            (&[("cookie", "a=1"), ("accept-language", "de")], None, false),
            (&[("cookie", "a=1")], Some("Accept"), false),
            (
                &[("cookie", "a=1"), ("x-a", "1")],
                Some("x-a, cookie,"),
                true,
            ),
            (&[("cookie", "a=1")], Some("*"), false),
            (&[("cookie", "a=1")], Some("no name"), false),
        ] {
            let response = vary.map(|vary| headers(&[("vary", vary)]));
            let same = selects_same_response(&page, &headers(request), response.as_ref());
            assert_eq!(same, expected, "{request:?} {vary:?}");
        }
    }
}
