//! Converts pairs of a block to a message's headers: the common part of requests and responses.

use bytes::Bytes;
use http::HeaderMap;
use http::header::{self, HeaderName, HeaderValue};
use spdy_frame::header_block::HeaderBlock;

/// Why a pair is not a valid HTTP header.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadHeader {
    /// The name is not a token (RFC 9110 §5.1), or is an unknown name with a colon.
    #[error("header name {name:?} is not a token")]
    Name {
        /// The name as received, truncated to 64 bytes.
        name: String,
    },
    /// The value contains a control character.
    #[error("value of {name} contains a control character")]
    Value {
        /// The header.
        name: HeaderName,
    },
    /// More values than [`MAX_VALUES`].
    #[error("more than {limit} header values")]
    TooMany {
        /// The limit of values.
        limit: usize,
    },
    /// Content-length is not a number, or is several.
    #[error("content-length is {value:?}, expected one number")]
    ContentLength {
        /// The value as received, truncated to 64 bytes.
        value: String,
    },
}

/// Limit of values in one message. Each component between NULs counts. Otherwise a block of separators could become a table of a
/// hundred times its size.
pub const MAX_VALUES: usize = 1024;

/// Adds a pair of `block` to `headers`: the value is split at NULs, and cookie crumbs are joined by `; `.
/// Values share the block.
///
/// # Errors
///
/// [`BadHeader`], if the pair is not valid in HTTP/1.1.
pub(crate) fn append(
    headers: &mut HeaderMap,
    block: &HeaderBlock,
    name: &[u8],
    value: &[u8],
) -> Result<(), BadHeader> {
    // Upper case is accepted: several peers send it (`from_bytes` converts it to lower case).
    let Ok(name) = HeaderName::from_bytes(name) else {
        return Err(BadHeader::Name { name: quote(name) });
    };
    if name == header::COOKIE && value.contains(&0) {
        let crumbs: Vec<&[u8]> = value.split(|byte| *byte == 0).collect();
        let whole = HeaderValue::from_maybe_shared(Bytes::from(crumbs.join(&b"; "[..])));
        return insert(headers, name, whole);
    }
    if name == header::CONTENT_LENGTH {
        let lengths = &mut value.split(|byte| *byte == 0);
        let first = lengths.next().unwrap_or_default();
        // Equal values are merged; different values are request smuggling.
        if headers.contains_key(&name)
            || content_length(first).is_none()
            || lengths.any(|other| other != first)
        {
            return Err(BadHeader::ContentLength {
                value: quote(value),
            });
        }
        return insert(
            headers,
            name,
            HeaderValue::from_maybe_shared(block.share(first)),
        );
    }
    if !value.contains(&0) {
        return insert(
            headers,
            name,
            HeaderValue::from_maybe_shared(block.share(value)),
        );
    }
    for component in value.split(|byte| *byte == 0) {
        insert(
            headers,
            name.clone(),
            HeaderValue::from_maybe_shared(block.share(component)),
        )?;
    }
    Ok(())
}

fn insert(
    headers: &mut HeaderMap,
    name: HeaderName,
    value: Result<HeaderValue, header::InvalidHeaderValue>,
) -> Result<(), BadHeader> {
    let Ok(value) = value else {
        return Err(BadHeader::Value { name });
    };
    let too_many = BadHeader::TooMany { limit: MAX_VALUES };
    if headers.len() >= MAX_VALUES {
        return Err(too_many);
    }
    headers
        .try_append(name, value)
        .map(|_| ())
        .map_err(|_| too_many)
}

/// Parses a content-length: digits only, no sign, below 2^63 (RFC 9110 §8.6).
#[must_use]
pub fn content_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 19 || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = value
        .iter()
        .fold(0_u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    i64::try_from(number).is_ok().then_some(number)
}

/// Formats bytes of the peer for an error message: truncated and printable.
pub(crate) fn quote(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(64)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(headers: &mut HeaderMap, name: &str, value: &[u8]) -> Result<(), BadHeader> {
        let block = HeaderBlock::from_iter([(name, value)]);
        let (name, value) = block.iter().next().expect("the block has one pair");
        append(headers, &block, name, value)
    }

    fn one(name: &'static str, value: &'static [u8]) -> Result<HeaderMap, BadHeader> {
        let mut headers = HeaderMap::new();
        add(&mut headers, name, value)?;
        Ok(headers)
    }

    #[test]
    fn values_between_nuls_become_values_of_their_own() {
        let headers = one("set-cookie", b"a=1\0b=2").expect("the header is valid");
        let values: Vec<_> = headers.get_all("set-cookie").iter().collect();
        assert_eq!(values, ["a=1", "b=2"]);
    }

    #[test]
    fn crumbs_of_a_cookie_become_one_value() {
        assert_eq!(
            one("cookie", b"a=1\0b=2").expect("the header is valid")["cookie"],
            "a=1; b=2"
        );
    }

    #[test]
    fn equal_content_lengths_merge_and_different_ones_fail() {
        assert_eq!(
            one("content-length", b"12\x0012").expect("the header is valid")["content-length"],
            "12"
        );
        for bad in [
            &b"12\x0013"[..],
            b"",
            b"+1",
            b"1 ",
            b"0x1",
            b"9223372036854775808",
        ] {
            assert!(
                matches!(
                    one("content-length", bad),
                    Err(BadHeader::ContentLength { .. })
                ),
                "{bad:?}"
            );
        }
        assert_eq!(
            content_length(b"9223372036854775807"),
            Some(i64::MAX as u64)
        );
    }

    #[test]
    fn control_characters_and_names_that_are_no_tokens_are_refused() {
        assert!(matches!(
            one("x", b"a\r\nb: c"),
            Err(BadHeader::Value { .. })
        ));
        assert!(matches!(one("x y", b"a"), Err(BadHeader::Name { .. })));
        assert!(matches!(one(":x", b"a"), Err(BadHeader::Name { .. })));
        assert!(one("Content-Type", b"text/html").is_ok());
    }

    #[test]
    fn one_value_more_than_the_limit_is_refused() {
        let add_components = |components: usize| {
            let value = vec!["v"; components].join("\0");
            add(&mut HeaderMap::new(), "x", value.as_bytes())
        };
        assert_eq!(add_components(MAX_VALUES), Ok(()));
        let over = Err(BadHeader::TooMany { limit: MAX_VALUES });
        assert_eq!(add_components(MAX_VALUES + 1), over);
    }
}
