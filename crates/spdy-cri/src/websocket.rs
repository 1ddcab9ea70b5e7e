//! The handshake of a WebSocket, for the tunnel of SPDY and for plain channels (RFC 6455 §4).
//!
//! Framing is tungstenite's. This module sets its limits, builds the request from the caller's, and
//! formats its errors.

use std::io;

use bytes::Bytes;
use http::header::{
    CONNECTION, HOST, HeaderMap, HeaderValue, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{Request, Response, StatusCode, Uri};
use spdy::SharedRuntime;
use spdy::upgrade::{self, Limits, Refusal, UpgradeError, first_token, has_token};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::server::create_response;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};

use crate::error::ClientError;
use crate::timeout::with_timeout;

/// Largest accepted message, bytes, unless the caller sets another.
pub(crate) const MAX_MESSAGE_BYTES: usize = 1024 * 1024;

/// The close frame for success. With a code: Kubernetes treats a close without one as a fault.
pub(crate) fn normal_close() -> CloseFrame {
    CloseFrame {
        code: CloseCode::Normal,
        reason: "".into(),
    }
}

fn config(message_bytes: usize) -> WebSocketConfig {
    let mut config = WebSocketConfig::default();
    config.read_buffer_size = 32 * 1024;
    config.write_buffer_size = 32 * 1024;
    config.max_message_size = Some(message_bytes);
    config.max_frame_size = Some(message_bytes);
    config
}

/// Value of the `Upgrade` header.
const PROTOCOL: &str = "websocket";

/// True if `request` offers WebSocket, possibly among other protocols, and not SPDY before it: the client lists its
/// preferred protocol first (RFC 9110 §7.8). client-go lists one, and sends a new request for the other.
pub(crate) fn is_preferred<B>(request: &Request<B>) -> bool {
    let protocols = [PROTOCOL, upgrade::PROTOCOL];
    first_token(request.headers(), &UPGRADE, &protocols) == Some(PROTOCOL)
}

/// The sub-protocols that `request` offers, in the client's order of preference.
pub(crate) fn offered<B>(request: &Request<B>) -> impl Iterator<Item = &str> {
    let values = request.headers().get_all(SEC_WEBSOCKET_PROTOCOL);
    values
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
}

/// The 101 response to `request`, which selects `protocol`; without a name if the client sent none.
pub(crate) fn accept<B>(
    request: &Request<B>,
    protocol: Option<&str>,
) -> Result<Response<()>, Refusal> {
    let bad =
        |error: &dyn std::fmt::Display| Refusal::new(StatusCode::BAD_REQUEST, error.to_string());
    let mut head = Request::new(());
    *head.method_mut() = request.method().clone();
    *head.version_mut() = request.version();
    head.headers_mut().clone_from(request.headers());
    // tungstenite does not support lists: it only reads the first line, and expects a single protocol
    for (name, token) in [(CONNECTION, "upgrade"), (UPGRADE, PROTOCOL)] {
        if has_token(request.headers(), &name, token) {
            head.headers_mut()
                .insert(name, HeaderValue::from_static(token));
        }
    }
    let mut response = create_response(&head).map_err(|error| bad(&error))?;
    if let Some(protocol) = protocol {
        let chosen = HeaderValue::from_str(protocol).map_err(|error| bad(&error))?;
        let headers = response.headers_mut();
        headers.insert(SEC_WEBSOCKET_PROTOCOL, chosen);
    }
    Ok(response)
}

/// Creates the server's side on a connection whose 101 was sent.
pub(crate) async fn server<T: AsyncRead + AsyncWrite + Unpin>(
    io: T,
    message_bytes: usize,
) -> WebSocketStream<T> {
    WebSocketStream::from_raw_socket(io, Role::Server, Some(config(message_bytes))).await
}

/// Requests a WebSocket with one of `protocols`, and returns the protocol that the server chose. Only the part of a refusal's body
/// that arrived with its head is stored.
pub(crate) async fn connect<T: AsyncRead + AsyncWrite + Unpin>(
    io: T,
    request: &Request<()>,
    protocols: &[String],
    message_bytes: usize,
    limits: Limits,
    runtime: &SharedRuntime,
) -> Result<(WebSocketStream<T>, String), ClientError> {
    let request = build_request(request, protocols)?;
    let config = Some(config(message_bytes));
    let connecting = tokio_tungstenite::client_async_with_config(request, io, config);
    let after = limits.timeout;
    let connected = with_timeout(runtime, after, Box::pin(connecting)).await;
    match connected.ok_or(UpgradeError::TimedOut { after })? {
        Ok((socket, response)) => {
            // tungstenite has checked that the server chose an offered protocol.
            let chosen = response.headers().get(SEC_WEBSOCKET_PROTOCOL);
            let chosen = chosen.and_then(|name| name.to_str().ok());
            Ok((socket, chosen.unwrap_or_default().to_owned()))
        }
        Err(Error::Http(response)) => {
            let (head, body) = response.into_parts();
            let mut body = Bytes::from(body.unwrap_or_default());
            body.truncate(limits.refusal_bytes);
            Err(ClientError::Upgrade(UpgradeError::Refused {
                status: head.status,
                headers: Box::new(head.headers),
                body,
            }))
        }
        Err(Error::Io(error)) => Err(ClientError::Io(error)),
        Err(error) => Err(ClientError::Handshake {
            reason: error.to_string(),
        }),
    }
}

/// Builds the request of the handshake.
fn build_request(request: &Request<()>, protocols: &[String]) -> Result<Request<()>, UpgradeError> {
    let refuse = |reason| UpgradeError::Request { reason };
    let host = match (request.headers().get(HOST), request.uri().authority()) {
        (Some(host), _) => host.clone(),
        (None, Some(authority)) => {
            let host = authority.as_str().rsplit('@').next().unwrap_or_default();
            HeaderValue::from_str(host)
                .map_err(|_| refuse("its host is not a valid header value"))?
        }
        (None, None) => return Err(refuse("it has no host")),
    };
    let target = request
        .uri()
        .path_and_query()
        .map_or("/", |path| path.as_str());
    let authority = host.to_str().map_err(|_| refuse("its host is not text"))?;
    let uri = Uri::builder()
        .scheme("ws")
        .authority(authority)
        .path_and_query(target);
    let mut out = Request::new(());
    *out.uri_mut() = uri.build().map_err(|_| refuse("its URL is invalid"))?;
    let named = HeaderValue::from_str(&protocols.join(", "));
    let named = named.map_err(|_| refuse("a sub-protocol name is not a token"))?;
    let key = HeaderValue::from_str(&generate_key());
    let key = key.map_err(|_| refuse("its key is not a valid header value"))?;
    let mut ours: HeaderMap = [
        (HOST, host),
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (UPGRADE, HeaderValue::from_static(PROTOCOL)),
        (SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13")),
        (SEC_WEBSOCKET_KEY, key),
    ]
    .into_iter()
    .collect();
    if !protocols.is_empty() {
        ours.insert(SEC_WEBSOCKET_PROTOCOL, named);
    }
    for (name, value) in request.headers() {
        if !ours.contains_key(name) {
            out.headers_mut().append(name.clone(), value.clone());
        }
    }
    out.headers_mut().extend(ours);
    Ok(out)
}

/// Converts the error, for byte streams.
pub(crate) fn to_io(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        error => io::Error::new(io::ErrorKind::InvalidData, error),
    }
}
