//! WebSockets through an accelerator: tungstenite at both ends, or bytes where a peer breaks the protocol.

use futures_util::StreamExt;
use spdy_proxy::telemetry::counters::CounterFamily;
use tokio::io::DuplexStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::support::wire::{Between, head, write};

pub(crate) const HANDSHAKE: &str = "GET /chat HTTP/1.1\r\nHost: www.site.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
pub(crate) const AGREED: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
pub(crate) const HIDDEN: &str = "GET /admin HTTP/1.1\r\nHost: www.site.test\r\n\r\n";
pub(crate) type Socket = WebSocketStream<DuplexStream>;

/// A client and an origin with a WebSocket between them, and the serving of the client.
pub(crate) async fn open_sockets(
    between: &mut Between,
) -> (Socket, Socket, tokio::task::JoinHandle<()>) {
    let (io, serving) = between.client();
    let connect = tokio_tungstenite::client_async("ws://www.site.test/chat", io);
    let accept = async { tokio_tungstenite::accept_async(between.next_connection().await).await };
    let (client, origin) = tokio::join!(connect, accept);
    let (client, _) = client.expect("the origin agrees");
    (client, origin.expect("a handshake"), serving)
}

/// A client that requested a WebSocket, byte by byte, the origin that got the request, and the task that serves the client.
pub(crate) async fn requested(
    between: &mut Between,
) -> (DuplexStream, DuplexStream, tokio::task::JoinHandle<()>) {
    let (mut client, serving) = between.client();
    write(&mut client, HANDSHAKE).await;
    let mut origin = between.next_connection().await;
    head(&mut origin).await;
    (client, origin, serving)
}

/// The same, once the origin has agreed.
pub(crate) async fn switched(
    between: &mut Between,
) -> (DuplexStream, DuplexStream, tokio::task::JoinHandle<()>) {
    let (mut client, mut origin, serving) = requested(between).await;
    write(&mut origin, AGREED).await;
    head(&mut client).await;
    (client, origin, serving)
}

pub(crate) fn counts(between: &Between, family: CounterFamily) -> Vec<(&'static str, u64)> {
    between.proxy.telemetry.counters.read(family)
}

/// The next message, except pings, which tungstenite answers itself.
pub(crate) async fn next(socket: &mut Socket) -> Message {
    loop {
        let message = socket.next().await.expect("the body continues");
        let message = message.expect("a message");
        if !message.is_pong() {
            return message;
        }
    }
}

/// The code that a socket is closed with.
pub(crate) async fn closed(socket: &mut Socket) -> CloseCode {
    match next(socket).await {
        Message::Close(Some(frame)) => frame.code,
        other => panic!("expected a close frame, found {other:?}"),
    }
}
