//! SPDY inside WebSocket: the sub-protocol `SPDY/3.1+portforward.k8s.io` (Kubernetes since 1.30).
//!
//! ```text
//!  SPDY bytes   80 03 00 01 ...         cut anywhere, a message per write of the library
//!  WebSocket    binary message, binary message, ...      close 1000 is the end
//!  HTTP/1.1     GET, Upgrade: websocket, Sec-WebSocket-Protocol: SPDY/3.1+portforward.k8s.io
//! ```
//!
//! Borders of messages mean nothing. A text message is an error, as it is for Kubernetes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures_util::future::{Either, select};
use futures_util::{Sink, Stream};
use http::header::{
    CONNECTION, HOST, HeaderMap, HeaderValue, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{Request, Response, StatusCode, Uri};
use spdy::SharedRuntime;
use spdy::upgrade::{Limits, Refusal, UpgradeError};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::server::create_response;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::error::ClientError;

/// What stands before a sub-protocol that is tunnelled.
pub const PREFIX: &str = "SPDY/3.1+";
/// Bytes of a message that is taken; a longer one ends the session. Kubernetes copies in pieces of 32 KiB,
/// each a message.
pub const MAX_MESSAGE_BYTES: usize = 1024 * 1024;
/// Bytes of a message that we write.
const MESSAGE_BYTES: usize = 64 * 1024;

fn config() -> WebSocketConfig {
    let mut config = WebSocketConfig::default();
    config.read_buffer_size = 32 * 1024;
    config.write_buffer_size = 32 * 1024;
    config.max_message_size = Some(MAX_MESSAGE_BYTES);
    config.max_frame_size = Some(MAX_MESSAGE_BYTES);
    config
}

/// Judges a request for a tunnel of one of `protocols`.
pub(crate) fn accept<B>(request: &Request<B>, protocols: &[&str]) -> Result<Response<()>, Refusal> {
    let mut head = Request::new(());
    *head.method_mut() = request.method().clone();
    *head.version_mut() = request.version();
    head.headers_mut().clone_from(request.headers());
    let mut response = create_response(&head)
        .map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, error.to_string()))?;
    let chosen = request
        .headers()
        .get_all(SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .find(|name| {
            name.strip_prefix(PREFIX)
                .is_some_and(|name| protocols.contains(&name))
        });
    let Some(chosen) = chosen.and_then(|name| HeaderValue::from_str(name).ok()) else {
        let message = format!(
            "no sub-protocol of {PREFIX}{} is offered",
            protocols.join(", ")
        );
        return Err(Refusal::new(StatusCode::FORBIDDEN, message));
    };
    response
        .headers_mut()
        .insert(SEC_WEBSOCKET_PROTOCOL, chosen);
    Ok(response)
}

/// A byte stream through WebSocket messages.
#[derive(Debug)]
pub struct Tunnel<T> {
    socket: WebSocketStream<T>,
    /// Of a message that came, what was not read yet.
    current: Bytes,
    /// Our close was queued.
    closing: bool,
}

impl<T: AsyncRead + AsyncWrite + Unpin> Tunnel<T> {
    /// Over a connection whose 101 was sent.
    pub async fn server(io: T) -> Self {
        Self::new(WebSocketStream::from_raw_socket(io, Role::Server, Some(config())).await)
    }

    /// Asks for a tunnel of `protocol`, which is named without its prefix. Of a refusal's body only what
    /// came along with its head is kept.
    ///
    /// # Errors
    ///
    /// [`UpgradeError::Refused`] and its kin, as for an upgrade to SPDY itself.
    pub async fn connect(
        io: T,
        request: &Request<()>,
        protocol: &str,
        limits: Limits,
        runtime: &SharedRuntime,
    ) -> Result<Self, ClientError> {
        let request = ask(request, protocol)?;
        let connecting = tokio_tungstenite::client_async_with_config(request, io, Some(config()));
        let deadline = runtime.sleep_until(runtime.now() + limits.timeout);
        let connected = match select(Box::pin(connecting), deadline).await {
            Either::Left((connected, _)) => connected,
            Either::Right(((), _)) => {
                let after = limits.timeout;
                return Err(UpgradeError::TimedOut { after }.into());
            }
        };
        match connected {
            // It has checked that the server chose what was offered.
            Ok((socket, _)) => Ok(Self::new(socket)),
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
            Err(error) => Err(ClientError::Io(to_io(error))),
        }
    }

