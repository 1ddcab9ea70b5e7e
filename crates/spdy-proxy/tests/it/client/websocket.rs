//! WebSockets to a site's own origin, in virtual time: tungstenite at both ends, and bytes where a peer does what none should.

use std::time::Duration;

use futures_util::{FutureExt, SinkExt, StreamExt};
use http::StatusCode;
use spdy_proxy::telemetry::counters::CounterFamily;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::support::wire::{self, Between, head, write};

const HANDSHAKE: &str = "GET /chat HTTP/1.1\r\nHost: www.site.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
const AGREED: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
const HIDDEN: &str = "GET /admin HTTP/1.1\r\nHost: www.site.test\r\n\r\n";

type Socket = WebSocketStream<DuplexStream>;

/// A client and an origin with a WebSocket between them, and the serving of the client.
async fn open_sockets(between: &mut Between) -> (Socket, Socket, tokio::task::JoinHandle<()>) {
    let (io, serving) = between.client();
    let connect = tokio_tungstenite::client_async("ws://www.site.test/chat", io);
    let accept = async { tokio_tungstenite::accept_async(between.next_connection().await).await };
    let (client, origin) = tokio::join!(connect, accept);
    let (client, _) = client.expect("the origin agrees");
    (client, origin.expect("a handshake"), serving)
}

/// A client that requested a WebSocket, byte by byte, the origin that got the request, and the task that serves the client.
async fn requested(
    between: &mut Between,
) -> (DuplexStream, DuplexStream, tokio::task::JoinHandle<()>) {
    let (mut client, serving) = between.client();
    write(&mut client, HANDSHAKE).await;
    let mut origin = between.next_connection().await;
    head(&mut origin).await;
    (client, origin, serving)
}

/// The same, once the origin has agreed.
async fn switched(
    between: &mut Between,
) -> (DuplexStream, DuplexStream, tokio::task::JoinHandle<()>) {
    let (mut client, mut origin, serving) = requested(between).await;
    write(&mut origin, AGREED).await;
    head(&mut client).await;
    (client, origin, serving)
}

fn counts(between: &Between, family: CounterFamily) -> Vec<(&'static str, u64)> {
    between.proxy.telemetry.counters.read(family)
}

/// What comes next, but for what tungstenite answers to a ping by itself.
async fn next(socket: &mut Socket) -> Message {
    loop {
        let message = socket.next().await.expect("the body continues");
        let message = message.expect("a message");
        if !message.is_pong() {
            return message;
        }
    }
}

/// The code that a socket is closed with.
async fn closed(socket: &mut Socket) -> CloseCode {
    match next(socket).await {
        Message::Close(Some(frame)) => frame.code,
        other => panic!("expected a close frame, found {other:?}"),
    }
}

#[tokio::test]
async fn messages_and_close_pass_both_ways() {
    let mut between = Between::start("");
    let (mut client, mut origin, serving) = open_sockets(&mut between).await;
    assert_eq!(between.proxy.client_limits.open_websockets(), 1);
    let long: Vec<u8> = (0..1 << 20).map(|at: u32| at.to_le_bytes()[1]).collect();
    for message in [
        Message::text("hello"),
        Message::binary(long),
        Message::Ping("are you there".into()),
        Message::text(""),
    ] {
        let (sending, received) = tokio::join!(client.send(message.clone()), next(&mut origin));
        sending.expect("the peer reads");
        assert!(received == message, "to the origin");
        let (sending, received) = tokio::join!(origin.send(message.clone()), next(&mut client));
        sending.expect("the peer reads");
        assert!(received == message, "to the client");
    }
    let frame = CloseFrame {
        code: CloseCode::Library(4001),
        reason: "enough".into(),
    };
    origin.close(Some(frame)).await.expect("the peer reads");
    let Message::Close(Some(last)) = next(&mut client).await else {
        panic!("expected a close frame");
    };
    assert_eq!(
        (last.code, last.reason.as_str()),
        (CloseCode::Library(4001), "enough")
    );
    drop((client, origin));
    serving.await.expect("no panic");
    assert_eq!(between.proxy.client_limits.open_websockets(), 0);
    let bytes = counts(&between, CounterFamily::WebSocketBytes);
    assert!(bytes.iter().all(|(_, bytes)| *bytes > 1 << 20), "{bytes:?}");
    assert_eq!(
        counts(&between, CounterFamily::Responses),
        [("websocket", 1)]
    );
    assert_eq!(counts(&between, CounterFamily::WebSockets), [("origin", 1)]);
}

