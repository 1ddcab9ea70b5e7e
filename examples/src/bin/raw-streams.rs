//! Raw SPDY streams without HTTP, as `github.com/moby/spdystream` uses them: open, echo, half-close, refuse, reset, ping.
//!
//! Run the two ends in two terminals:
//!
//! ```sh
//! cargo run --manifest-path examples/Cargo.toml --bin raw-streams -- listen 127.0.0.1:6121
//! cargo run --manifest-path examples/Cargo.toml --bin raw-streams -- connect 127.0.0.1:6121
//! ```
//!
//! `spdy::upgrade::client_builder` and `server_builder` set a session up for those peers: no flow control and no SETTINGS. Between two
//! programs that use this crate, `spdy::client::handshake` and `spdy::server::handshake` are the better choice.

use std::time::Duration;
use std::{env, io};

use spdy::client::OpenOptions;
use spdy::server::Incoming;
use spdy::{BoxError, HeaderBlock, RstStatus, SharedRuntime, Stream, upgrade};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Most bytes that the client reads of an echo.
const MAX_ECHO: u64 = 1 << 20;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.as_slice() {
        [mode, address] if mode == "listen" => listen(address).await,
        [mode, address] if mode == "connect" => connect(address).await,
        _ => Err("usage: raw-streams listen|connect ADDRESS".into()),
    }
}

async fn listen(address: &str) -> Result<(), BoxError> {
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    loop {
        let (socket, peer) = listener.accept().await?;
        tokio::spawn(async move {
            match serve(socket).await {
                Ok(()) => println!("{peer}: the session ended"),
                Err(error) => println!("{peer}: {error}"),
            }
        });
    }
}

/// Serves one session: every stream in a task of its own.
async fn serve(socket: TcpStream) -> Result<(), spdy::Error> {
    let builder = upgrade::server_builder().max_concurrent_streams(100);
    let (mut accept, connection) = builder.handshake(socket, SharedRuntime::tokio());
    let streams = async {
        while let Some(incoming) = accept.next().await {
            tokio::spawn(answer(incoming));
        }
    };
    // `run` returns why the session ended; `connection.spawn()` would only run it.
    let (ended, ()) = tokio::join!(connection.run(), streams);
    ended
}

/// Refuses a stream, or echoes it to its end.
async fn answer(incoming: Incoming) {
    let id = incoming.id();
    if incoming.headers().get("streamtype") != Some(&b"echo"[..]) {
        println!("stream {id}: refused");
        return incoming.reject(RstStatus::REFUSED_STREAM);
    }
    match echo(incoming).await {
        Ok(bytes) => println!("stream {id}: echoed {bytes} bytes"),
        Err(error) => println!("stream {id}: {error}"),
    }
}

async fn echo(incoming: Incoming) -> Result<usize, spdy::Error> {
    let mut stream = incoming.accept_raw(&HeaderBlock::new())?;
    let mut bytes = 0;
    while let Some(piece) = stream.receive().await {
        let piece = piece?;
        bytes += piece.len();
        stream.send(piece).await?; // no copy, and it waits for room
    }
    stream.finish()?; // FIN: ends our half
    Ok(bytes)
}

async fn connect(address: &str) -> Result<(), BoxError> {
    let socket = TcpStream::connect(address).await?;
    let (session, connection) = upgrade::client_builder().handshake(socket, SharedRuntime::tokio());
    connection.spawn();

    // Some peers never answer a PING, so it needs a timeout.
    let round_trip = timeout(Duration::from_secs(5), session.ping()).await??;
    println!("ping: answered in {round_trip:?}");

    // Both directions of a stream are open until each is closed.
    let echo = HeaderBlock::from_iter([("streamtype", "echo")]);
    let mut stream = session.open(echo.clone(), OpenOptions::default()).await?;
    stream.reply().await?;
    stream.write_all(b"hello").await?;
    let mut hello = [0; 5];
    stream.read_exact(&mut hello).await?;
    println!("echo: {}", String::from_utf8_lossy(&hello));

    // Half-close: after FIN the peer can still send. Reading and writing at once needs the two halves of the stream.
    let (reader, mut writer) = tokio::io::split(stream);
    let write = async {
        for _ in 0..16 {
            writer.write_all(&[b'x'; 16 * 1024]).await?;
        }
        writer.shutdown().await
    };
    let (written, read) = tokio::join!(write, read_all(reader));
    written?;
    println!("half-close: read {} bytes after FIN was sent", read?);

    let mut refused = session
        .open(
            HeaderBlock::from_iter([("streamtype", "unknown")]),
            OpenOptions::default(),
        )
        .await?;
    match refused.reply().await {
        Ok(_) => return Err("the stream was not refused".into()),
        Err(error) if error.reset_status() == Some(RstStatus::REFUSED_STREAM) => {
            println!("refused: {error}");
        }
        Err(error) => return Err(error.into()),
    }

    let mut cancelled: Stream = session.open(echo, OpenOptions::default()).await?;
    cancelled.reply().await?;
    cancelled.write_all(b"half a mess").await?;
    cancelled.reset(RstStatus::CANCEL); // dropping the stream does the same
    println!("reset: sent");

    // The last handle ends the session in order, after its last stream.
    session.shutdown();
    session.closed().await;
    session.error().map_or(Ok(()), |error| Err(error.into()))
}

async fn read_all(reader: impl AsyncReadExt + Unpin) -> io::Result<u64> {
    tokio::io::copy(&mut reader.take(MAX_ECHO), &mut tokio::io::sink()).await
}