    fn new(socket: WebSocketStream<T>) -> Self {
        Self {
            socket,
            current: Bytes::new(),
            closing: false,
        }
    }
}

/// The request of the handshake.
fn ask(request: &Request<()>, protocol: &str) -> Result<Request<()>, UpgradeError> {
    let refuse = |why| UpgradeError::Request { why };
    let host = match (request.headers().get(HOST), request.uri().authority()) {
        (Some(host), _) => host.clone(),
        (None, Some(authority)) => {
            let host = authority.as_str().rsplit('@').next().unwrap_or_default();
            HeaderValue::from_str(host).map_err(|_| refuse("its host is no header value"))?
        }
        (None, None) => return Err(refuse("it names no host")),
    };
    let target = request
        .uri()
        .path_and_query()
        .map_or("/", |path| path.as_str());
    let authority = host.to_str().map_err(|_| refuse("its host is no text"))?;
    let uri = Uri::builder()
        .scheme("ws")
        .authority(authority)
        .path_and_query(target);
    let mut out = Request::new(());
    *out.uri_mut() = uri.build().map_err(|_| refuse("its url is none"))?;
    let named = HeaderValue::from_str(&format!("{PREFIX}{protocol}"));
    let named = named.map_err(|_| refuse("a sub-protocol's name is no token"))?;
    let key = HeaderValue::from_str(&generate_key());
    let key = key.map_err(|_| refuse("its key is no header value"))?;
    let ours: HeaderMap = [
        (HOST, host),
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (UPGRADE, HeaderValue::from_static("websocket")),
        (SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13")),
        (SEC_WEBSOCKET_KEY, key),
        (SEC_WEBSOCKET_PROTOCOL, named),
    ]
    .into_iter()
    .collect();
    for (name, value) in request.headers() {
        if !ours.contains_key(name) {
            out.headers_mut().append(name.clone(), value.clone());
        }
    }
    out.headers_mut().extend(ours);
    Ok(out)
}

fn to_io(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        error => io::Error::new(io::ErrorKind::InvalidData, error),
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncRead for Tunnel<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let bad = |text: String| Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, text)));
        while self.current.is_empty() {
            match ready!(Pin::new(&mut self.socket).poll_next(cx)) {
                Some(Ok(Message::Binary(bytes))) => self.current = bytes,
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Text(_))) => {
                    return bad("a text message in a tunnel of bytes".to_owned());
                }
                Some(Ok(Message::Close(Some(frame)))) if frame.code != CloseCode::Normal => {
                    return bad(format!("the tunnel was closed with {}", frame.code));
                }
                Some(Ok(Message::Close(_)) | Err(Error::ConnectionClosed)) | None => {
                    return Poll::Ready(Ok(()));
                }
                Some(Err(error)) => return Poll::Ready(Err(to_io(error))),
            }
        }
        let len = self.current.len().min(buf.remaining());
        buf.put_slice(&self.current[..len]);
        self.current.advance(len);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Tunnel<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        ready!(Pin::new(&mut self.socket).poll_ready(cx)).map_err(to_io)?;
        let len = bytes.len().min(MESSAGE_BYTES);
        let message = Message::Binary(Bytes::copy_from_slice(&bytes[..len]));
        Pin::new(&mut self.socket)
            .start_send(message)
            .map_err(to_io)?;
        Poll::Ready(Ok(len))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match ready!(Pin::new(&mut self.socket).poll_flush(cx)) {
            // after the close there is nothing to flush
            Ok(()) | Err(Error::ConnectionClosed) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(to_io(error))),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.closing {
            ready!(Pin::new(&mut self.socket).poll_ready(cx)).map_err(to_io)?;
            // With a code: Kubernetes takes a close without one for a fault.
            let close = CloseFrame {
                code: CloseCode::Normal,
                reason: "".into(),
            };
            self.closing = true;
            match Pin::new(&mut self.socket).start_send(Message::Close(Some(close))) {
                // the peer was first
                Ok(()) | Err(Error::ConnectionClosed | Error::Protocol(_)) => {}
                Err(error) => return Poll::Ready(Err(to_io(error))),
            }
        }
        self.poll_flush(cx)
    }
}
