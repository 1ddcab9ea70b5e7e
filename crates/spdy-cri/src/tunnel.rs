//! SPDY inside WebSocket: the sub-protocol `SPDY/3.1+portforward.k8s.io` (Kubernetes since 1.30).
//!
//! ```text
//!  SPDY bytes   80 03 00 01 ...         cut anywhere, a message per write of the library
//!  WebSocket    binary message, binary message, ...      close 1000 is the end
//!  HTTP/1.1     GET, Upgrade: websocket, Sec-WebSocket-Protocol: SPDY/3.1+portforward.k8s.io
//! ```
//!
//! The boundaries of messages have no meaning. A text message is an error, as in Kubernetes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures_util::{Sink, Stream};
use http::{Request, Response, StatusCode};
use spdy::SharedRuntime;
use spdy::upgrade::{Limits, Refusal};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::error::ClientError;
use crate::websocket::{self, normal_close, to_io};

/// The prefix of a tunnelled sub-protocol.
pub const PREFIX: &str = "SPDY/3.1+";
/// Maximum size of a received message, bytes; a longer one ends the session. Kubernetes copies in pieces of 32 KiB, each of which
/// is a message. The memory for a message is allocated when the head of its frame arrives.
pub const MAX_MESSAGE_BYTES: usize = websocket::MAX_MESSAGE_BYTES;
/// Maximum size of a message that we write, bytes.
const MESSAGE_BYTES: usize = 64 * 1024;

/// Checks a request for a tunnel of one of `protocols`.
pub(crate) fn accept<B>(request: &Request<B>, protocols: &[&str]) -> Result<Response<()>, Refusal> {
    let chosen = websocket::offered(request).find(|name| {
        name.strip_prefix(PREFIX)
            .is_some_and(|name| protocols.contains(&name))
    });
    if chosen.is_none() {
        let names = protocols.join(", ");
        let message = format!("no sub-protocol of {PREFIX}{names} is offered");
        return Err(Refusal::new(StatusCode::FORBIDDEN, message));
    }
    websocket::accept(request, chosen)
}

/// A byte stream through WebSocket messages.
#[derive(Debug)]
pub struct Tunnel<T> {
    socket: WebSocketStream<T>,
    /// The unread rest of a received message.
    current: Bytes,
    /// True if our close frame was queued.
    closing: bool,
}

impl<T: AsyncRead + AsyncWrite + Unpin> Tunnel<T> {
    /// Creates the server's side on a connection whose 101 was sent.
    pub async fn server(io: T) -> Self {
        Self::new(websocket::server(io, MAX_MESSAGE_BYTES).await)
    }

    /// Requests a tunnel of `protocol`, without its prefix. Only the part of a refusal's body that arrived with its head is stored.
    ///
    /// # Errors
    ///
    /// [`UpgradeError::Refused`](spdy::upgrade::UpgradeError::Refused) or another variant, as for an upgrade to SPDY itself.
    pub async fn connect(
        io: T,
        request: &Request<()>,
        protocol: &str,
        limits: Limits,
        runtime: &SharedRuntime,
    ) -> Result<Self, ClientError> {
        let protocols = [format!("{PREFIX}{protocol}")];
        let (socket, _) =
            websocket::connect(io, request, &protocols, MAX_MESSAGE_BYTES, limits, runtime).await?;
        Ok(Self::new(socket))
    }

    fn new(socket: WebSocketStream<T>) -> Self {
        Self {
            socket,
            current: Bytes::new(),
            closing: false,
        }
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
                    return bad("text message in a tunnel, expected binary".to_owned());
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
            let close = normal_close();
            self.closing = true;
            match Pin::new(&mut self.socket).start_send(Message::Close(Some(close))) {
                // the peer closed first
                Ok(()) | Err(Error::ConnectionClosed | Error::Protocol(_)) => {}
                Err(error) => return Poll::Ready(Err(to_io(error))),
            }
        }
        self.poll_flush(cx)
    }
}
