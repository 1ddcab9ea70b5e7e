//! The target: URLs of one origin, and one request for each, encoded once for every protocol.

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, Method, Request, Uri, Version, header};
use spdy_frame::header_block::{BlockLimits, HeaderBlock};
use spdy_frame::version::Version as SpdyVersion;

use crate::error::TargetError;

/// One origin, with the requests that are sent in turn.
#[derive(Clone, Debug)]
pub struct Target {
    secure: bool,
    host: String,
    port: u16,
    requests: Vec<Request<()>>,
    body: Bytes,
}

impl Target {
    /// Creates a request with `method` for each of `urls`, with the same headers and body.
    ///
    /// # Errors
    ///
    /// [`TargetError`]: no URL, a URL that is not http or https, several origins, or a request that a protocol cannot encode.
    pub fn new(
        urls: &[Uri],
        method: &Method,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Self, TargetError> {
        let first = urls.first().ok_or(TargetError::Empty)?;
        let (secure, host, port) = origin(first)?;
        let mut requests = Vec::with_capacity(urls.len());
        for url in urls {
            let (its_secure, its_host, its_port) = origin(url)?;
            if (its_secure, its_port) != (secure, port) || !its_host.eq_ignore_ascii_case(host) {
                return Err(TargetError::Origins {
                    first: first.to_string(),
                    second: url.to_string(),
                });
            }
            requests.push(request(url, method, headers, &body));
        }
        let target = Self {
            secure,
            host: host.to_owned(),
            port,
            requests,
            body,
        };
        // Errors are detected here and not during a run.
        for version in [SpdyVersion::V2, SpdyVersion::V3, SpdyVersion::V31] {
            target.blocks(version)?;
        }
        Ok(target)
    }

    /// True with TLS.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// Name or address; IPv6 in brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// TCP port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Number of different requests.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests.len()
    }

    /// True if responses have no bodies, whatever their headers are.
    pub(crate) fn is_head_request(&self) -> bool {
        self.requests[0].method() == Method::HEAD
    }

    pub(crate) fn body(&self) -> &Bytes {
        &self.body
    }

    /// For HTTP/2: the requests for h2.
    pub(crate) fn messages(&self) -> Vec<Request<()>> {
        self.requests.clone()
    }

    /// For HTTP/1.1: head and body, as on the wire.
    pub(crate) fn texts(&self) -> Vec<Bytes> {
        let text = |request: &Request<()>| {
            let uri = request.uri();
            let mut out = BytesMut::new();
            out.put_slice(request.method().as_str().as_bytes());
            out.put_u8(b' ');
            out.put_slice(
                uri.path_and_query()
                    .map_or("/", |path| path.as_str())
                    .as_bytes(),
            );
            out.put_slice(b" HTTP/1.1\r\nhost: ");
            out.put_slice(authority(uri).as_bytes());
            out.put_slice(b"\r\n");
            for (name, value) in request.headers() {
                out.put_slice(name.as_str().as_bytes());
                out.put_slice(b": ");
                out.put_slice(value.as_bytes());
                out.put_slice(b"\r\n");
            }
            out.put_slice(b"\r\n");
            out.put_slice(&self.body);
            out.freeze()
        };
        self.requests.iter().map(text).collect()
    }

    /// For SPDY: the header blocks. They are compressed when they are written, because every block depends on the blocks before it.
    ///
    /// # Errors
    ///
    /// A head does not fit into a block.
    pub(crate) fn blocks(&self, version: SpdyVersion) -> Result<Vec<HeaderBlock>, TargetError> {
        let block = |request: &Request<()>| {
            let failed = |reason: String| TargetError::Request {
                url: request.uri().to_string(),
                reason,
            };
            let (head, ()) = request.clone().into_parts();
            let block = spdy_http::request::encode(version, &head)
                .map_err(|error| failed(error.to_string()))?;
            block
                .check(version, &BlockLimits::default())
                .map_err(|error| failed(error.to_string()))?;
            Ok(block)
        };
        self.requests.iter().map(block).collect()
    }
}

fn origin(url: &Uri) -> Result<(bool, &str, u16), TargetError> {
    let secure = match url.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        _ => return Err(TargetError::Scheme(url.to_string())),
    };
    let host = url
        .host()
        .filter(|host| !host.is_empty())
        .ok_or_else(|| TargetError::NoHost(url.to_string()))?;
    let default = if secure { 443 } else { 80 };
    Ok((secure, host, url.port_u16().unwrap_or(default)))
}

/// Host and port, without user information.
fn authority(uri: &Uri) -> &str {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    authority.rsplit('@').next().unwrap_or(authority)
}

fn request(url: &Uri, method: &Method, headers: &HeaderMap, body: &Bytes) -> Request<()> {
    let mut request = Request::new(());
    *request.method_mut() = method.clone();
    *request.uri_mut() = url.clone();
    *request.version_mut() = Version::HTTP_2;
    *request.headers_mut() = headers.clone();
    let needs_length = !body.is_empty() || matches!(*method, Method::POST | Method::PUT);
    if needs_length && !headers.contains_key(header::CONTENT_LENGTH) {
        request
            .headers_mut()
            .insert(header::CONTENT_LENGTH, body.len().into());
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(urls: &[&str], method: &Method, body: &'static str) -> Result<Target, TargetError> {
        let urls: Vec<Uri> = urls
            .iter()
            .map(|url| url.parse().expect("the URL is valid"))
            .collect();
        let mut headers = HeaderMap::new();
        headers.insert("x-a", "b".parse().expect("the header value is valid"));
        Target::new(&urls, method, &headers, Bytes::from_static(body.as_bytes()))
    }

    #[test]
    fn a_request_is_written_for_http_1_with_host_headers_and_length() {
        let urls = ["http://u:p@a.test:81/x?y=z", "http://A.test:81"];
        let target = target(&urls, &Method::POST, "abc").expect("the URLs have one origin");
        let texts: Vec<_> = target.texts();
        assert_eq!(
            texts,
            [
                "POST /x?y=z HTTP/1.1\r\nhost: a.test:81\r\nx-a: b\r\ncontent-length: 3\r\n\r\nabc",
                "POST / HTTP/1.1\r\nhost: A.test:81\r\nx-a: b\r\ncontent-length: 3\r\n\r\nabc",
            ]
        );
        assert_eq!(
            (target.host(), target.port(), target.is_secure()),
            ("a.test", 81, false)
        );
    }

    #[test]
    fn urls_are_of_one_origin_over_http_or_https() {
        let get = |urls: &[&str]| target(urls, &Method::GET, "").map(|target| target.port());
        assert_eq!(get(&["https://a.test/", "https://a.test:443/b"]), Ok(443));
        assert_eq!(get(&[]), Err(TargetError::Empty));
        for wrong in [
            &["http://a.test/", "http://b.test/"][..],
            &["http://a.test/", "https://a.test/"],
            &["http://a.test/", "http://a.test:81/"],
        ] {
            assert!(
                matches!(get(wrong), Err(TargetError::Origins { .. })),
                "{wrong:?}"
            );
        }
        assert!(matches!(
            get(&["ftp://a.test/"]),
            Err(TargetError::Scheme(_))
        ));
        assert!(matches!(get(&["/path"]), Err(TargetError::Scheme(_))));
    }
}
