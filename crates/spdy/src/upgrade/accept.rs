//! The server's side of the upgrade: reads or gets the request, chooses the sub-protocol, responds.

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::runtime::SharedRuntime;
use crate::upgrade::head::{
    has_token, header_map, lines, members, read_head, within, write_headers,
};
use crate::upgrade::{
    Limits, PROTOCOL, Refusal, Rewind, STREAM_PROTOCOL_VERSION, UpgradeError, Upgraded,
};

/// Limit of the client's offers that are quoted in a refusal, bytes.
const MAX_QUOTED_OFFERS: usize = 200;

/// A request for an upgrade that can be accepted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AcceptedUpgrade {
    protocol: Option<String>,
}

impl AcceptedUpgrade {
    /// The chosen sub-protocol; `None` if the server requires none.
    #[must_use]
    pub fn protocol(&self) -> Option<&str> {
        self.protocol.as_deref()
    }

    /// The 101 response. Send nothing after it until the client's first frame has arrived.
    ///
    /// # Panics
    ///
    /// Never: the names were compared with those of the request.
    #[must_use]
    pub fn response(&self) -> Response<()> {
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static(PROTOCOL));
        if let Some(protocol) = &self.protocol {
            let Ok(protocol) = HeaderValue::from_str(protocol) else {
                unreachable!("{protocol:?} is a valid header value")
            };
            headers.insert(STREAM_PROTOCOL_VERSION, protocol);
        }
        response
    }
}

/// Checks a request that an HTTP server has read, hyper's or any other. On `Ok`, answer with [`AcceptedUpgrade::response`] and then
/// run a session over the connection, including bytes that the HTTP server has read ahead ([`Rewind`]). Otherwise answer with
/// [`Refusal::response`].
///
/// Chooses the first of the client's offers that is in `protocols`. If `protocols` is empty, no sub-protocol is negotiated.
///
/// # Errors
///
/// 400 for a request that requests no upgrade to SPDY/3.1, has a body (whose bytes would be read as frames), or offers no
/// sub-protocol; 403 if all of its offers are unknown.
pub fn negotiate<B>(request: &Request<B>, protocols: &[&str]) -> Result<AcceptedUpgrade, Refusal> {
    let bad = |message: &str| Err(Refusal::new(StatusCode::BAD_REQUEST, message));
    let headers = request.headers();
    if request.method() != Method::GET && request.method() != Method::POST {
        let message = "unable to upgrade: the method must be GET or POST";
        return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, message));
    }
    if request.version() != http::Version::HTTP_11 {
        return bad("unable to upgrade: HTTP/1.1 is required");
    }
    if !has_token(headers, &header::CONNECTION, "upgrade") {
        return bad("unable to upgrade: the connection header has no upgrade token");
    }
    if !has_token(headers, &header::UPGRADE, PROTOCOL) {
        return bad("unable to upgrade: the upgrade header does not name SPDY/3.1");
    }
    let no_length = |value: &HeaderValue| value.as_bytes() == b"0";
    if headers.contains_key(header::TRANSFER_ENCODING)
        || !headers
            .get_all(header::CONTENT_LENGTH)
            .iter()
            .all(no_length)
    {
        return bad("unable to upgrade: the request has a body");
    }
    if protocols.is_empty() {
        return Ok(AcceptedUpgrade { protocol: None });
    }
    let mut offers = members(headers, &STREAM_PROTOCOL_VERSION).peekable();
    if offers.peek().is_none() {
        return bad("unable to upgrade: the client offers no X-Stream-Protocol-Version");
    }
    if let Some(offer) = offers.find(|offer| protocols.contains(offer)) {
        let protocol = Some(offer.to_owned());
        return Ok(AcceptedUpgrade { protocol });
    }
    let mut offered = members(headers, &STREAM_PROTOCOL_VERSION)
        .collect::<Vec<_>>()
        .join(", ");
    offered.truncate(MAX_QUOTED_OFFERS); // visible ASCII only: `members` skips the rest
    let accepted = protocols.join(", ");
    Err(Refusal {
        status: StatusCode::FORBIDDEN,
        message: format!(
            "unable to upgrade: the client offers {offered}, the server accepts {accepted}"
        ),
        accepted: protocols
            .iter()
            .filter_map(|name| HeaderValue::from_str(name).ok())
            .collect(),
    })
}

/// A request that was read from a connection, and that must be answered.
#[derive(Debug)]
pub struct UpgradeRequest<T> {
    io: Rewind<T>,
    request: Request<()>,
    limits: Limits,
    runtime: SharedRuntime,
}

