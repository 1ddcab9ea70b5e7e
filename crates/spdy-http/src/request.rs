//! A request's head and its header block (SPDY/3.1 §3.2.1).
//!
//! ```text
//! GET https://example.org/a?b     :method   GET
//! accept: text/html               :path     /a?b
//! cookie: x=1                     :version  HTTP/1.1
//!                           <->   :host     example.org
//!                                 :scheme   https
//!                                 accept    text/html
//!                                 cookie    x=1
//! ```
//!
//! The five pseudo-headers are written first; any order is accepted when reading. A peer's error is a [`BadRequest`], which a
//! server answers with 400 on that stream: the session continues.

use http::header;
use http::request::Parts;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, StatusCode, Uri};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::version::Version;

use crate::block_writer::BlockWriter;
use crate::header_names::{Names, is_hop_by_hop};
use crate::headers::{BadHeader, append, quote};

/// Why a request cannot be encoded: an error of the caller.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Neither the URI nor a Host header names a host.
    #[error("no host in the URI or in a host header")]
    NoHost,
    /// The URI has no scheme.
    #[error("no scheme in URI {uri}")]
    NoScheme {
        /// The request's URI.
        uri: String,
    },
}

/// Why a block is not a valid request: a server answers [`BadRequest::status`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadRequest {
    /// A required name is missing.
    #[error("missing {name}")]
    Missing {
        /// The name.
        name: &'static str,
    },
    /// A name with exactly one value has several or none, or the value cannot be parsed.
    #[error("invalid {name}: {value:?}")]
    Value {
        /// The name.
        name: &'static str,
        /// The value as received, truncated to 64 bytes.
        value: String,
    },
    /// A name with a colon that is not allowed in a request.
    #[error("{name:?} is not allowed in a request")]
    Unknown {
        /// The name, truncated to 64 bytes.
        name: String,
    },
    /// `host` contradicts `:host`, or one of them contradicts an absolute URL.
    #[error("host is {host:?}, expected {authority:?}")]
    TwoHosts {
        /// The value as received, truncated to 64 bytes.
        host: String,
        /// The authority that takes precedence.
        authority: String,
    },
    /// The stream cannot carry a request: the block is empty, the stream is unidirectional, or it is associated with
    /// another stream, as a push is. It is reset with PROTOCOL_ERROR.
    #[error("stream cannot carry a request: {reason}")]
    Stream {
        /// The reason.
        reason: &'static str,
    },
    /// A pair that is not valid in HTTP.
    #[error(transparent)]
    Header(#[from] BadHeader),
}

impl BadRequest {
    /// The status to answer with, if an answer is possible: 400, or 431 for too many values.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Header(BadHeader::TooMany { .. }) => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}

/// Encodes a request as a header block.
///
/// Host and scheme are taken from the URI; without a host in the URI, that of the Host header is used. Hop-by-hop headers, and
/// those that Connection lists, are removed. For CONNECT the URI is `host:port`.
///
/// # Errors
///
/// [`RequestError`], if the target has no host or, except for CONNECT, no scheme.
pub fn encode(version: Version, head: &Parts) -> Result<HeaderBlock, RequestError> {
    let names = Names::of(version);
    let mut block = BlockWriter::for_headers(&head.headers);
    let host = host_of(head).ok_or(RequestError::NoHost)?;
    block.pair(names.method, &[head.method.as_str().as_bytes()]);
    if head.method == Method::CONNECT {
        block.pair(names.path, &[host.as_bytes()]);
        block.pair(names.version, &[b"HTTP/1.1"]);
        block.pair(names.host, &[host.as_bytes()]);
    } else {
        let no_scheme = || RequestError::NoScheme {
            uri: head.uri.to_string(),
        };
        let scheme = head.uri.scheme_str().ok_or_else(no_scheme)?;
        block.pair(names.path, &path_of(&head.uri));
        block.pair(names.version, &[b"HTTP/1.1"]);
        block.pair(names.host, &[without_default_port(scheme, host).as_bytes()]);
        block.pair(names.scheme, &[scheme.as_bytes()]);
    }
    block.headers(version, &head.headers);
    Ok(block.finish())
}

/// The authority of the request's target, without user information.
fn host_of(head: &Parts) -> Option<&str> {
    let host = match head.uri.authority() {
        Some(authority) => authority.as_str().rsplit('@').next()?,
        None => head.headers.get(header::HOST)?.to_str().ok()?,
    };
    (!host.is_empty()).then_some(host)
}

/// The target in origin form, never empty, in two parts: a URL without a path may have a query.
pub(crate) fn path_of(uri: &Uri) -> [&[u8]; 2] {
    let path = uri.path_and_query().map_or("", PathAndQuery::as_str);
    let rooted = path.starts_with(['/', '*']);
    [if rooted { b"" } else { b"/" }, path.as_bytes()]
}

/// `host` without the default port `:80` of http or `:443` of https, which is not written (RFC 9110 §4.2.3).
#[must_use]
pub fn without_default_port<'a>(scheme: &str, host: &'a str) -> &'a str {
    let default = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return host,
    };
    host.strip_suffix(default).unwrap_or(host)
}