#[tokio::test]
async fn upgrade_request_has_the_usual_proxy_headers() {
    let mut between = Between::start("");
    let (io, _serving) = between.client();
    let mut request = "ws://www.site.test/chat?room=7"
        .into_client_request()
        .expect("a URL");
    for (name, value) in [
        ("origin", "https://www.site.test"),
        ("cookie", "session=1"),
        ("sec-websocket-protocol", "chat"),
        ("x-forwarded-for", "203.0.113.9"),
        ("connection", "Upgrade, X-Hop"),
        ("x-hop", "1"),
        ("proxy-authorization", "Basic eA=="),
    ] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    let connect = tokio_tungstenite::client_async(request, io);
    let accept = async {
        let mut upgrade_request = None;
        #[expect(clippy::result_large_err, reason = "tungstenite wants it so")]
        let record = |request: &Request, mut response: Response| {
            upgrade_request = Some(request.clone());
            let protocol = "chat".parse().unwrap();
            response
                .headers_mut()
                .insert("sec-websocket-protocol", protocol);
            Ok(response)
        };
        let accepted =
            tokio_tungstenite::accept_hdr_async(between.next_connection().await, record).await;
        (
            accepted.expect("a handshake"),
            upgrade_request.expect("the origin received the request"),
        )
    };
    let (connected, (_origin, upgrade_request)) = tokio::join!(connect, accept);
    let (_client, response_head) = connected.expect("the origin agrees");
    assert_eq!(upgrade_request.uri(), "/chat?room=7");
    let field = |name| {
        upgrade_request
            .headers()
            .get(name)
            .map(|value| value.to_str().unwrap())
    };
    for (name, expected) in [
        ("host", Some("origin.test:8000")),
        ("origin", Some("https://www.site.test")),
        ("cookie", Some("session=1")),
        ("sec-websocket-protocol", Some("chat")),
        ("connection", Some("Upgrade")),
        ("upgrade", Some("websocket")),
        ("x-forwarded-for", Some("192.0.2.1")),
        ("x-forwarded-proto", Some("http")),
        ("x-forwarded-host", Some("www.site.test")),
        ("via", Some("1.1 www.site.test")),
        ("cdn-loop", Some("www.site.test")),
        ("x-hop", None),
        ("proxy-authorization", None),
    ] {
        assert_eq!(field(name), expected, "{name}");
    }
    assert_eq!(response_head.headers()["sec-websocket-protocol"], "chat");
    assert_eq!(response_head.headers()["via"], "1.1 www.site.test");
}

#[tokio::test]
async fn origin_rejection_is_forwarded_and_connection_stays() {
    let mut between = Between::start("");
    let (mut client, _serving) = between.client();
    for _ in 0..2 {
        write(&mut client, HANDSHAKE).await;
        let mut origin = between.next_connection().await;
        head(&mut origin).await;
        // What HTTP the origin speaks, and where else it is served, is nothing to a client of ours.
        let refusal = "HTTP/1.0 403 Forbidden\r\nContent-Length: 6\r\nX-Why: origin\r\nAlt-Svc: h3=\":443\"\r\n\r\nno way";
        write(&mut origin, refusal).await;
        let response = head(&mut client).await;
        assert!(
            response.starts_with("HTTP/1.1 403 Forbidden\r\n"),
            "{response}"
        );
        assert!(response.contains("x-why: origin\r\n"), "{response}");
        assert!(
            response.contains("via: 1.0 www.site.test\r\n"),
            "{response}"
        );
        assert!(!response.contains("alt-svc"), "{response}");
        let mut body = [0; 6];
        client
            .read_exact(&mut body)
            .await
            .expect("the body arrives");
        assert_eq!(&body, b"no way");
        assert_eq!(
            between.read_available(&mut origin).await,
            "",
            "nothing else was for it"
        );
    }
    assert_eq!(counts(&between, CounterFamily::Origins), [("4xx", 2)]);
    assert_eq!(between.proxy.client_limits.open_websockets(), 0);
}

