//! Properties of SPDY inside WebSocket (`spdy-cri/src/tunnel.rs`): WebSocket frames with bytes as payloads.
//!
//! - How the bytes are split changes nothing, and the output has no more bytes than the input.
//! - The bytes that one end writes, in pieces of any length, arrive at the other, followed by the end.

use futures_util::StreamExt;
use spdy_cri::tunnel::{MAX_MESSAGE_BYTES, Tunnel};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::choices::Choices;
use crate::io::{Script, complete};
use crate::memory;

/// Decodes the wire as the output of a tunnel's client, or sends it through a tunnel.
pub fn check(input: &[u8]) {
    let (mut choices, wire) = Choices::split(input);
    let both = choices.flag();
    // The library keeps buffers of 32 KiB for each end. Ten bytes from a peer announce a message, for which it allocates
    // room at once; the tunnel rejects longer messages first. The kernel provides the pages only when bytes
    // arrive.
    memory::at_most(512 * 1024 + MAX_MESSAGE_BYTES + 40 * wire.len(), || {
        if both {
            carry(wire, &choices.cut(wire));
        } else {
            let whole: &[&[u8]] = if wire.is_empty() { &[] } else { &[wire] };
            let whole = read(whole);
            assert!(whole.0.len() <= wire.len());
            assert_eq!(read(&choices.cut(wire)), whole);
        }
    });
}

/// The output of a tunnel, and the reason of its end.
fn read(pieces: &[&[u8]]) -> (Vec<u8>, String) {
    complete(async {
        let mut tunnel = Tunnel::server(Script::new(pieces)).await;
        let mut out = Vec::new();
        let end = tunnel.read_to_end(&mut out).await;
        // A pong or a close may still be queued: it may fail only with an error.
        let _ = tunnel.shutdown().await;
        (
            out,
            end.err()
                .map_or_else(String::new, |error| error.to_string()),
        )
    })
}

/// Sends `pieces` from a server to a client.
fn carry(wire: &[u8], pieces: &[&[u8]]) {
    let (near, far) = tokio::io::duplex(1 << 20);
    complete(async {
        let mut server = Tunnel::server(near).await;
        for piece in pieces {
            server.write_all(piece).await.expect("room");
        }
        server.shutdown().await.expect("room");
        let mut client = WebSocketStream::from_raw_socket(far, Role::Client, None).await;
        let mut back = Vec::new();
        loop {
            match client
                .next()
                .await
                .expect("a close")
                .expect("the encoded form is valid")
            {
                Message::Binary(bytes) => back.extend_from_slice(&bytes),
                Message::Close(Some(close)) => break assert_eq!(close.code, CloseCode::Normal),
                other => panic!("unexpected message {other:?}"),
            }
        }
        assert_eq!(back, wire);
    });
}
