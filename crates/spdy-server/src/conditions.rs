//! Conditional requests (RFC 9110 §13): decides whether a client's copy is still valid.

use std::time::SystemTime;

use http::header::{self, HeaderMap, HeaderName};

use crate::stored_response::StoredResponse;

/// What the conditions of a GET or HEAD come to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ConditionResult {
    /// Send it.
    Send,
    /// The client has it: 304.
    NotModified,
    /// A condition for doing anything at all failed: 412.
    Failed,
}

/// Judges in the order of RFC 9110 §13.2.2.
pub(crate) fn evaluate(request: &HeaderMap, answer: &StoredResponse) -> ConditionResult {
    let unmet = match request.contains_key(header::IF_MATCH) {
        true => !list_matches(request, header::IF_MATCH, answer, Comparison::Strong),
        false => date(request, header::IF_UNMODIFIED_SINCE)
            .zip(answer.modified)
            .is_some_and(|(since, modified)| modified > since),
    };
    if unmet {
        return ConditionResult::Failed;
    }
    let has_it = match request.contains_key(header::IF_NONE_MATCH) {
        true => list_matches(request, header::IF_NONE_MATCH, answer, Comparison::Weak),
        false => date(request, header::IF_MODIFIED_SINCE)
            .zip(answer.modified)
            .is_some_and(|(since, modified)| modified <= since),
    };
    if has_it {
        ConditionResult::NotModified
    } else {
        ConditionResult::Send
    }
}

/// Whether a Range may be honoured: there is no If-Range, or it names what we have (RFC 9110 §13.1.5).
pub(crate) fn if_range_matches(request: &HeaderMap, answer: &StoredResponse) -> bool {
    let Some(wanted) = request.get(header::IF_RANGE) else {
        return true;
    };
    let Ok(wanted) = wanted.to_str().map(str::trim) else {
        return false;
    };
    if wanted.starts_with('"') || wanted.starts_with("W/") {
        return tag(answer).is_some_and(|ours| matches(wanted, ours, Comparison::Strong));
    }
    httpdate::parse_http_date(wanted).is_ok_and(|date| answer.modified == Some(date))
}

/// How two entity tags are compared (RFC 9110 §8.8.3.2).
#[derive(Clone, Copy, Eq, PartialEq)]
enum Comparison {
    Strong,
    Weak,
}

fn matches(theirs: &str, ours: &str, comparison: Comparison) -> bool {
    let weak = |tag: &str| tag.starts_with("W/");
    let opaque = |tag: &str| tag.strip_prefix("W/").unwrap_or(tag).to_owned();
    if comparison == Comparison::Strong && (weak(theirs) || weak(ours)) {
        return false;
    }
    opaque(theirs) == opaque(ours)
}

fn tag(answer: &StoredResponse) -> Option<&str> {
    answer.headers.get(header::ETAG)?.to_str().ok()
}

/// Whether the list of tags in `name` holds ours; `*` holds everything that exists.
fn list_matches(
    request: &HeaderMap,
    name: HeaderName,
    answer: &StoredResponse,
    comparison: Comparison,
) -> bool {
    let values = request.get_all(name);
    let texts = values.iter().filter_map(|value| value.to_str().ok());
    texts.flat_map(tags).any(|theirs| {
        theirs == "*" || tag(answer).is_some_and(|ours| matches(theirs, ours, comparison))
    })
}

/// The members of a list of tags; a comma inside quotes is part of its tag.
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

    fn answer(tag: &'static str) -> StoredResponse {
        let headers = headers(&[(header::ETAG, tag), (header::LAST_MODIFIED, THEN)]);
        StoredResponse::new(StatusCode::OK, headers, Bytes::new())
    }

    #[test]
    fn conditions_are_judged_in_the_order_of_the_rfc() {
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
        for (pairs, want) in table {
            assert_eq!(
                evaluate(&headers(pairs), &answer("\"a\"")),
                want,
                "{pairs:?}"
            );
        }
    }

    #[test]
    fn a_range_stands_only_for_the_very_same_bytes() {
        for (value, tag, want) in [
            ("\"a\"", "\"a\"", true),
            ("\"b\"", "\"a\"", false),
            ("W/\"a\"", "W/\"a\"", false),
            (THEN, "\"a\"", true),
            (BEFORE, "\"a\"", false),
        ] {
            let request = headers(&[(header::IF_RANGE, value)]);
            assert_eq!(
                if_range_matches(&request, &answer(tag)),
                want,
                "{value} against {tag}"
            );
        }
    }
}