/// Its connection to the origin is in no pool: read slowly, it was one of as many as a client liked to have.
#[tokio::test]
async fn rejection_holds_permit_until_body_ends() {
    let mut between = Between::start("[websocket]\nper_client = 1\n");
    let (mut client, mut origin, _serving) = requested(&mut between).await;
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhal";
    write(&mut origin, half).await;
    head(&mut client).await;
    assert_eq!(between.proxy.client_limits.open_websockets(), 1);
    let (mut next, _serving_next) = between.client();
    write(&mut next, HANDSHAKE).await;
    let response = head(&mut next).await;
    assert!(response.starts_with("HTTP/1.1 503 "), "{response}");
    write(&mut origin, "ves").await;
    let mut body = [0; 6];
    client
        .read_exact(&mut body)
        .await
        .expect("the body arrives");
    assert_eq!(&body, b"halves");
    between.clock.advance(Duration::ZERO).await;
    assert_eq!(between.proxy.client_limits.open_websockets(), 0);
}

#[tokio::test]
async fn early_client_data_waits_for_101() {
    for agrees in [true, false] {
        let mut between = Between::start("");
        let (mut client, _serving) = between.client();
        write(&mut client, &[HANDSHAKE, HIDDEN].concat()).await;
        let mut origin = between.next_connection().await;
        let request_head = head(&mut origin).await;
        assert!(
            request_head.starts_with("GET /chat HTTP/1.1\r\n"),
            "{request_head}"
        );
        between.clock.advance(Duration::from_secs(20)).await;
        let early = origin.read_u8().now_or_never();
        assert!(early.is_none(), "nothing follows the handshake: {early:?}");
        if agrees {
            write(&mut origin, AGREED).await;
            assert!(head(&mut client).await.starts_with("HTTP/1.1 101 "));
            // They are bytes of the other protocol now, whatever they look like.
            assert_eq!(head(&mut origin).await, HIDDEN);
            continue;
        }
        write(
            &mut origin,
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        )
        .await;
        assert!(head(&mut client).await.starts_with("HTTP/1.1 404 "));
        assert_eq!(
            between.read_available(&mut origin).await,
            "",
            "the permit belongs to one client"
        );
        // A request like any other: checked, with forwarding fields, on another connection.
        let mut other = between.next_connection().await;
        let request_head = head(&mut other).await;
        assert!(
            request_head.starts_with("GET /admin HTTP/1.1\r\n"),
            "{request_head}"
        );
        assert!(
            request_head.contains("x-forwarded-for: 192.0.2.1\r\n"),
            "{request_head}"
        );
    }
}

#[tokio::test]
async fn other_protocol_is_not_a_websocket() {
    let accept = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
    let (connection, upgrade) = ("Connection: Upgrade\r\n", "Upgrade: websocket\r\n");
    for (version, fields) in [
        ("1.1", &[connection, "Upgrade: h2c\r\n", accept][..]),
        ("1.1", &[connection, "Upgrade: websocket, h2c\r\n", accept]),
        ("1.1", &[upgrade, accept]),
        ("1.1", &[connection, upgrade]),
        (
            "1.1",
            &[connection, upgrade, "Sec-WebSocket-Accept: AAAA\r\n"],
        ),
        ("1.1", &[]),
        ("1.0", &[connection, upgrade, accept]),
    ] {
        let fields = fields.concat();
        let mut between = Between::start("");
        let (mut client, mut origin, _serving) = requested(&mut between).await;
        write(
            &mut origin,
            &format!("HTTP/{version} 101 Switching Protocols\r\n{fields}\r\nbytes"),
        )
        .await;
        let response = head(&mut client).await;
        assert!(
            response.starts_with("HTTP/1.1 502 "),
            "{fields}: {response}"
        );
        let proxy_status = "proxy-status: spdy; error=http_upgrade_failed\r\n";
        assert!(response.contains(proxy_status), "{fields}: {response}");
        assert_eq!(
            counts(&between, CounterFamily::Origins),
            [("invalid-response", 1)],
            "{fields}"
        );
    }
}

