//! WebSockets to a site's own origin: messages, timeouts and the end of the connection. In virtual time.

use std::time::Duration;

use futures_util::SinkExt;
use http::StatusCode;
use spdy_proxy::telemetry::counters::CounterFamily;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::support::websocket::{closed, counts, next, open_sockets, switched};
use crate::support::wire::{self, Between, write};

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
