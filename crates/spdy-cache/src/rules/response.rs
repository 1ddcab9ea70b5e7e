//! Builds the response to a request from a stored response (RFC 9111 §4, RFC 9110 §13.2, §14).
//!
//! ```text
//!  stored: 200, whole body
//!    If-None-Match, else If-Modified-Since, shows that the client has it ──▶ 304, no body
//!    Range (only for GET), and If-Range, if present, matches
//!        one range ─────────────▶ 206, those bytes
//!        several ───────────────▶ 206, multipart/byteranges
//!        none within the body ──▶ 416, Content-Range: bytes */len
//!    else ──────────────────────▶ as it is stored, with Age
//! ```
//!
//! `If-Match` and `If-Unmodified-Since` are never evaluated here: [`lookup`](crate::lookup::lookup) sends such requests to the
//! origin, so that 412 comes from the origin.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, AGE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, DATE, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, LAST_MODIFIED, RANGE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, request, response};

use crate::rules::date;
use crate::rules::etag::{Comparison, EntityTag};
use crate::rules::freshness::{date_of, single};
use crate::rules::policy::Policy;
use crate::rules::range;
use crate::rules::range::RangeRequest;
use crate::rules::stored::Stored;
use crate::rules::validate::response_head;

/// A response that is ready to be sent.
#[derive(Debug)]
pub struct CachedResponse {
    /// Its head, with `Age` and a length.
    pub head: response::Parts,
    /// The part of the stored body to send.
    pub body: Payload,
}

/// The part of a stored body to send.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Payload {
    /// No body.
    None,
    /// The whole body.
    Whole,
    /// This range of the body.
    Range(Range<u64>),
    /// Several ranges, each after its part header, and the bytes after the last part.
    Multipart {
        /// Header and range of each part, in order.
        parts: Vec<(Bytes, Range<u64>)>,
        /// The bytes after the last part.
        end: Bytes,
    },
}

/// The response to the GET or HEAD `request` from `stored`, whose body has `body_len` bytes.
#[must_use]
pub fn answer(
    policy: &Policy,
    stored: &Stored,
    request: &request::Parts,
    body_len: u64,
    now: SystemTime,
) -> CachedResponse {
    let served = stored.served();
    let is_get = request.method == Method::GET;
    let mut answer = if stored.status() != StatusCode::OK {
        whole(stored, is_get, body_len)
    } else if is_not_modified(stored, served, &request.headers, now) {
        not_modified(served)
    } else {
        match requested_range(policy, served, request, body_len, now) {
            RangeRequest::Full => whole(stored, is_get, body_len),
            RangeRequest::Unsatisfiable => unsatisfiable(body_len),
            RangeRequest::Ranges(ranges) => match &ranges[..] {
                [one] => single_range(served, one.clone(), body_len),
                several => multipart(served, several, body_len, now),
            },
        }
    };
    answer.head.headers.insert(AGE, age_value(stored.age(now)));
    answer
}

/// The single range that `request` requests, of a response that is still arriving, with the fields `served` and a final length of
/// `len` bytes: the fields of a 206, and the range. `None`: the request gets the whole response.
#[must_use]
pub fn part(
    policy: &Policy,
    served: &HeaderMap,
    request: &request::Parts,
    len: u64,
    now: SystemTime,
) -> Option<(HeaderMap, Range<u64>)> {
    match requested_range(policy, served, request, len, now) {
        RangeRequest::Ranges(ranges) if ranges.len() == 1 => {
            let range = ranges[0].clone();
            Some((single_range(served, range.clone(), len).head.headers, range))
        }
        _ => None,
    }
}

/// The value of `Age`: whole seconds.
#[must_use]
pub fn age_value(age: Duration) -> HeaderValue {
    HeaderValue::from(age.as_secs())
}

fn whole(stored: &Stored, is_get: bool, body_len: u64) -> CachedResponse {
    let mut head = response_head(stored.status());
    head.headers = stored.served().clone();
    let bodiless = matches!(
        stored.status(),
        StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT
    );
    if bodiless {
        head.headers.remove(CONTENT_LENGTH);
    } else if !has_content_length(&head.headers, body_len) {
        head.headers
            .insert(CONTENT_LENGTH, HeaderValue::from(body_len));
    }
    let body = match is_get && !bodiless {
        true => Payload::Whole,
        false => Payload::None,
    };
    CachedResponse { head, body }
}

