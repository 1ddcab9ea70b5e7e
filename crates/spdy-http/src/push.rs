//! What a server pushes: which URL a stream answers, and who may answer for it (SPDY/3.1 §3.3).
//!
//! ```text
//! two blocks (ours)      SYN_STREAM  :method :path :version :host :scheme     HEADERS  :status ...
//! one block (node)       SYN_STREAM  :scheme :host :path :status :version ...
//! ```
//!
//! Netty's client resets the one form and node's the other, so there is no form for all; both are read,
//! and two blocks are written, which more clients take.

use http::request::Parts;
use http::uri::Scheme;
use http::{Method, Request, Uri, response};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::version::Version;

use crate::block_writer::BlockWriter;
use crate::names::Names;
use crate::request::{BadRequest, FirstLine, RequestError, path_of, without_default_port};
use crate::response::{BadResponse, encode_without_version, has_status, read};

/// What a pushed SYN_STREAM says.
#[derive(Clone, Debug)]
pub struct Promise {
    /// The GET that the push answers. Its headers are empty: a push inherits those of its parent.
    pub request: Parts,
    /// The head of the response, if the first block brought it.
    pub response: Option<response::Parts>,
}

/// Why a pushed stream cannot be used: reset with PROTOCOL_ERROR.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadPush {
    /// It does not say what it answers.
    #[error("push without a url: {0}")]
    Url(#[from] BadRequest),
    /// It answers something else than a GET.
    #[error("push of a {method}, want GET")]
    Method {
        /// As it came, cut to 64 bytes.
        method: String,
    },
    /// Its response is none.
    #[error("pushed response: {0}")]
    Response(#[from] BadResponse),
}

/// The block of a pushed SYN_STREAM: the URL, no status.
///
/// # Errors
///
/// [`RequestError`], if the URI is not absolute.
pub fn encode_promise(version: Version, uri: &Uri) -> Result<HeaderBlock, RequestError> {
    let names = Names::of(version);
    let scheme = uri.scheme_str().ok_or_else(|| RequestError::NoScheme {
        uri: uri.to_string(),
    })?;
    let authority = uri.authority().ok_or(RequestError::NoHost)?.as_str();
    let host =
        without_default_port(scheme, authority.rsplit('@').next().unwrap_or(authority)).as_bytes();
    let path = path_of(uri);
    let mut block = BlockWriter::for_headers(&http::HeaderMap::new());
    block.pair(names.method, &[b"GET"]);
    match version {
        Version::V2 => block.pair(names.path, &[scheme.as_bytes(), b"://", host, path]),
        Version::V3 | Version::V31 => block.pair(names.path, &[path]),
    }
    block.pair(names.version, &[b"HTTP/1.1"]);
    block.pair(names.host, &[host]);
    block.pair(names.scheme, &[scheme.as_bytes()]);
    Ok(block.finish())
}

/// The block of the HEADERS that follows: status and headers; the version was already given.
#[must_use]
pub fn encode_response(version: Version, head: &response::Parts) -> HeaderBlock {
    encode_without_version(version, head)
}

/// What a pushed SYN_STREAM says, in either form.
///
/// # Errors
///
/// [`BadPush`], if it has no URL that can be read, is no GET, or has a status that is none.
pub fn decode_promise(version: Version, block: &HeaderBlock) -> Result<Promise, BadPush> {
    let mut line = FirstLine::default();
    for (name, value) in block.iter() {
        line.take(version, name, value);
    }
    if let Some(method) = line.method().filter(|method| &method[..] != b"GET") {
        return Err(BadPush::Method {
            method: crate::headers::shown(method),
        });
    }
    let (mut request, ()) = Request::new(()).into_parts();
    request.uri = line.uri(Names::of(version), &Method::GET)?;
    let response = if has_status(version, block) {
        Some(read(version, block, |name| is_url(version, name))?)
    } else {
        None
    };
    Ok(Promise { request, response })
}

/// The head of a pushed response, from the HEADERS that brought its status.
///
/// # Errors
///
/// [`BadResponse`], if it has no status, or names the URL again.
pub fn decode_response(
    version: Version,
    block: &HeaderBlock,
) -> Result<response::Parts, BadResponse> {
    read(version, block, |_| false)
}

/// Names that say what is pushed, not what the response is.
fn is_url(version: Version, name: &[u8]) -> bool {
    let names = Names::of(version);
    [names.method, names.path, names.host, names.scheme]
        .iter()
        .any(|own| own.as_bytes() == name)
}

/// Whether both URIs have one scheme, host and port: what a session may push for a page it serves.
#[must_use]
pub fn is_same_origin(one: &Uri, other: &Uri) -> bool {
    let host = |uri: &Uri| uri.host().map(str::to_ascii_lowercase);
    one.scheme().is_some()
        && one.scheme() == other.scheme()
        && one.host().is_some()
        && host(one) == host(other)
        && port(one) == port(other)
}

/// The port of a URI, said or not.
fn port(uri: &Uri) -> Option<u16> {
    let default = match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTP => Some(80),
        Some(scheme) if *scheme == Scheme::HTTPS => Some(443),
        _ => None,
    };
    uri.port_u16().or(default)
}