/// Reads a request from `io`. Bytes that were read before are passed in a [`Rewind`].
///
/// # Errors
///
/// An error of the peer's HTTP or of the transport, or a timeout. A head that is too long or not HTTP/1.1 was answered (431, 400).
pub async fn read_request<T>(
    io: T,
    limits: Limits,
    runtime: &SharedRuntime,
) -> Result<UpgradeRequest<T>, UpgradeError>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    within(runtime, limits.timeout, async move {
        let mut io = io;
        let mut buffer = BytesMut::new();
        let head = read_head(&mut io, &mut buffer, limits.head_bytes).await;
        let request = match head.and_then(|head| decode(&head, &limits)) {
            Ok(request) => request,
            Err(error) => {
                let refusal = match &error {
                    UpgradeError::HeadTooLong { .. }
                    | UpgradeError::Head(httparse::Error::TooManyHeaders) => {
                        Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
                    }
                    UpgradeError::Head(_) => Some(StatusCode::BAD_REQUEST),
                    _ => None,
                };
                if let Some(status) = refusal {
                    write_refusal(&mut io, &Refusal::new(status, error.to_string())).await?;
                }
                return Err(error);
            }
        };
        Ok(UpgradeRequest {
            io: Rewind::new(buffer.freeze(), io),
            request,
            limits,
            runtime: runtime.clone(),
        })
    })
    .await
}

impl<T: AsyncRead + AsyncWrite + Unpin> UpgradeRequest<T> {
    /// The request.
    #[must_use]
    pub fn request(&self) -> &Request<()> {
        &self.request
    }

    /// Chooses one of `protocols` like [`negotiate`], and answers with 101 or with a refusal.
    ///
    /// # Errors
    ///
    /// `UpgradeError::UpgradeRequest` if it was refused; or an error of the transport.
    pub async fn accept(mut self, protocols: &[&str]) -> Result<Upgraded<T>, UpgradeError> {
        let accepted = match negotiate(&self.request, protocols) {
            Ok(accepted) => accepted,
            Err(refusal) => {
                self.refuse(&refusal).await?;
                return Err(UpgradeError::Offer(refusal));
            }
        };
        let (head, ()) = accepted.response().into_parts();
        let out = encode(head.status, &head.headers);
        within(&self.runtime, self.limits.timeout, async {
            self.io.write_all(&out).await?;
            Ok(self.io.flush().await?)
        })
        .await?;
        Ok(Upgraded {
            io: self.io,
            headers: self.request.into_parts().0.headers,
            protocol: accepted.protocol,
        })
    }

    /// Answers with `refusal` and closes the connection.
    ///
    /// # Errors
    ///
    /// An error of the transport, or [`UpgradeError::TimedOut`].
    pub async fn refuse(mut self, refusal: &Refusal) -> Result<(), UpgradeError> {
        let write = write_refusal(&mut self.io, refusal);
        within(&self.runtime, self.limits.timeout, write).await
    }
}

async fn write_refusal<T: AsyncWrite + Unpin>(
    io: &mut T,
    refusal: &Refusal,
) -> Result<(), UpgradeError> {
    let (mut head, body) = refusal.response().into_parts();
    let length = HeaderValue::from(body.len());
    head.headers.insert(header::CONTENT_LENGTH, length);
    let close = HeaderValue::from_static("close");
    head.headers.insert(header::CONNECTION, close);
    let mut out = encode(head.status, &head.headers);
    out.extend_from_slice(body.as_bytes());
    io.write_all(&out).await?;
    Ok(io.shutdown().await?)
}

/// Encodes the head of a response.
fn encode(status: StatusCode, headers: &HeaderMap) -> Vec<u8> {
    let reason = status.canonical_reason().unwrap_or_default();
    let mut out = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
    write_headers(headers, &mut out);
    out
}

/// Decodes the head of a request.
fn decode(head: &Bytes, limits: &Limits) -> Result<Request<()>, UpgradeError> {
    let mut lines = lines(limits);
    let mut parsed = httparse::Request::new(&mut lines);
    match parsed.parse(head).map_err(UpgradeError::Head)? {
        httparse::Status::Complete(_) => {}
        httparse::Status::Partial => return Err(UpgradeError::Head(httparse::Error::Token)),
    }
    let token = UpgradeError::Head(httparse::Error::Token);
    let (Some(method), Some(target)) = (parsed.method, parsed.path) else {
        return Err(token);
    };
    let mut request = Request::new(());
    *request.method_mut() = method.parse().map_err(|_| token)?;
    *request.uri_mut() = target
        .parse::<Uri>()
        .map_err(|_| UpgradeError::Head(httparse::Error::Token))?;
    *request.version_mut() = match parsed.version {
        Some(1) => http::Version::HTTP_11,
        _ => http::Version::HTTP_10,
    };
    *request.headers_mut() = header_map(parsed.headers)?;
    Ok(request)
}
