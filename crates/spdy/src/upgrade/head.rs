//! Heads of HTTP/1.1 messages: read up to the blank line and not a byte more, and written (RFC 9112 §2.1).

use std::future::Future;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::{Either, select};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::runtime::SharedRuntime;
use crate::upgrade::{Limits, UpgradeError};

/// Bytes per read.
const READ_BYTES: usize = 4096;

/// Runs `work` with the timeout `after`.
pub(super) async fn within<R>(
    runtime: &SharedRuntime,
    after: Duration,
    work: impl Future<Output = Result<R, UpgradeError>>,
) -> Result<R, UpgradeError> {
    let deadline = runtime.sleep_until(runtime.now() + after);
    match select(Box::pin(work), deadline).await {
        Either::Left((done, _)) => done,
        Either::Right(((), _)) => Err(UpgradeError::TimedOut { after }),
    }
}

/// Removes one head, blank line included, from `buffer`, reading more as needed. Bytes after it stay in `buffer`.
pub(super) async fn read_head<T: AsyncRead + Unpin>(
    io: &mut T,
    buffer: &mut BytesMut,
    limit: usize,
) -> Result<Bytes, UpgradeError> {
    let mut searched = 0;
    loop {
        if let Some(end) = end_of_head(buffer, searched) {
            if end > limit {
                return Err(UpgradeError::HeadTooLong { limit });
            }
            return Ok(buffer.split_to(end).freeze());
        }
        if buffer.len() >= limit {
            return Err(UpgradeError::HeadTooLong { limit });
        }
        searched = buffer.len();
        buffer.reserve(READ_BYTES);
        if io.read_buf(buffer).await? == 0 {
            return Err(UpgradeError::Closed {
                received_bytes: buffer.len(),
            });
        }
    }
}

/// The end of the head, if `bytes` contains its blank line; the first `searched` bytes do not. A line may end without CR (RFC 9112
/// §2.2).
fn end_of_head(bytes: &[u8], searched: usize) -> Option<usize> {
    let from = searched.saturating_sub(2);
    (from..bytes.len()).find_map(|at| match &bytes[at..] {
        [b'\n', b'\n', ..] => Some(at + 2),
        [b'\n', b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    })
}

/// Allocates header lines for a head, up to the limit.
pub(super) fn lines(limits: &Limits) -> Vec<httparse::Header<'static>> {
    vec![httparse::EMPTY_HEADER; limits.header_lines]
}

/// Converts the header lines that httparse found.
pub(super) fn header_map(parsed: &[httparse::Header<'_>]) -> Result<HeaderMap, UpgradeError> {
    let mut headers = HeaderMap::with_capacity(parsed.len());
    for line in parsed {
        let name = HeaderName::from_bytes(line.name.as_bytes())
            .map_err(|_| UpgradeError::Head(httparse::Error::HeaderName))?;
        let value = HeaderValue::from_bytes(line.value)
            .map_err(|_| UpgradeError::Head(httparse::Error::HeaderValue))?;
        headers.append(name, value);
    }
    Ok(headers)
}

/// Appends header lines and the blank line.
pub(super) fn write_headers(headers: &HeaderMap, out: &mut Vec<u8>) {
    for (name, value) in headers {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

/// The members of a list header, over all its lines (RFC 9110 §5.6.1).
pub(super) fn members<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'a str> + use<'a> {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|member| !member.is_empty())
}

/// True if the list header `name` has the member `token` in any of its lines, compared without case (RFC 9110 §5.6.1).
#[must_use]
pub fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    members(headers, name).any(|member| member.eq_ignore_ascii_case(token))
}

/// The first member of the list header `name`, over all its lines, that is one of `tokens`, compared without case. For an `Upgrade`
/// header that is the client's preferred protocol (RFC 9110 §7.8 lists it first).
#[must_use]
pub fn first_token<'a>(
    headers: &HeaderMap,
    name: &HeaderName,
    tokens: &[&'a str],
) -> Option<&'a str> {
    members(headers, name).find_map(|member| {
        let mut candidates = tokens.iter().copied();
        candidates.find(|token| member.eq_ignore_ascii_case(token))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_ends_at_its_blank_line_with_any_split() {
        let bytes = b"GET / HTTP/1.1\r\na: b\r\n\r\n\x80\x03";
        for searched in 0..=bytes.len() - 3 {
            assert_eq!(
                end_of_head(bytes, searched),
                Some(24),
                "{searched} searched"
            );
        }
        for cut in 0..24 {
            assert_eq!(end_of_head(&bytes[..cut], 0), None, "cut at {cut}");
        }
        assert_eq!(end_of_head(b"a\n\nb", 0), Some(3));
    }

    #[test]
    fn tokens_are_found_in_any_case_and_place() {
        let mut headers = HeaderMap::new();
        headers.append(
            "connection",
            HeaderValue::from_static("keep-alive, UPGRADE"),
        );
        headers.append("connection", HeaderValue::from_static("close"));
        let name = http::header::CONNECTION;
        assert!(has_token(&headers, &name, "Upgrade"));
        assert!(has_token(&headers, &name, "close"));
        assert!(!has_token(&headers, &name, "up"));
        let first = |tokens: &[&'static str]| first_token(&headers, &name, tokens);
        assert_eq!(first(&["close", "upgrade"]), Some("upgrade"));
        assert_eq!(first(&["close", "up"]), Some("close"));
        assert_eq!(first(&["up"]), None);
    }
}
