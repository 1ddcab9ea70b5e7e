//! A client's own conditions and range, which are not sent to the origin (RFC 9110 §13.2.2, §14.2): conditions about a client's own
//! copy would distinguish clients.
//!
//! ```text
//!  request ──▶ single_range ──▶ origin ──▶ a part ──▶ range_holds? no: the whole is requested
//!                                     └──▶ instead: 412 (If-Match, If-Unmodified-Since), 304 (If-None-Match, If-Modified-Since)
//! ```

use std::time::SystemTime;

use http::header::{
    IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE, LAST_MODIFIED, RANGE,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, response};

use crate::rules::etag::{Comparison, EntityTag};
use crate::rules::freshness::{date_of, single};
use crate::rules::range;
use crate::rules::response::{if_range_holds, not_modified};
use crate::rules::validate::response_head;

/// The single byte range of a request, normalized; `None` if there are several, or none that is valid.
#[must_use]
pub fn single_range(request: &HeaderMap) -> Option<HeaderValue> {
    let field = single(request, &RANGE).ok()??;
    HeaderValue::try_from(range::rewritten(field)?).ok()
}

/// True if a part of the response with the head `answer` satisfies the request's `If-Range` (RFC 9110 §13.1.5).
#[must_use]
pub fn range_holds(request: &HeaderMap, answer: &HeaderMap, now: SystemTime) -> bool {
    if_range_holds(answer, request, now)
}

/// The head that a client gets instead of a response with this status and head, because of its conditions; `None` if it gets the
/// response.
#[must_use]
pub fn conditional_response(
    request: &HeaderMap,
    status: StatusCode,
    answer: &HeaderMap,
    now: SystemTime,
) -> Option<response::Parts> {
    if !status.is_success() {
        return None;
    }
    let modified = date_of(answer, &LAST_MODIFIED, now);
    let is_after = |name: &HeaderName| {
        let since = date_of(request, name, now);
        since
            .zip(modified)
            .map(|(since, modified)| modified > since)
    };
    let fails = match condition_matches(request, &IF_MATCH, answer, Comparison::Strong) {
        Some(condition_matches) => !condition_matches,
        None => is_after(&IF_UNMODIFIED_SINCE) == Some(true),
    };
    if fails {
        return Some(response_head(StatusCode::PRECONDITION_FAILED));
    }
    let has_it = match condition_matches(request, &IF_NONE_MATCH, answer, Comparison::Weak) {
        Some(condition_matches) => condition_matches,
        None => is_after(&IF_MODIFIED_SINCE) == Some(false),
    };
    has_it.then(|| not_modified(answer).head)
}

/// True if the condition `name` contains the tag of `answer` or is `*`; `None` without such a condition.
fn condition_matches(
    request: &HeaderMap,
    name: &HeaderName,
    answer: &HeaderMap,
    comparison: Comparison,
) -> Option<bool> {
    request.get(name)?;
    let mut lines = request.get_all(name).iter();
    Some(match EntityTag::of(answer) {
        Some(tag) => tag.is_in(lines, comparison),
        None => lines.any(|line| line == "*"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &'static str)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        };
        lines.iter().map(field).collect()
    }

    #[test]
    fn conditions_use_the_received_response() {
        let tagged = head(&[
            ("etag", "\"a\""),
            ("last-modified", "Sat, 21 Nov 2026 00:00:00 GMT"),
            ("content-length", "3"),
        ]);
        let (before, at) = (
            "Fri, 20 Nov 2026 00:00:00 GMT",
            "Sat, 21 Nov 2026 00:00:00 GMT",
        );
        let rows = [
            (&[("if-none-match", "\"a\"")][..], Some(304)),
            (&[("if-none-match", "W/\"a\"")], Some(304)),
            (&[("if-none-match", "*")], Some(304)),
            (&[("if-none-match", "\"visitor-42\"")], None),
            (&[("if-modified-since", at)], Some(304)),
            (&[("if-modified-since", before)], None),
            (
                &[("if-none-match", "\"b\""), ("if-modified-since", at)],
                None,
            ),
            (&[("if-match", "\"a\"")], None),
            (&[("if-match", "*")], None),
            (&[("if-match", "W/\"a\"")], Some(412)),
            (&[("if-match", "\"b\"")], Some(412)),
            (&[("if-unmodified-since", before)], Some(412)),
            (&[("if-unmodified-since", at)], None),
            (
                &[("if-match", "\"a\""), ("if-none-match", "\"a\"")],
                Some(304),
            ),
            (&[("if-modified-since", "yesterday")], None),
            (&[], None),
        ];
        for (request, expected) in rows {
            let actual = conditional_response(
                &head(request),
                StatusCode::OK,
                &tagged,
                SystemTime::UNIX_EPOCH,
            );
            let actual = actual.as_ref();
            assert_eq!(
                actual.map(|head| head.status.as_u16()),
                expected,
                "{request:?}"
            );
            assert!(
                actual.is_none_or(|head| !head.headers.contains_key("content-length")),
                "no byte comes"
            );
            let failed = StatusCode::NOT_FOUND;
            let failed =
                conditional_response(&head(request), failed, &tagged, SystemTime::UNIX_EPOCH);
            assert!(failed.is_none(), "an error is reported: {request:?}");
        }
        let bare = head(&[]);
        for (name, expected) in [("if-none-match", Some(304)), ("if-match", None)] {
            for (value, expected) in [
                ("*", expected),
                ("\"a\"", (name == "if-match").then_some(412)),
            ] {
                let request = head(&[(name, value)]);
                let actual =
                    conditional_response(&request, StatusCode::OK, &bare, SystemTime::UNIX_EPOCH);
                assert_eq!(
                    actual.map(|head| head.status.as_u16()),
                    expected,
                    "{name}: {value}"
                );
            }
        }
    }

    #[test]
    fn range_is_written_canonically() {
        for (field, expected) in [
            ("bytes=0-99", Some("bytes=0-99")),
            ("BYTES= 007-0x", None),
            ("Bytes=007-", Some("bytes=7-")),
            ("bytes=,-500,", Some("bytes=-500")),
            ("bytes=5-4", None),
            ("bytes=0-1,5-6", None),
            ("bytes=", None),
            ("visitors=42", None),
            (
                "bytes=99999999999999999999-",
                Some("bytes=18446744073709551615-"),
            ),
        ] {
            let actual = single_range(&head(&[("range", field)]));
            assert_eq!(
                actual.as_ref().map(|it| it.to_str().unwrap()),
                expected,
                "{field}"
            );
        }
    }
}
