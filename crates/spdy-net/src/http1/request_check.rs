//! Checks of a request that hyper does not make: its host, its transfer coding, the size of its head.

use http::uri::Authority;
use http::{HeaderMap, Request, Version, header};
use spdy_net_core::refusal::Flaw;

use crate::shims::hyper::head_size;

/// ` ` and ` HTTP/1.1` beside method and target, and the end of the line.
const REQUEST_LINE_OVERHEAD: usize = 12;

/// A request names several hosts, none where it must name one, or what is none.
pub(super) struct HostError;

/// The host that a request names, once, and in HTTP/1.1 at least once, though the name may be empty: `None`. Two servers in a
/// row could take two names each its own way (RFC 9112 §3.2).
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

/// A host and an optional port, without userinfo (RFC 9110 §7.2).
fn host_of(host: &[u8]) -> Option<Authority> {
    let host = Some(host).filter(|host| !host.contains(&b'@'));
    Authority::try_from(host?).ok()
}

/// Whether a request's body has no transfer coding but chunked, and that at most once: any other would reach the handler undecoded,
/// and no header would show it (RFC 9112 §6.1).
pub(super) fn is_chunked_at_most(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(coding), None) => coding.as_bytes().eq_ignore_ascii_case(b"chunked"),
        (Some(_), Some(_)) => false,
    }
}

/// Whether the head of `request` is larger than may be: then hyper has not seen that.
pub(super) fn is_too_large<B>(request: &Request<B>, max_head_bytes: usize) -> bool {
    let target = request.uri().path_and_query();
    let target = target.map_or(0, |target| target.as_str().len());
    let first_line = request.method().as_str().len() + target + REQUEST_LINE_OVERHEAD;
    head_size::is_too_large(first_line, request.headers(), max_head_bytes)
}

/// The flaw for which hyper answered a request by itself, if it did. It answers nothing to the preface of HTTP/2.
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
