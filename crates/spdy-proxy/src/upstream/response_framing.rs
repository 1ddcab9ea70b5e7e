//! Makes the end of an origin's response unambiguous for every later reader (RFC 9112 §6.3).

use http::{HeaderMap, Response, StatusCode, header};
use spdy::body::Body;
use spdy_client::origin::Origin;

use crate::upstream::error::UpstreamError;

/// Fails if the end of a response of `origin` is ambiguous, or it has a transfer coding that is not decoded.
pub(crate) fn check_framing(headers: &HeaderMap, origin: Origin) -> Result<(), UpstreamError> {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let Some(coding) = codings.next() else {
        return Ok(());
    };
    if headers.contains_key(header::CONTENT_LENGTH) {
        return Err(UpstreamError::ConflictingLength(origin));
    }
    let is_undone = match coding.to_str() {
        Ok(coding) if codings.next().is_none() => !has_unsupported_transfer_coding(coding),
        _ => false,
    };
    match is_undone {
        true => Ok(()),
        false => Err(UpstreamError::TransferCoding(origin)),
    }
}

/// Whether these transfer codings are more than chunked alone. A single unregistered name does not count: such a response ends with its
/// connection (RFC 9112 §6.3).
fn has_unsupported_transfer_coding(codings: &str) -> bool {
    let registered = ["gzip", "x-gzip", "deflate", "compress", "x-compress"];
    let is_any = |coding: &str| {
        registered
            .iter()
            .any(|name| name.eq_ignore_ascii_case(coding))
    };
    codings.contains([',', ';']) || is_any(codings.trim())
}

/// Sets `Content-Length` once, as the number by which the body was read: `4, 4` may be read, but not passed on (RFC 9110 §8.6). A response
/// without content gets none.
pub(crate) fn normalize_content_length(response: &mut Response<Body>) {
    let status = response.status();
    let headers = response.headers_mut();
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).iter();
    let Some(first) = lengths.next() else { return };
    if status == StatusCode::NO_CONTENT {
        headers.remove(header::CONTENT_LENGTH);
    } else if lengths.next().is_some() || first.as_bytes().contains(&b',') {
        let text = first.to_str().unwrap_or_default();
        let length = text.split(',').next().unwrap_or_default().trim();
        let length = length.parse::<u64>().ok();
        headers.remove(header::CONTENT_LENGTH);
        if let Some(length) = length {
            headers.insert(header::CONTENT_LENGTH, length.into());
        }
    }
}
