//! What a server pushes: which URL a stream answers, and who may answer for it (SPDY/3.1 §3.3).
//!
//! ```text
//! two blocks      SYN_STREAM  :method :path :version :host :scheme     HEADERS  :status ...
//! version twice   SYN_STREAM  :method :path :version :host :scheme     HEADERS  :status :version ...
//! one block       SYN_STREAM  :method :path :version :host :scheme :status ...
//! ```
//!
//! Netty's client resets the last form and node's ends its session at the others, so there is no form for
//! all. Every one is read; which one is written is a [`PushForm`]. The default is the last: no client that
//! was tried ends its session at it.

use http::request::Parts;
use http::uri::Scheme;
use http::{Method, Request, Uri, response};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::version::Version;

use crate::block_writer::BlockWriter;
use crate::header_names::Names;
use crate::request::{BadRequest, FirstLine, RequestError, path_of, without_default_port};
use crate::response::{BadResponse, encode, encode_without_version, has_status, read, write_into};

/// How a push is written.
///
/// | client | two blocks | version twice | one block |
/// | --- | --- | --- | --- |
/// | node-spdy 4.0.2 | ends the session | ends the session | **takes it** |
/// | Netty 4.1 | resets it | **takes it** | resets it |
/// | Jetty 9.2, spdystream 0.5 | **takes it** | **takes it** | **takes it** |
/// | Chromium, by its source | takes it | resets it | takes it |
/// | OkHttp 2.7, Undertow 1.3 | never want one | | |
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum PushForm {
    /// The URL in SYN_STREAM, the status and its headers in HEADERS. The client hears of the URL before the
    /// answer is known; no name comes twice, as SPDY/3.1 §2.6.7 wants it.
    TwoBlocks,
    /// The same with the version in both, which Netty asks for.
    VersionTwice,
    /// All in SYN_STREAM, which is then written only when the answer's head is known. The default, since a
    /// client that does not want it resets the push and keeps its session.
    #[default]
    OneBlock,
}

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
    #[error("push without a URL: {0}")]
    Url(#[from] BadRequest),
    /// It answers something else than a GET.
    #[error("push has method {method}, expected GET")]
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
    let mut block = BlockWriter::for_headers(&http::HeaderMap::new());
    write_url(version, uri, &mut block)?;
    Ok(block.finish())
}

/// The one block of a push in one block: the URL, and the response.
///
/// # Errors
///
/// As [`encode_promise`].
pub fn encode_one_block(
    version: Version,
    uri: &Uri,
    head: &response::Parts,
) -> Result<HeaderBlock, RequestError> {
    let mut block = BlockWriter::for_headers(&head.headers);
    write_url(version, uri, &mut block)?;
    write_into(version, head, false, &mut block);
    Ok(block.finish())
}

/// The pairs that say what is pushed, and the version.
fn write_url(version: Version, uri: &Uri, block: &mut BlockWriter) -> Result<(), RequestError> {
    let names = Names::of(version);
    let scheme = uri.scheme_str().ok_or_else(|| RequestError::NoScheme {
        uri: uri.to_string(),
    })?;
    let authority = uri.authority().ok_or(RequestError::NoHost)?.as_str();
    let host =
        without_default_port(scheme, authority.rsplit('@').next().unwrap_or(authority)).as_bytes();
    let [root, path] = path_of(uri);
    block.pair(names.method, &[b"GET"]);
    match version {
        Version::V2 => block.pair(names.path, &[scheme.as_bytes(), b"://", host, root, path]),
        Version::V3 | Version::V31 => block.pair(names.path, &[root, path]),
    }
    block.pair(names.version, &[b"HTTP/1.1"]);
    block.pair(names.host, &[host]);
    block.pair(names.scheme, &[scheme.as_bytes()]);
    Ok(())
}

/// The block of the HEADERS that follows: status and headers, and the version once more where `form` wants it.
#[must_use]
pub fn encode_response(version: Version, form: PushForm, head: &response::Parts) -> HeaderBlock {
    match form {
        PushForm::VersionTwice => encode(version, head),
        PushForm::TwoBlocks | PushForm::OneBlock => encode_without_version(version, head),
    }
}

/// What a pushed SYN_STREAM says, in either form.
///
/// # Errors
///
/// [`BadPush`], if it has no URL that can be read, is no GET, or has a status that is none.
pub fn decode_promise(version: Version, block: &HeaderBlock) -> Result<Promise, BadPush> {
    let mut line = FirstLine::of(block);
    for (name, value) in block.iter() {
        line.take(version, name, value);
    }
    if let Some(method) = line.method().filter(|method| *method != b"GET") {
        return Err(BadPush::Method {
            method: crate::headers::quote(method),
        });
    }
    let (mut request, ()) = Request::new(()).into_parts();
    request.uri = line.uri(Names::of(version), &Method::GET)?;
    let response = if has_status(version, block) {
        Some(read(version, block, |name| is_url_name(version, name))?)
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
fn is_url_name(version: Version, name: &[u8]) -> bool {
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
