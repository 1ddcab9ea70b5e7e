//! The rules and limits of channels over a plain WebSocket: our server, or our client, against a peer that sends
//! what it likes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use spdy::forward_io;
use spdy_cri::client::{self, Options, Process};
use spdy_cri::{Config, StreamOptions, StreamingServer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tokio_tungstenite::tungstenite::{ClientRequestBuilder, Message};

use crate::support::{FakeRuntime, PIPES, dial, exec, fake_runtime, nothing_runs, post, runtime};

/// A client that sends what it likes, with what the server chose.
async fn raw(
    server: &StreamingServer<FakeRuntime>,
    url: &str,
    offers: &[&str],
) -> (WebSocketStream<DuplexStream>, Option<String>) {
    let url = url.replacen("http", "ws", 1).parse().expect("a URL");
    let mut request = ClientRequestBuilder::new(url);
    for offer in offers {
        request = request.with_sub_protocol(*offer);
    }
    let (socket, response) = tokio_tungstenite::client_async(request, dial(server))
        .await
        .expect("a websocket");
    let chosen = response.headers().get("sec-websocket-protocol");
    let chosen = chosen.map(|name| name.to_str().expect("text").to_owned());
    (socket, chosen)
}

/// All messages until the close, and its code.
async fn to_the_end(socket: &mut WebSocketStream<DuplexStream>) -> (Vec<Bytes>, CloseCode) {
    let mut messages = Vec::new();
    loop {
        match socket.next().await.expect("a close").expect("a message") {
            Message::Close(close) => return (messages, close.expect("a code").code),
            Message::Ping(_) | Message::Pong(_) => {}
            message => messages.push(message.into_data()),
        }
    }
}

const SUCCESS: &[u8] = b"\x03{\"metadata\":{},\"status\":\"Success\"}";

#[tokio::test]
async fn a_server_opens_its_channels_first_and_sends_the_status_last() {
    let server = fake_runtime(Config::default());
    let stderr = StreamOptions {
        stderr: true,
        ..StreamOptions::default()
    };
    let stdin = StreamOptions {
        stdin: true,
        ..StreamOptions::default()
    };
    // On the lowest channel that the client reads.
    for (streams, first) in [(PIPES, 1), (stderr, 2), (stdin, 3)] {
        let url = server
            .exec_url(exec(&["bytes", "0"], streams))
            .expect("a URL");
        let (mut socket, chosen) =
            raw(&server, &url, &["v6.channel.k8s.io", "v5.channel.k8s.io"]).await;
        assert_eq!(chosen.as_deref(), Some("v5.channel.k8s.io"));
        let (messages, code) = to_the_end(&mut socket).await;
        assert_eq!(messages[0], [first][..]);
        assert_eq!(code, CloseCode::Normal);
        let last = messages.last().expect("a status");
        let works = streams.stdout; // the command needs stdout
        assert_eq!(last == SUCCESS, works, "{last:?}");
    }
}

#[tokio::test]
async fn a_client_without_sub_protocols_gets_the_first() {
    let server = fake_runtime(Config::default());
    let url = server.exec_url(exec(&["cat"], PIPES)).expect("a URL");
    let (mut socket, chosen) = raw(&server, &url, &[]).await;
    assert_eq!(chosen, None);
    let hello = socket.next().await.expect("a message").expect("no fault");
    assert_eq!(hello.into_data(), b"\x01"[..]);
    // 255 is no signal here, and channel 9 does not exist; text is treated as bytes.
    for message in [&b"\xff\0"[..], b"\x09lost", b"\0", b""] {
        socket.send(Message::binary(message)).await.expect("sent");
    }
    socket.send(Message::text("\0echo")).await.expect("sent");
    let echo = socket.next().await.expect("a message").expect("no fault");
    assert_eq!(echo.into_data(), b"\x01echo"[..]);
}

#[tokio::test]
async fn a_protocol_error_has_its_close_code() {
    let mut config = Config::default();
    config.message_bytes = 70_000;
    let server = fake_runtime(config);
    let long = |len| Message::binary(vec![0; len]);
    let cases = [
        (
            "v5.channel.k8s.io",
            Message::binary(&b"\xff"[..]),
            CloseCode::Protocol,
        ),
        (
            "v5.channel.k8s.io",
            Message::binary(&b"\xff\0\0"[..]),
            CloseCode::Protocol,
        ),
        (
            "v5.channel.k8s.io",
            Message::binary(&b"\xff\x05"[..]),
            CloseCode::Protocol,
        ),
        (
            "base64.channel.k8s.io",
            Message::text("0Zm9v!"),
            CloseCode::Invalid,
        ),
        ("v4.channel.k8s.io", long(70_001), CloseCode::Size),
    ];
    for (protocol, message, code) in cases {
        let url = server.exec_url(exec(&["cat"], PIPES)).expect("a URL");
        let (mut socket, _) = raw(&server, &url, &[protocol]).await;
        let case = format!("{protocol}: {message:.20?}");
        socket.send(message).await.expect("sent");
        assert_eq!(to_the_end(&mut socket).await.1, code, "{case}");
        nothing_runs(&server).await;
    }
    // One byte less is taken.
    let url = server.exec_url(exec(&["cat"], PIPES)).expect("a URL");
    let (mut socket, _) = raw(&server, &url, &["v5.channel.k8s.io"]).await;
    socket.send(long(70_000)).await.expect("sent");
    socket
        .send(Message::binary(&b"\xff\0"[..]))
        .await
        .expect("sent");
    let (messages, code) = to_the_end(&mut socket).await;
    let echo = messages.iter().filter(|message| message[0] == 1);
    let echo: usize = echo.map(|message| message.len() - 1).sum();
    assert_eq!((echo, code), (69_999, CloseCode::Normal));
}

/// How much a client can send without a reader, in messages of `len` bytes and their channel.
async fn messages_accepted_unread(server: &StreamingServer<FakeRuntime>, len: usize) -> usize {
    let url = server.exec_url(exec(&["wait"], PIPES)).expect("a URL");
    let (mut socket, _) = raw(server, &url, &["v5.channel.k8s.io"]).await;
    let sent_count = AtomicUsize::new(0);
    let sending = async {
        loop {
            socket
                .send(Message::binary(vec![0; 1 + len]))
                .await
                .expect("a server");
            sent_count.fetch_add(1, Ordering::SeqCst);
        }
    };
    let mut sending = std::pin::pin!(sending);
    // Until it has not moved for long.
    let (mut previous, mut still) = (0, 0);
    while still < 200 {
        assert!(futures_util::poll!(&mut sending).is_pending());
        tokio::task::yield_now().await;
        let now = sent_count.load(Ordering::SeqCst);
        still = if now == previous { still + 1 } else { 0 };
        previous = now;
    }
    previous
}

#[tokio::test]
async fn unread_input_is_bounded_in_bytes_and_messages() {
    const LIMIT: usize = 256 * 1024;
    /// Under it: the pipe of the test, the buffers of both WebSockets.
    const BELOW: usize = 64 * 1024 + 3 * 32 * 1024;
    let mut config = Config::default();
    config.message_bytes = LIMIT;
    let server = fake_runtime(config);
    let large = messages_accepted_unread(&server, 4000).await * 4000;
    assert!((LIMIT - 8000..LIMIT + BELOW).contains(&large), "{large}");
    // Each costs 64 bytes more than it holds, and on the wire 7.
    let small = messages_accepted_unread(&server, 1).await;
    assert!(
        (LIMIT / 66..LIMIT / 64 + BELOW / 7).contains(&small),
        "{small}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_waits_ten_seconds_for_the_clients_close() {
    for confirms_close in [true, false] {
        let server = fake_runtime(Config::default());
        let url = server.exec_url(exec(&["both"], PIPES)).expect("a URL");
        let (near, far) = tokio::io::duplex(64 * 1024);
        let server_task = tokio::spawn(async move { server.serve_connection(far).await });
        let url = url.replacen("http", "ws", 1);
        let (mut socket, _) = tokio_tungstenite::client_async(&url, near)
            .await
            .expect("a websocket");
        let start_time = tokio::time::Instant::now();
        if confirms_close {
            to_the_end_of(&mut socket).await;
        }
        server_task.await.expect("no panic");
        let (elapsed, limit) = (start_time.elapsed(), Duration::from_secs(10));
        match confirms_close {
            true => assert!(elapsed < Duration::from_secs(1), "{elapsed:?}"),
            false => assert!((limit..limit * 2).contains(&elapsed), "{elapsed:?}"),
        }
        drop(socket);
    }
}

async fn to_the_end_of(socket: &mut WebSocketStream<DuplexStream>) {
    while let Some(Ok(_)) = socket.next().await {}
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_ends_after_four_hours() {
    let server = fake_runtime(Config::default());
    let url = server.exec_url(exec(&["wait"], PIPES)).expect("a URL");
    let (mut socket, _) = raw(&server, &url, &["v5.channel.k8s.io"]).await;
    let start_time = tokio::time::Instant::now();
    socket.next().await.expect("a message").expect("no fault");
    let hours = |hours: u64| Duration::from_secs(hours * 3600);
    // A sign of life counts, and its answer is no message.
    tokio::time::sleep(hours(3)).await;
    socket
        .send(Message::Ping(Bytes::new()))
        .await
        .expect("sent");
    let (_, code) = to_the_end(&mut socket).await;
    assert_eq!(code, CloseCode::Away);
    let elapsed = start_time.elapsed();
    assert!(
        (hours(7)..hours(7) + Duration::from_secs(60)).contains(&elapsed),
        "{elapsed:?}"
    );
    drop(socket);
    nothing_runs(&server).await;
}

/// A server that answers the handshake and then follows `script`.
async fn scripted(
    script: Vec<Message>,
) -> (
    Process,
    tokio::task::JoinHandle<WebSocketStream<DuplexStream>>,
) {
    let (near, mut far) = tokio::io::duplex(64 * 1024);
    let server_task = tokio::spawn(async move {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(far.read_u8().await.expect("a head"));
        }
        let head = String::from_utf8(head).expect("text");
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        let key = lines.find(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key"));
        let (_, key) = key.expect("a key");
        let accept = tokio_tungstenite::tungstenite::handshake::derive_accept_key(key.as_bytes());
        let response = format!(
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
             sec-websocket-accept: {accept}\r\nsec-websocket-protocol: v5.channel.k8s.io\r\n\r\n"
        );
        far.write_all(response.as_bytes()).await.expect("written");
        let mut socket = WebSocketStream::from_raw_socket(far, Role::Server, None).await;
        for message in script {
            socket.send(message).await.expect("sent");
        }
        socket
    });
    let request = post("http://server/exec");
    let options = Options::default();
    let process = client::exec_in_websocket(near, &request, PIPES, options, runtime())
        .await
        .expect("a process");
    (process, server_task)
}

/// A client waited for ever for one that had gone without a word, as a machine does that loses its power.
#[tokio::test(start_paused = true)]
async fn a_server_without_pongs_is_lost_after_a_minute() {
    let (process, server_task) = scripted(Vec::new()).await;
    let socket = server_task.await.expect("no panic");
    let start_time = tokio::time::Instant::now();
    process.wait().await.expect_err("the peer is gone");
    let elapsed = start_time.elapsed();
    // The first PING is sent after 5 s.
    let expected = Duration::from_secs(65);
    assert!((expected..expected * 2).contains(&elapsed), "{elapsed:?}");
    drop(socket);
}

#[tokio::test(start_paused = true)]
async fn a_server_with_pongs_stays_connected_for_hours() {
    // More than waits for its reader: the client stops reading, and answers lie behind what it does not read.
    let piece = Message::binary([&b"\x01"[..], &[b'x'; 30_000]].concat());
    for pieces in [0, 50] {
        let (mut process, server_task) = scripted(Vec::new()).await;
        let mut socket = server_task.await.expect("no panic");
        let (messages, piece) = (vec![piece.clone(); pieces], piece.clone());
        let (end, end_receiver) = tokio::sync::oneshot::channel::<()>();
        let sender_task = tokio::spawn(async move {
            for message in messages {
                socket.send(message).await.expect("sent");
            }
            let mut end_receiver = end_receiver;
            loop {
                tokio::select! {
                    message = socket.next() => drop(message.expect("an end").expect("a message")),
                    _ = &mut end_receiver => break,
                }
            }
            let last = [piece, Message::binary(SUCCESS), close(CloseCode::Normal)];
            for message in last {
                socket.send(message).await.expect("sent");
            }
            to_the_end_of(&mut socket).await;
        });
        tokio::time::sleep(Duration::from_secs(3 * 3600)).await;
        let mut stdout = process.stdout.take().expect("the stream was requested");
        for _ in 0..pieces {
            let message = stdout.receive().await.expect("more").expect("no fault");
            assert_eq!(message.len(), 30_000);
        }
        tokio::time::sleep(Duration::from_secs(3600)).await;
        end.send(()).expect("it is there");
        let message = stdout.receive().await.expect("more").expect("no fault");
        assert_eq!(message.len(), 30_000);
        process.wait().await.expect("a status");
        sender_task.await.expect("no panic");
    }
}

/// A connection that can be broken in one direction: writes fail, and reads never end.
struct Breakable {
    io: DuplexStream,
    is_broken: Arc<AtomicBool>,
}

impl AsyncRead for Breakable {
    forward_io!(poll_read => self.io);
}

impl AsyncWrite for Breakable {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.is_broken.load(Ordering::SeqCst) {
            true => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            false => Pin::new(&mut self.io).poll_write(cx, bytes),
        }
    }

    forward_io!(poll_flush, poll_shutdown => self.io);
}

/// A reader waited for ever, since the connection waited for the close frame of an unreachable peer.
#[tokio::test(start_paused = true)]
async fn a_half_broken_connection_fails_quickly() {
    let server = fake_runtime(Config::default());
    let url = server.exec_url(exec(&["wait"], PIPES)).expect("a URL");
    let is_broken = Arc::<AtomicBool>::default();
    let io = Breakable {
        io: dial(&server),
        is_broken: is_broken.clone(),
    };
    let mut options = Options::default();
    options.ping_interval = None;
    let mut process = client::exec_in_websocket(io, &post(&url), PIPES, options, runtime())
        .await
        .expect("a process");
    is_broken.store(true, Ordering::SeqCst);
    let start_time = tokio::time::Instant::now();
    let mut stdin = process.stdin.take().expect("the stream was requested");
    stdin.send(Bytes::from_static(b"x")).await.expect("room");
    process.wait().await.expect_err("the connection is lost");
    let elapsed = start_time.elapsed();
    assert!(elapsed < Duration::from_secs(60), "{elapsed:?}");
}

fn close(code: CloseCode) -> Message {
    Message::Close(Some(CloseFrame {
        code,
        reason: "as asked".into(),
    }))
}

#[tokio::test]
async fn a_client_accepts_only_a_normal_close_as_the_end() {
    let messages = || vec![Message::binary(&b"\x01so"[..]), Message::binary(SUCCESS)];
    let mut cut = messages();
    cut.truncate(1);
    let cases = [
        ([messages(), vec![close(CloseCode::Normal)]].concat(), true),
        ([messages(), vec![Message::Close(None)]].concat(), true),
        ([messages(), vec![close(CloseCode::Error)]].concat(), false),
        (cut, false),
    ];
    for (script, ends) in cases {
        let case = format!("{script:?}");
        let (mut process, server_task) = scripted(script).await;
        drop(server_task.await.expect("no panic"));
        let mut stdout = process.stdout.take().expect("the stream was requested");
        let mut output = Vec::new();
        let read_result = stdout.read_to_end(&mut output).await;
        assert_eq!(
            (output.as_slice(), read_result.is_ok()),
            (&b"so"[..], ends),
            "{case}"
        );
        assert_eq!(process.wait().await.is_ok(), ends, "{case}");
    }
}