#[tokio::test]
async fn unreachable_or_silent_origin_gives_an_error() {
    let mut between = Between::start("");
    let (mut client, _serving) = between.client();
    write(&mut client, HANDSHAKE).await;
    let _silent = between.next_connection().await;
    let (response, _) = between.wait(head(&mut client)).await;
    assert!(response.starts_with("HTTP/1.1 504 "), "{response}");
    assert!(
        response.contains("error=http_response_timeout"),
        "{response}"
    );

    between.origin.close();
    let (mut client, _serving) = between.client();
    write(&mut client, HANDSHAKE).await;
    let response = head(&mut client).await;
    assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
    assert!(response.contains("error=connection_refused"), "{response}");
    assert_eq!(between.proxy.client_limits.open_websockets(), 0);
}

/// Regression: one client could make all pages of a site unavailable by requesting WebSockets of an origin that has none.
#[tokio::test]
async fn failed_handshake_does_not_back_off_origin() {
    let mut between = Between::start("[upstream]\nfailures = 1\nrest_s = 5\nretries = 0\n");
    let (mut client, _serving) = between.client();
    write(&mut client, HANDSHAKE).await;
    let _silent = between.next_connection().await;
    let (response, _) = between.wait(head(&mut client)).await;
    assert!(response.starts_with("HTTP/1.1 504 "), "{response}");
    let (mut client, _serving) = between.client();
    write(&mut client, HIDDEN).await;
    let mut origin = between.next_connection().await;
    assert!(head(&mut origin).await.starts_with("GET /admin "));
    // The origin does not answer that either, and is backed off. The first page requested after that is sent as a probe.
    let (response, _) = between.wait(head(&mut client)).await;
    assert!(response.starts_with("HTTP/1.1 504 "), "{response}");
    let (mut client, _serving) = between.client();
    write(&mut client, HANDSHAKE).await;
    let response = head(&mut client).await;
    assert!(
        response.contains("error=destination_unavailable"),
        "{response}"
    );
    between.clock.advance(Duration::from_secs(6)).await;
    let (mut other, _serving_other) = between.client();
    write(&mut other, HANDSHAKE).await;
    let _silent = between.next_connection().await;
    let (mut last, _serving_last) = between.client();
    write(&mut last, HIDDEN).await;
    let mut origin = between.next_connection().await;
    assert!(head(&mut origin).await.starts_with("GET /admin "));
}

#[tokio::test]
async fn client_leaving_before_101_counts_as_error() {
    let mut between = Between::start("");
    let (client, mut origin, serving) = requested(&mut between).await;
    drop(client);
    write(&mut origin, AGREED).await;
    serving.await.expect("no panic");
    assert_eq!(
        counts(&between, CounterFamily::Responses),
        [("websocket", 1)]
    );
    assert_eq!(counts(&between, CounterFamily::WebSockets), [("error", 1)]);
    assert_eq!(between.proxy.client_limits.open_websockets(), 0);
}

#[tokio::test]
async fn idle_timeout_closes_and_ping_keeps_open() {
    let mut between = Between::start("[websocket]\nidle_timeout_s = 90\n");
    let (mut client, mut origin, serving) = open_sockets(&mut between).await;
    for _ in 0..10 {
        between.clock.advance(Duration::from_secs(80)).await;
        client
            .send(Message::Ping("".into()))
            .await
            .expect("the connection is open");
        assert!(next(&mut origin).await.is_ping());
    }
    let both = async { tokio::join!(closed(&mut client), closed(&mut origin)) };
    let (codes, took) = between.wait(both).await;
    assert_eq!(codes, (CloseCode::Away, CloseCode::Away));
    assert_eq!(took.as_secs(), 90);
    drop((client, origin));
    serving.await.expect("no panic");
    assert_eq!(counts(&between, CounterFamily::WebSockets), [("idle", 1)]);
}