/// Decodes a request from a header block. Its URI is absolute (`host:port` for CONNECT), and its version is the peer's. Hop-by-hop
/// headers, and a `host` in addition to `:host`, are removed.
///
/// # Errors
///
/// [`BadRequest`], if a required value is missing, empty, repeated, or invalid.
pub fn decode(version: Version, block: &HeaderBlock) -> Result<Parts, BadRequest> {
    let mut line = FirstLine::of(block);
    let (mut head, ()) = Request::new(()).into_parts();
    let mut plain_host = None;
    for (name, value) in block.iter() {
        if line.take(version, name, value) || is_hop_by_hop(name) {
            continue;
        }
        match name {
            b"host" => plain_host = Some(value),
            [b':', ..] => return Err(BadRequest::Unknown { name: quote(name) }),
            _ => append(&mut head.headers, block, name, value)?,
        }
    }
    let names = Names::of(version);
    head.method = read(names.method, line.method, |value| {
        Method::from_bytes(value).ok()
    })?;
    head.version = read(names.version, line.version, |value| match value {
        b"HTTP/1.1" => Some(http::Version::HTTP_11),
        b"HTTP/1.0" => Some(http::Version::HTTP_10),
        _ => None,
    })?;
    head.uri = line.uri(names, &head.method)?;
    if let (Some(host), Some(authority)) = (plain_host, head.uri.authority()) {
        let scheme = head.uri.scheme_str().unwrap_or_default();
        check_host(host, scheme, authority.as_str())?;
    }
    Ok(head)
}

/// The URI of the request in a header block, as in [`decode`], without its headers.
///
/// # Errors
///
/// [`BadRequest`], if a value of the URI or the method is missing or invalid.
pub fn decode_uri(version: Version, block: &HeaderBlock) -> Result<Uri, BadRequest> {
    let mut line = FirstLine::of(block);
    for (name, value) in block.iter() {
        line.take(version, name, value);
    }
    let names = Names::of(version);
    let method = read(names.method, line.method, |value| {
        Method::from_bytes(value).ok()
    })?;
    line.uri(names, &method)
}

/// The values of a block that make up a request line.
pub(crate) struct FirstLine<'a> {
    block: &'a HeaderBlock,
    method: Option<&'a [u8]>,
    path: Option<&'a [u8]>,
    version: Option<&'a [u8]>,
    host: Option<&'a [u8]>,
    scheme: Option<&'a [u8]>,
}

impl<'a> FirstLine<'a> {
    /// The first line of `block`. Pairs are added by [`take`](Self::take).
    pub(crate) const fn of(block: &'a HeaderBlock) -> Self {
        Self {
            block,
            method: None,
            path: None,
            version: None,
            host: None,
            scheme: None,
        }
    }

    /// Stores the value, if the name is one of the five. Returns whether it is.
    pub(crate) fn take(&mut self, version: Version, name: &[u8], value: &'a [u8]) -> bool {
        let bare = match version {
            Version::V2 => name,
            Version::V3 | Version::V31 => match name {
                [b':', bare @ ..] => bare,
                _ => return false,
            },
        };
        let slot = match bare {
            b"method" => &mut self.method,
            b"path" if version != Version::V2 => &mut self.path,
            b"url" if version == Version::V2 => &mut self.path,
            b"version" => &mut self.version,
            b"host" => &mut self.host,
            b"scheme" => &mut self.scheme,
            _ => return false,
        };
        *slot = Some(value);
        true
    }

