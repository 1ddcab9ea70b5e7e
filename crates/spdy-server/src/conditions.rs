//! Conditional requests (RFC 9110 §13): decides whether a client's copy is still valid.

use std::time::SystemTime;

use http::header::{self, HeaderMap, HeaderName};

use crate::stored_response::StoredResponse;

/// The result of the conditions of a GET or HEAD.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ConditionResult {
    /// Send the response.
    Send,
    /// The client's copy is valid: 304.
    NotModified,
    /// A precondition failed: 412.
    Failed,
}

/// Evaluates the conditions in the order of RFC 9110 §13.2.2.
pub(crate) fn evaluate(request: &HeaderMap, response_with_tag: &StoredResponse) -> ConditionResult {
    let unmet = match request.contains_key(header::IF_MATCH) {
        true => !list_matches(
            request,
            header::IF_MATCH,
            response_with_tag,
            Comparison::Strong,
        ),
        false => date(request, header::IF_UNMODIFIED_SINCE)
            .zip(response_with_tag.modified)
            .is_some_and(|(since, modified)| modified > since),
    };
    if unmet {
        return ConditionResult::Failed;
    }
    let is_current = match request.contains_key(header::IF_NONE_MATCH) {
        true => list_matches(
            request,
            header::IF_NONE_MATCH,
            response_with_tag,
            Comparison::Weak,
        ),
        false => date(request, header::IF_MODIFIED_SINCE)
            .zip(response_with_tag.modified)
            .is_some_and(|(since, modified)| modified <= since),
    };
    if is_current {
        ConditionResult::NotModified
    } else {
        ConditionResult::Send
    }
}

/// True if a Range may be applied: there is no If-Range, or it matches `response` (RFC 9110 §13.1.5).
pub(crate) fn if_range_matches(request: &HeaderMap, response_with_tag: &StoredResponse) -> bool {
    let Some(if_range) = request.get(header::IF_RANGE) else {
        return true;
    };
    let Ok(if_range) = if_range.to_str().map(str::trim) else {
        return false;
    };
    if if_range.starts_with('"') || if_range.starts_with("W/") {
        return tag(response_with_tag)
            .is_some_and(|etag| matches(if_range, etag, Comparison::Strong));
    }
    httpdate::parse_http_date(if_range).is_ok_and(|date| response_with_tag.modified == Some(date))
}

/// How two entity tags are compared (RFC 9110 §8.8.3.2).
#[derive(Clone, Copy, Eq, PartialEq)]
enum Comparison {
    Strong,
    Weak,
}

fn matches(requested: &str, own: &str, comparison: Comparison) -> bool {
    let weak = |tag: &str| tag.starts_with("W/");
    let opaque = |tag: &str| tag.strip_prefix("W/").unwrap_or(tag).to_owned();
    if comparison == Comparison::Strong && (weak(requested) || weak(own)) {
        return false;
    }
    opaque(requested) == opaque(own)
}

fn tag(response_with_tag: &StoredResponse) -> Option<&str> {
    response_with_tag.headers.get(header::ETAG)?.to_str().ok()
}

/// True if the list of tags in `name` contains the tag of `response`; `*` matches every response.
fn list_matches(
    request: &HeaderMap,
    name: HeaderName,
    response_with_tag: &StoredResponse,
    comparison: Comparison,
) -> bool {
    let values = request.get_all(name);
    let texts = values.iter().filter_map(|value| value.to_str().ok());
    texts.flat_map(tags).any(|requested| {
        requested == "*"
            || tag(response_with_tag).is_some_and(|etag| matches(requested, etag, comparison))
    })
}

/// The members of a list of tags; a comma within quotes is part of its tag.
fn tags(list: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    list.split(move |c| {
        quoted ^= c == '"';
        c == ',' && !quoted
    })
    .map(str::trim)
}

fn date(request: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(request.get(name)?.to_str().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderValue, StatusCode};

    use super::*;

    const THEN: &str = "Tue, 15 Nov 1994 12:45:26 GMT";
    const BEFORE: &str = "Tue, 15 Nov 1994 12:45:25 GMT";

    fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter().cloned();
        pairs
            .map(|(name, value)| (name, HeaderValue::from_static(value)))
            .collect()
    }

    fn response_with_tag(tag: &'static str) -> StoredResponse {
        let headers = headers(&[(header::ETAG, tag), (header::LAST_MODIFIED, THEN)]);
        StoredResponse::new(StatusCode::OK, headers, Bytes::new())
    }

    #[test]
    fn conditions_are_evaluated_in_the_order_of_the_rfc() {
        use ConditionResult::{Failed, NotModified, Send};
        let table: [(&[(HeaderName, &'static str)], ConditionResult); 13] = [
            (&[], Send),
            (&[(header::IF_NONE_MATCH, "\"a\"")], NotModified),
            (&[(header::IF_NONE_MATCH, "\"b,c\", W/\"a\"")], NotModified),
            (&[(header::IF_NONE_MATCH, "*")], NotModified),
            (&[(header::IF_NONE_MATCH, "\"b\"")], Send),
            (
                &[
                    (header::IF_NONE_MATCH, "\"b\""),
                    (header::IF_MODIFIED_SINCE, THEN),
                ],
                Send,
            ),
            (&[(header::IF_MODIFIED_SINCE, THEN)], NotModified),
            (&[(header::IF_MODIFIED_SINCE, BEFORE)], Send),
            (&[(header::IF_MODIFIED_SINCE, "yesterday")], Send),
            (&[(header::IF_MATCH, "W/\"a\"")], Failed),
            (&[(header::IF_MATCH, "\"a\"")], Send),
            (&[(header::IF_UNMODIFIED_SINCE, BEFORE)], Failed),
            (
                &[
                    (header::IF_MATCH, "\"b\""),
                    (header::IF_NONE_MATCH, "\"a\""),
                ],
                Failed,
            ),
        ];
        for (pairs, expected) in table {
            assert_eq!(
                evaluate(&headers(pairs), &response_with_tag("\"a\"")),
                expected,
                "{pairs:?}"
            );
        }
    }

    #[test]
    fn a_range_stands_only_for_the_very_same_bytes() {
        for (value, tag, expected) in [
            ("\"a\"", "\"a\"", true),
            ("\"b\"", "\"a\"", false),
            ("W/\"a\"", "W/\"a\"", false),
            (THEN, "\"a\"", true),
            (BEFORE, "\"a\"", false),
        ] {
            let request = headers(&[(header::IF_RANGE, value)]);
            assert_eq!(
                if_range_matches(&request, &response_with_tag(tag)),
                expected,
                "{value} against {tag}"
            );
        }
    }
}