#[tokio::test]
async fn shutdown_closes_both_sides_within_a_second() {
    let mut between = Between::start("");
    let (mut client, mut origin, serving) = open_sockets(&mut between).await;
    between.stop.set();
    let codes = tokio::join!(closed(&mut client), closed(&mut origin));
    assert_eq!(codes, (CloseCode::Away, CloseCode::Away));
    // One side answers, and one sends nothing any more.
    client.close(None).await.ok();
    let (served, took) = between.wait(serving).await;
    served.expect("no panic");
    assert_eq!(took.as_secs(), 1);
    assert_eq!(
        counts(&between, CounterFamily::WebSockets),
        [("shutdown", 1)]
    );
}

#[tokio::test]
async fn shutdown_does_not_split_a_message() {
    let mut between = Between::start("");
    let (mut client, mut origin, serving) = switched(&mut between).await;
    origin
        .write_all(&[0x82, 100, 1, 2, 3])
        .await
        .expect("the peer reads");
    let mut begun = [0; 5];
    client
        .read_exact(&mut begun)
        .await
        .expect("the response arrives");
    between.stop.set();
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).await.expect("a clean end");
    assert!(rest.is_empty(), "{rest:?}");
    let mut rest = Vec::new();
    origin.read_to_end(&mut rest).await.expect("a clean end");
    assert_eq!(
        rest,
        [0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe9],
        "it is between two"
    );
    drop((client, origin));
    serving.await.expect("no panic");
}

#[tokio::test]
async fn stalled_reader_is_closed() {
    let mut between = Between::start("");
    let (client, mut origin, serving) = open_sockets(&mut between).await;
    let sending = async {
        let mut sent_bytes = 0;
        while origin.send(Message::binary(vec![0; 1000])).await.is_ok() {
            sent_bytes += 1000;
        }
        sent_bytes
    };
    let (sent_bytes, took): (usize, _) = between.wait(sending).await;
    // What the pipes, hyper's buffers and the tunnel's hold, and tungstenite's own.
    assert!(
        sent_bytes < 8 * wire::PIPE_BYTES + (128 << 10),
        "{sent_bytes}"
    );
    assert_eq!(took.as_secs(), 60, "as for any client that takes nothing");
    drop(client);
    serving.await.expect("no panic");
    assert_eq!(counts(&between, CounterFamily::WebSockets), [("error", 1)]);
}

/// Regression: its pings prevented the idle timeout, and there was no other.
#[tokio::test]
async fn origin_not_reading_is_closed_despite_pings() {
    let mut between = Between::start("");
    let (mut client, mut origin, serving) = open_sockets(&mut between).await;
    let message = || Message::binary(vec![0; 1000]);
    let sending = tokio::spawn(async move { while client.send(message()).await.is_ok() {} });
    let mut seconds = 0;
    while !serving.is_finished() && seconds < 120 {
        between.clock.advance(Duration::from_secs(20)).await;
        seconds += 20;
        origin.send(Message::Ping("".into())).await.ok();
    }
    assert_eq!(seconds, 60, "as for any upload");
    serving.await.expect("no panic");
    sending.await.expect("no panic");
    assert_eq!(counts(&between, CounterFamily::WebSockets), [("error", 1)]);
}

#[tokio::test]
async fn half_closed_side_still_receives() {
    let mut between = Between::start("");
    let (mut client, mut origin, serving) = switched(&mut between).await;
    write(&mut client, "the last").await;
    client.shutdown().await.expect("the connection is open");
    assert_eq!(between.read_available(&mut origin).await, "the last");
    write(&mut origin, "and the answer").await;
    drop(origin);
    assert_eq!(between.read_available(&mut client).await, "and the answer");
    serving.await.expect("no panic");
    assert_eq!(counts(&between, CounterFamily::WebSockets), [("client", 1)]);
}

