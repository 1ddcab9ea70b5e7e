//! The laws of SPDY inside WebSocket (`spdy-cri/src/tunnel.rs`): frames of WebSocket with bytes as payloads.
//!
//! - Where the bytes are cut changes nothing, and no more comes out than came in.
//! - What one end writes, in pieces of any length, the other reads, and then the end.

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

/// Reads the wire as what a client sends through a tunnel, or sends it through one.
pub fn check(input: &[u8]) {
    let (mut choices, wire) = Choices::split(input);
    let both = choices.flag();
    // Buffers of 32 KiB for each end, which the library clears and keeps; and, on ten bytes of a peer's word, room
    // for the one message that it has begun: the tunnel refuses a longer one before, so that is all there is to
    // gain by lying, and the kernel gives no page of it before a byte comes.
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

/// The bytes that come out of a tunnel, and what ends them.
fn read(pieces: &[&[u8]]) -> (Vec<u8>, String) {
    complete(async {
        let mut tunnel = Tunnel::server(Script::new(pieces)).await;
        let mut out = Vec::new();
        let end = tunnel.read_to_end(&mut out).await;
        // A pong or a close of ours may be on its way: none of it may fail in another way than by an error.
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
                .expect("what we wrote")
            {
                Message::Binary(bytes) => back.extend_from_slice(&bytes),
                Message::Close(Some(close)) => break assert_eq!(close.code, CloseCode::Normal),
                other => panic!("we wrote {other:?}"),
            }
        }
        assert_eq!(back, wire);
    });
}