    /// The method, if there is one; a push may have none.
    pub(crate) fn method(&self) -> Option<&'a [u8]> {
        self.method
    }

    /// The target of a request with `method`.
    pub(crate) fn uri(&self, names: &Names, method: &Method) -> Result<Uri, BadRequest> {
        let path = read(names.path, self.path, Some)?;
        if *method == Method::CONNECT {
            let bad = || value_error(names.path, path);
            let authority = self
                .authority(path)
                .filter(|authority| authority.port().is_some())
                .ok_or_else(bad)?;
            return Ok(Uri::from(authority));
        }
        // `*` is the server itself, which only OPTIONS can request (RFC 9112 §3.2.4).
        let itself = path == b"*" && *method == Method::OPTIONS;
        if !path.starts_with(b"/") && !itself {
            // For a proxy and in a push, the URL of SPDY/2 is absolute.
            let uri = Uri::from_maybe_shared(self.block.share(path))
                .ok()
                .filter(|uri| {
                    uri.scheme_str().is_some_and(|scheme| !scheme.is_empty())
                        && uri
                            .authority()
                            .is_some_and(|a| !a.as_str().contains('@') && !a.host().is_empty())
                })
                .ok_or_else(|| value_error(names.path, path))?;
            self.agrees_with(&uri, names)?;
            return Ok(uri);
        }
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(read(names.scheme, self.scheme, |value| match value {
            b"https" => Some(Scheme::HTTPS),
            b"http" => Some(Scheme::HTTP),
            other => Scheme::try_from(other).ok(),
        })?);
        parts.authority = Some(read(names.host, self.host, |host| self.authority(host))?);
        parts.path_and_query = PathAndQuery::from_maybe_shared(self.block.share(path)).ok();
        if parts.path_and_query.is_none() {
            return Err(value_error(names.path, path));
        }
        Uri::from_parts(parts).map_err(|_| value_error(names.path, path))
    }
}

impl FirstLine<'_> {
    /// Parses host and port, without user information.
    fn authority(&self, value: &[u8]) -> Option<Authority> {
        let has_user = value.contains(&b'@');
        let has_host = !value.starts_with(b":");
        if has_user || !has_host {
            return None;
        }
        Authority::from_maybe_shared(self.block.share(value)).ok()
    }

    /// Scheme and host must match an absolute URL. Otherwise a recipient that reads the URL and one that reads the headers would
    /// see different requests.
    fn agrees_with(&self, uri: &Uri, names: &Names) -> Result<(), BadRequest> {
        let scheme = uri.scheme_str().unwrap_or_default();
        if let Some(sent_scheme) = self.scheme
            && !sent_scheme.eq_ignore_ascii_case(scheme.as_bytes())
        {
            return Err(value_error(names.scheme, sent_scheme));
        }
        match (self.host, uri.authority()) {
            (Some(host), Some(authority)) => check_host(host, scheme, authority.as_str()),
            _ => Ok(()),
        }
    }
}

/// Checks that `host` is the `authority` of the request, with or without the default port.
fn check_host(host: &[u8], scheme: &str, authority: &str) -> Result<(), BadRequest> {
    let same = std::str::from_utf8(host).is_ok_and(|host| {
        without_default_port(scheme, host)
            .eq_ignore_ascii_case(without_default_port(scheme, authority))
    });
    if same {
        return Ok(());
    }
    Err(BadRequest::TwoHosts {
        host: quote(host),
        authority: authority.to_owned(),
    })
}

/// The single value of `name`, parsed by `parse`. Values joined by NUL are invalid: none of the five may have several.
fn read<'a, T>(
    name: &'static str,
    value: Option<&'a [u8]>,
    parse: impl FnOnce(&'a [u8]) -> Option<T>,
) -> Result<T, BadRequest> {
    let value = value.ok_or(BadRequest::Missing { name })?;
    if value.is_empty() || value.contains(&0) {
        return Err(value_error(name, value));
    }
    parse(value).ok_or_else(|| value_error(name, value))
}

fn value_error(name: &'static str, value: &[u8]) -> BadRequest {
    BadRequest::Value {
        name,
        value: quote(value),
    }
}

/// The authority of a decoded request's target, as in a Host header.
#[must_use]
pub fn host_header(head: &Parts) -> Option<&str> {
    host_of(head)
}