#[tokio::test]
async fn per_client_limit_gives_503() {
    let mut between = Between::start("[websocket]\nper_client = 1\n");
    let (first, origin, serving) = open_sockets(&mut between).await;
    let connect = |io| async { tokio_tungstenite::client_async("ws://www.site.test/", io).await };
    match connect(between.client().0).await {
        Err(Error::Http(response)) => {
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(response.headers()["retry-after"], "1");
        }
        other => panic!("expected 503, found {other:?}"),
    }
    let limits = counts(&between, CounterFamily::Limits);
    assert_eq!(limits, [("websocket.per_client", 1)]);
    drop((first, origin));
    serving.await.expect("no panic");
    open_sockets(&mut between).await;
}

#[tokio::test]
async fn other_upgrades_are_not_forwarded() {
    let proxied_host =
        "---[site.rewrite]\n[[site.rewrite.hosts]]\nhost = 'cdn.test'\nkinds = ['image']\n";
    let no_version = HANDSHAKE.replace("Sec-WebSocket-Version: 13\r\n", "");
    for (more, handshake, status, reason) in [
        (
            "---websocket = false\n",
            HANDSHAKE.to_owned(),
            501,
            "websocket",
        ),
        (
            proxied_host,
            HANDSHAKE.replace("/chat", "/.spdy/1/-/s/cdn.test/a.png"),
            404,
            "upgrade",
        ),
        ("", HANDSHAKE.replace("GET", "POST"), 400, "handshake"),
        (
            "",
            HANDSHAKE.replace("\r\n\r\n", "\r\nContent-Length: 3\r\n\r\nabc"),
            400,
            "handshake",
        ),
        ("", no_version, 426, "handshake"),
    ] {
        let mut between = Between::start(more);
        let (mut client, _serving) = between.client();
        write(&mut client, &handshake).await;
        let response = head(&mut client).await;
        assert!(
            response.starts_with(&format!("HTTP/1.1 {status} ")),
            "{handshake}{response}"
        );
        assert_eq!(
            counts(&between, CounterFamily::RefusedRequests),
            [(reason, 1)],
            "{handshake}"
        );
        assert!(
            between.origin.try_recv().is_err(),
            "{handshake}: no request is sent"
        );
        let names_version = response.contains("sec-websocket-version: 13\r\n");
        assert_eq!(names_version, status == 426, "{response}");
    }
}

#[tokio::test]
async fn ignored_upgrade_is_a_plain_request() {
    for (handshake, version) in [
        (HANDSHAKE.replace("HTTP/1.1", "HTTP/1.0"), "HTTP/1.0"),
        (HANDSHAKE.replace("Connection: Upgrade\r\n", ""), "HTTP/1.1"),
        (
            HANDSHAKE.replace("Connection: Upgrade", "Connection: close"),
            "HTTP/1.1",
        ),
    ] {
        let mut between = Between::start("");
        let (mut client, _serving) = between.client();
        write(&mut client, &handshake).await;
        let mut origin = between.next_connection().await;
        let request_head = head(&mut origin).await.to_ascii_lowercase();
        assert!(!request_head.contains("upgrade"), "{request_head}");
        let page = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        write(&mut origin, page).await;
        let response = head(&mut client).await;
        let status_line = format!("{version} 200 OK\r\n");
        assert!(response.starts_with(&status_line), "{response}");
    }
}

#[tokio::test]
async fn other_protocol_is_never_requested() {
    let mut between = Between::start("");
    let (mut client, _serving) = between.client();
    let handshake = HANDSHAKE.replace(
        "Upgrade: websocket",
        "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk",
    );
    write(&mut client, &handshake).await;
    let mut origin = between.next_connection().await;
    let request_head = head(&mut origin).await.to_ascii_lowercase();
    assert!(
        !request_head.contains("upgrade") && !request_head.contains("http2-settings"),
        "{request_head}"
    );
    write(&mut origin, AGREED).await;
    let response = head(&mut client).await;
    assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
}
