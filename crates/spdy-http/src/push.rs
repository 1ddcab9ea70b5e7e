//! Pushes: which URL a pushed stream answers, and which origins may push it (SPDY/3.1 §3.3).
//!
//! ```text
//! two blocks      SYN_STREAM  :method :path :version :host :scheme     HEADERS  :status ...
//! version twice   SYN_STREAM  :method :path :version :host :scheme     HEADERS  :status :version ...
//! one block       SYN_STREAM  :method :path :version :host :scheme :status ...
//! ```
//!
//! Netty's client resets the last form, and node's ends its session because of the others, so no form suits every client. All forms
//! are accepted; [`PushForm`] selects the form to send. The default is the last: no tested client ends its session because of it.

use http::request::Parts;
use http::uri::Scheme;
use http::{Method, Request, Uri, response};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::version::Version;

use crate::block_writer::BlockWriter;
use crate::header_names::Names;
use crate::request::{BadRequest, FirstLine, RequestError, path_of, without_default_port};
use crate::response::{BadResponse, encode, encode_without_version, has_status, read, write_into};

/// The encoding of a push.
///
/// | client | two blocks | version twice | one block |
/// | --- | --- | --- | --- |
/// | node-spdy 4.0.2 | ends the session | ends the session | **accepts it** |
/// | Netty 4.1 | resets it | **accepts it** | resets it |
/// | Jetty 9.2, spdystream 0.5 | **accepts it** | **accepts it** | **accepts it** |
/// | Chromium, by its source | accepts it | resets it | accepts it |
/// | OkHttp 2.7, Undertow 1.3 | never accept pushes | | |
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum PushForm {
    /// The URL is in SYN_STREAM, the status and the other headers in HEADERS. The client gets the URL before the response is known.
    /// No name occurs twice, as SPDY/3.1 §2.6.7 requires.
    TwoBlocks,
    /// The same with the version in both blocks, which Netty requires.
    VersionTwice,
    /// Everything is in SYN_STREAM, which is sent only when the response's head is known. The default, because a client that does
    /// not accept this form resets the push and keeps its session.
    #[default]
    OneBlock,
}

/// The content of a pushed SYN_STREAM.
#[derive(Clone, Debug)]
pub struct Promise {
    /// The GET that the push answers. Its headers are empty: a push inherits those of the associated request.
    pub request: Parts,
    /// The head of the response, if it is in the first block.
    pub response: Option<response::Parts>,
}

/// Why a pushed stream is invalid: it is reset with PROTOCOL_ERROR.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadPush {
    /// It has no valid URL.
    #[error("push without a URL: {0}")]
    Url(#[from] BadRequest),
    /// Its method is not GET.
    #[error("push has method {method}, expected GET")]
    Method {
        /// The method as received, truncated to 64 bytes.
        method: String,
    },
    /// Its response is invalid.
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
/// Like [`encode_promise`].
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

/// Writes the pairs of the URL, and the version.
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

/// The block of the HEADERS that follow: status and headers, and the version again if `form` requires it.
#[must_use]
pub fn encode_response(version: Version, form: PushForm, head: &response::Parts) -> HeaderBlock {
    match form {
        PushForm::VersionTwice => encode(version, head),
        PushForm::TwoBlocks | PushForm::OneBlock => encode_without_version(version, head),
    }
}

/// Decodes a pushed SYN_STREAM, in either form.
///
/// # Errors
///
/// [`BadPush`], if it has no valid URL, its method is not GET, or its status is invalid.
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

/// Decodes the head of a pushed response from the HEADERS with its status.
///
/// # Errors
///
/// [`BadResponse`], if it has no status, or contains the URL again.
pub fn decode_response(
    version: Version,
    block: &HeaderBlock,
) -> Result<response::Parts, BadResponse> {
    read(version, block, |_| false)
}

/// True for names of the URL, which are not part of the response.
fn is_url_name(version: Version, name: &[u8]) -> bool {
    let names = Names::of(version);
    [names.method, names.path, names.host, names.scheme]
        .iter()
        .any(|own| own.as_bytes() == name)
}

/// True if both URIs have the same scheme, host and port: a session may only push such URLs with a page.
#[must_use]
pub fn is_same_origin(one: &Uri, other: &Uri) -> bool {
    let host = |uri: &Uri| uri.host().map(str::to_ascii_lowercase);
    one.scheme().is_some()
        && one.scheme() == other.scheme()
        && one.host().is_some()
        && host(one) == host(other)
        && port(one) == port(other)
}

/// The port of a URI, or the default port of its scheme.
fn port(uri: &Uri) -> Option<u16> {
    let default = match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTP => Some(80),
        Some(scheme) if *scheme == Scheme::HTTPS => Some(443),
        _ => None,
    };
    uri.port_u16().or(default)
}