/// True if Content-Length is present once, in canonical form, and equals `body_len`.
fn has_content_length(headers: &HeaderMap, body_len: u64) -> bool {
    let mut lines = headers
        .get_all(CONTENT_LENGTH)
        .iter()
        .map(HeaderValue::as_bytes);
    let (Some(digits), None) = (lines.next(), lines.next()) else {
        return false;
    };
    let mut remaining = body_len;
    let digits_match = digits.iter().rev().all(|digit| {
        let is_equal = *digit == b'0' + (remaining % 10) as u8;
        remaining /= 10;
        is_equal
    });
    digits_match && remaining == 0 && matches!(digits, [b'0'] | [b'1'..=b'9', ..])
}

/// True if the client's conditions show that it has the current response (RFC 9110 §13.2.2, RFC 9111 §4.3.2).
fn is_not_modified(
    stored: &Stored,
    served: &HeaderMap,
    request: &HeaderMap,
    now: SystemTime,
) -> bool {
    if request.contains_key(IF_NONE_MATCH) {
        let conditions = request.get_all(IF_NONE_MATCH).iter();
        return match EntityTag::of(served) {
            Some(tag) => tag.is_in(conditions, Comparison::Weak),
            None => request
                .get_all(IF_NONE_MATCH)
                .iter()
                .any(|condition| condition == "*"),
        };
    }
    let Some(since) = date_of(request, &IF_MODIFIED_SINCE, now) else {
        return false;
    };
    // Without `Last-Modified`, the response cannot have been modified after it was generated.
    let modified = date_of(served, &LAST_MODIFIED, now).unwrap_or(stored.date);
    modified <= since
}

/// RFC 9110 §15.4.5: the fields that identify the response and its lifetime, without those about the missing body.
pub(crate) fn not_modified(served: &HeaderMap) -> CachedResponse {
    let mut head = response_head(StatusCode::NOT_MODIFIED);
    head.headers = served.clone();
    for name in [
        CONTENT_LENGTH,
        CONTENT_TYPE,
        CONTENT_ENCODING,
        CONTENT_LANGUAGE,
        CONTENT_RANGE,
        HeaderName::from_static("repr-digest"),
        HeaderName::from_static("digest"),
    ] {
        head.headers.remove(name);
    }
    strip_content_digests(&mut head.headers);
    CachedResponse {
        head,
        body: Payload::None,
    }
}

fn requested_range(
    policy: &Policy,
    served: &HeaderMap,
    request: &request::Parts,
    body_len: u64,
    now: SystemTime,
) -> RangeRequest {
    if request.method != Method::GET
        || served
            .get(ACCEPT_RANGES)
            .is_some_and(|units| units == "none")
    {
        return RangeRequest::Full;
    }
    match single(&request.headers, &RANGE) {
        Ok(Some(field)) if if_range_holds(served, &request.headers, now) => {
            range::read(field, body_len, policy.max_ranges)
        }
        _ => RangeRequest::Full,
    }
}

/// RFC 9110 §13.1.5: the same tag by strong comparison; or exactly the same date, if it is a strong validator (§8.8.2.2).
pub(crate) fn if_range_holds(served: &HeaderMap, request: &HeaderMap, now: SystemTime) -> bool {
    let Ok(Some(condition)) = single(request, &IF_RANGE) else {
        return !request.contains_key(IF_RANGE);
    };
    if let Some(date) = date::parse(condition, now) {
        let strong =
            date_of(served, &DATE, now).is_some_and(|made| date + Duration::from_secs(1) <= made);
        return strong && date_of(served, &LAST_MODIFIED, now) == Some(date);
    }
    EntityTag::of(served).is_some_and(|tag| tag.strongly_matches(EntityTag::read(condition)))
}

fn unsatisfiable(body_len: u64) -> CachedResponse {
    let mut head = response_head(StatusCode::RANGE_NOT_SATISFIABLE);
    let range = HeaderValue::try_from(format!("bytes */{body_len}")).expect("the value is ASCII");
    head.headers.insert(CONTENT_RANGE, range);
    head.headers.insert(CONTENT_LENGTH, HeaderValue::from(0));
    CachedResponse {
        head,
        body: Payload::None,
    }
}

