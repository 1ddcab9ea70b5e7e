//! Checks of a request that hyper does not make: its host, its transfer coding, and the size of its head.

use http::uri::Authority;
use http::{HeaderMap, Request, Version, header};
use spdy_net_core::refusal::Flaw;

use crate::shims::hyper::head_size;

/// The bytes of a request line besides method and target: ` `, ` HTTP/1.1` and the end of the line.
const REQUEST_LINE_OVERHEAD: usize = 12;

/// A request has several hosts, no host although one is required, or an invalid one.
pub(super) struct HostError;

/// The single host of a request, which HTTP/1.1 requires. It may be empty: `None`. Of several hosts, two servers in a row could
/// each use another one (RFC 9112 §3.2).
pub(super) fn request_host(
    version: Version,
    headers: &HeaderMap,
) -> Result<Option<Authority>, HostError> {
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if version < Version::HTTP_11 => Ok(None),
        (Some(host), None) if host.is_empty() => Ok(None),
        (Some(host), None) => host_of(host.as_bytes()).map(Some).ok_or(HostError),
        (None, _) | (Some(_), Some(_)) => Err(HostError),
    }
}

/// Parses a host and an optional port, without userinfo (RFC 9110 §7.2).
fn host_of(host: &[u8]) -> Option<Authority> {
    let host = Some(host).filter(|host| !host.contains(&b'@'));
    Authority::try_from(host?).ok()
}

/// True if a request's body has no transfer coding except chunked, and that at most once. The handler would get the body of any
/// other coding undecoded, without a header that shows it (RFC 9112 §6.1).
pub(super) fn is_chunked_at_most(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(coding), None) => coding.as_bytes().eq_ignore_ascii_case(b"chunked"),
        (Some(_), Some(_)) => false,
    }
}

/// True if the head of `request` exceeds the limit and hyper has not detected that.
pub(super) fn is_too_large<B>(request: &Request<B>, max_head_bytes: usize) -> bool {
    let target = request.uri().path_and_query();
    let target = target.map_or(0, |target| target.as_str().len());
    let first_line = request.method().as_str().len() + target + REQUEST_LINE_OVERHEAD;
    head_size::is_too_large(first_line, request.headers(), max_head_bytes)
}

/// The flaw for which hyper itself answered a request, if it did. It does not answer the preface of HTTP/2.
pub(super) fn flaw_of(error: &hyper::Error) -> Option<Flaw> {
    if error.is_parse_version_h2() {
        return None;
    }
    let flaw = match error.is_parse_too_large() {
        true => Flaw::HeadTooLarge,
        false => Flaw::Malformed,
    };
    error.is_parse().then_some(flaw)
}
