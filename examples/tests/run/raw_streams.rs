use spdy::client::OpenOptions;
use spdy::{HeaderBlock, RstStatus, SharedRuntime, upgrade};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Program, in_time, pattern};

const PROGRAM: &str = env!("CARGO_BIN_EXE_raw-streams");

#[tokio::test]
async fn both_ends_report_each_stream() {
    let (mut server, address) = Program::serve(PROGRAM, &["listen", "127.0.0.1:0"]).await;
    let (lines, status) = Program::start(PROGRAM, &["connect", &address]).end().await;
    assert!(status.success());
    assert!(lines[0].starts_with("ping: answered in "), "{}", lines[0]);
    assert_eq!(
        lines[1..],
        [
            "echo: hello",
            "half-close: read 262144 bytes after FIN was sent",
            "refused: the peer reset stream 3: REFUSED_STREAM",
            "reset: sent",
        ]
    );
    // Each is printed by a task of its own, so the order may differ.
    let mut ends = Vec::new();
    for _ in 0..4 {
        ends.push(server.line().await);
    }
    for end in [
        "stream 1: echoed 262149 bytes",
        "stream 3: refused",
        "stream 5: the peer reset stream 5: CANCEL",
        ": the session ended",
    ] {
        assert!(
            ends.iter().any(|line| line.ends_with(end)),
            "{end}: {ends:#?}"
        );
    }
}

#[tokio::test]
async fn a_client_of_the_library_gets_its_bytes_back() {
    let (_server, address) = Program::serve(PROGRAM, &["listen", "127.0.0.1:0"]).await;
    let socket = TcpStream::connect(&address)
        .await
        .expect("the server accepts");
    let (session, connection) = upgrade::client_builder().handshake(socket, SharedRuntime::tokio());
    connection.spawn();
    in_time(session.ping()).await.expect("an answer");

    let echo = HeaderBlock::from_iter([("streamtype", "echo")]);
    let stream = session
        .open(echo, OpenOptions::default())
        .await
        .expect("a stream");
    let (mut reader, mut writer) = tokio::io::split(stream);
    let sent = pattern(1 << 20);
    let write = async {
        writer.write_all(&sent).await?;
        writer.shutdown().await
    };
    let mut received = Vec::new();
    let (written, read) =
        in_time(async { tokio::join!(write, reader.read_to_end(&mut received)) }).await;
    written.expect("the server reads all");
    read.expect("the server writes all");
    assert!(received == sent, "the echo differs");

    let other = HeaderBlock::from_iter([("streamtype", "other")]);
    let mut stream = session
        .open(other, OpenOptions::default())
        .await
        .expect("a stream");
    let error = in_time(stream.reply())
        .await
        .expect_err("the stream is refused");
    assert_eq!(error.reset_status(), Some(RstStatus::REFUSED_STREAM));
}