fn content_range(range: &Range<u64>, body_len: u64) -> String {
    format!("bytes {}-{}/{body_len}", range.start, range.end - 1)
}

fn single_range(served: &HeaderMap, range: Range<u64>, body_len: u64) -> CachedResponse {
    let mut head = response_head(StatusCode::PARTIAL_CONTENT);
    head.headers = served.clone();
    let value = HeaderValue::try_from(content_range(&range, body_len)).expect("the value is ASCII");
    head.headers.insert(CONTENT_RANGE, value);
    head.headers
        .insert(CONTENT_LENGTH, HeaderValue::from(range.end - range.start));
    strip_content_digests(&mut head.headers);
    CachedResponse {
        head,
        body: Payload::Range(range),
    }
}

/// Removes digests of the whole content from a response with only a part of it (RFC 9530 §2); `Repr-Digest` always describes the
/// whole.
fn strip_content_digests(headers: &mut HeaderMap) {
    for name in ["content-digest", "content-md5"] {
        headers.remove(name);
    }
}

/// Builds a multipart response (RFC 9110 §14.6).
fn multipart(
    served: &HeaderMap,
    ranges: &[Range<u64>],
    body_len: u64,
    now: SystemTime,
) -> CachedResponse {
    let boundary = boundary(served, now);
    let part_type = served
        .get(CONTENT_TYPE)
        .map_or(&b""[..], HeaderValue::as_bytes);
    let mut parts = Vec::with_capacity(ranges.len());
    let mut len = 0;
    for range in ranges {
        let mut part = format!("\r\n--{boundary}\r\n").into_bytes();
        if !part_type.is_empty() {
            part.extend_from_slice(b"Content-Type: ");
            part.extend_from_slice(part_type);
            part.extend_from_slice(b"\r\n");
        }
        part.extend_from_slice(
            format!("Content-Range: {}\r\n\r\n", content_range(range, body_len)).as_bytes(),
        );
        len += part.len() as u64 + (range.end - range.start);
        parts.push((Bytes::from(part), range.clone()));
    }
    let end = Bytes::from(format!("\r\n--{boundary}--\r\n"));
    len += end.len() as u64;

    let mut head = response_head(StatusCode::PARTIAL_CONTENT);
    head.headers = served.clone();
    head.headers.remove(CONTENT_RANGE);
    strip_content_digests(&mut head.headers);
    let multipart = HeaderValue::try_from(format!("multipart/byteranges; boundary={boundary}"))
        .expect("the boundary is ASCII");
    head.headers.insert(CONTENT_TYPE, multipart);
    head.headers.insert(CONTENT_LENGTH, HeaderValue::from(len));
    CachedResponse {
        head,
        body: Payload::Multipart { parts, end },
    }
}

/// 128 bits that the author of the body could not predict, derived from its head and the time of the request.
fn boundary(served: &HeaderMap, now: SystemTime) -> String {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        salt.hash(&mut hasher);
        now.hash(&mut hasher);
        for (name, value) in served {
            (name.as_str(), value.as_bytes()).hash(&mut hasher);
        }
        hasher.finish()
    };
    format!("{:016x}{:016x}", half(0), half(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_length_is_one_canonical_line() {
        for (lines, expected) in [
            (&["0"][..], Some(0)),
            (&["1234567890"], Some(1_234_567_890)),
            (&["18446744073709551615"], Some(u64::MAX)),
            (&[], None),
            (&[""], None),
            (&["00"], None),
            (&["010"], None),
            (&["+10"], None),
            (&["10 "], None),
            (&["10", "10"], None),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                let value = HeaderValue::from_bytes(line.as_bytes())
                    .expect("the line is a valid header value");
                headers.append(CONTENT_LENGTH, value);
            }
            for length in [0, 1, 10, 1_234_567_890, u64::MAX] {
                assert_eq!(
                    has_content_length(&headers, length),
                    expected == Some(length),
                    "{lines:?}, {length}"
                );
            }
        }
    }
}
