//! QPACK's dynamic table over QUIC: our two ends, and peers that write their instructions by hand.

use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use spdy::body::Body;
use spdy::runtime::SharedRuntime;
use spdy_frame::priority::Priority;
use spdy_net_core::options::ServerOptions;
use spdy_testkit::clock::Clock;

use crate::support::http3::{
    CONTROL, TestServer, announced, close_code, code, headers, outcome, uni,
};
use crate::support::raw_server::{ClientServerPair, OK, connect_pair, connect_pair_with};
use crate::support::{get, read};

/// Capacity 4,096, and insertions of `:path: /1` and `:path: /2`.
const INSERTIONS: &[u8] = b"\x02\x3f\xe1\x1f\xc1\x02/1\xc1\x02/2";

/// HEADERS of a GET to localhost, whose `:path` is an entry of the dynamic table, by absolute index.
fn get_by_entry(index: u8) -> Vec<u8> {
    let required = index + 1;
    let block = [
        &[required + 1, 0x00][..],
        b"\xd1\xd7\x50\x09localhost",
        &[0x80 | (required - 1 - index)],
    ]
    .concat();
    announced(1, block.len(), &block)
}

/// SETTINGS with a table of 4,096 bytes, and 100 streams that may wait.
const SETTINGS: &[u8] = &[0x00, 0x04, 0x06, 0x01, 0x50, 0x00, 0x07, 0x40, 0x64];

/// A page that browsers request with the same headers each time.
fn page(path: &str) -> Request<Body> {
    let mut request = get(path);
    let agent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/120.0.0.0";
    let headers = request.headers_mut();
    headers.insert("user-agent", agent.parse().unwrap());
    let cookie = "sid=9f86d081884c7d659a2feaa0c55ad015; theme=dark";
    headers.insert("cookie", cookie.parse().unwrap());
    request
}

#[tokio::test]
async fn requests_and_responses_of_our_ends_take_fewer_bytes_when_repeated() {
    let answer = |request: Request<Body>| async move {
        let cookie = request.headers()["cookie"].to_str().unwrap().to_owned();
        let response = http::Response::builder().header("server", "a-server-with-a-long-name");
        response.body(Body::full(cookie)).unwrap()
    };
    let world = TestServer::serve(answer, ServerOptions::default());
    let client = world.connect().await;
    let mut sizes = Vec::new();
    let mut before = client.header_bytes();
    for nth in 0..6 {
        let response = client.send(page(&format!("/{nth}")), Priority::HIGHEST);
        let response = response.await.unwrap();
        assert_eq!(response.headers()["server"], "a-server-with-a-long-name");
        let body = read(response).await.unwrap();
        assert_eq!(body, "sid=9f86d081884c7d659a2feaa0c55ad015; theme=dark");
        let now = client.header_bytes();
        sizes.push((now.sent - before.sent, now.received - before.received));
        before = now;
    }
    let (first, last) = (sizes[0], sizes[5]);
    assert!(last.0 * 3 < first.0 && last.1 * 2 < first.1, "{sizes:?}");
}

#[tokio::test]
async fn requests_wait_for_their_insertions_in_any_order() {
    let world = TestServer::echo();
    let raw = world.raw().await;
    let _control = uni(&raw, CONTROL, false).await;
    let (second, first, literal) = (get_by_entry(1), get_by_entry(0), headers(b""));
    let waiting = async {
        tokio::join!(
            outcome(&raw, &second),
            outcome(&raw, &first),
            outcome(&raw, &literal)
        )
    };
    let inserting = async {
        // The request without a reference does not wait.
        assert_eq!(outcome(&raw, &headers(b"")).await, None);
        let mut encoder = uni(&raw, &INSERTIONS[..5], false).await;
        for byte in &INSERTIONS[5..] {
            encoder.write_all(&[*byte]).await.unwrap();
        }
        encoder
    };
    let (outcomes, _encoder) = tokio::join!(waiting, inserting);
    assert_eq!(outcomes, (None, None, None));
    // Section Acknowledgments of the two streams; an Insert Count Increment may be between them.
    let mut decoder = accept(&raw, 0x03).await;
    let mut acknowledged: Vec<u8> = Vec::new();
    while acknowledged.len() < 2 {
        let mut instruction = [0];
        decoder.read_exact(&mut instruction).await.unwrap();
        acknowledged.extend(instruction.iter().filter(|it| **it & 0x80 != 0));
    }
    assert_ne!(acknowledged[0], acknowledged[1]);
}

/// The server's unidirectional stream of a type. Its control stream is ignored.
async fn accept(connection: &quinn::Connection, kind: u8) -> quinn::RecvStream {
    loop {
        let mut stream = connection.accept_uni().await.unwrap();
        let mut first = [0];
        stream.read_exact(&mut first).await.unwrap();
        if first[0] == kind {
            return stream;
        }
    }
}

#[tokio::test]
async fn trailers_may_wait_for_their_insertions() {
    let answer = |request: Request<Body>| async move {
        let body = request.into_body().collect().await.unwrap();
        let tag = body.trailers().unwrap()["etag"].as_bytes().to_vec();
        http::Response::new(Body::full(tag))
    };
    let world = TestServer::serve(answer, ServerOptions::default());
    let raw = world.raw().await;
    let (mut send, mut recv) = raw.open_bi().await.unwrap();
    let mut head = headers(b"");
    head[7] = 0xd4; // POST
    send.write_all(&head).await.unwrap();
    // `etag: x` as entry 0.
    send.write_all(&[0x01, 0x03, 0x02, 0x00, 0x80])
        .await
        .unwrap();
    send.finish().unwrap();
    let _encoder = uni(&raw, b"\x02\x3f\xe1\x1f\xc7\x01x", false).await;
    let response = recv.read_to_end(1000).await.unwrap();
    assert!(response.ends_with(b"x"), "{response:x?}");
}

#[tokio::test]
async fn more_than_a_hundred_waiting_streams_are_a_decompression_failure() {
    let mut options = ServerOptions::default();
    options.max_streams = 200;
    let world = TestServer::serve(crate::support::echo, options);
    let raw = world.raw().await;
    let mut open = Vec::new();
    for _ in 0..101 {
        let (mut send, recv) = raw.open_bi().await.unwrap();
        if send.write_all(&get_by_entry(0)).await.is_err() {
            break;
        }
        open.push((send, recv));
    }
    assert_eq!(close_code(&raw).await, code::QPACK_DECOMPRESSION_FAILED);
}

#[tokio::test]
async fn a_section_with_a_reference_that_cannot_exist_is_a_decompression_failure() {
    for block in [
        &b"\x00\x00\x80"[..], // no insertion is required
        b"\x02\x00\x81",      // before the first entry
        b"\x02\x00\x10",      // past the required insertions
        b"\xff\x02\x00",      // a Required Insert Count that the table cannot have
        b"\x02\x81\x80",      // a negative base
    ] {
        let world = TestServer::echo();
        let raw = world.raw().await;
        let _encoder = uni(&raw, INSERTIONS, false).await;
        let reset = outcome(&raw, &announced(1, block.len(), block)).await;
        assert_eq!(reset, Some(code::QPACK_DECOMPRESSION_FAILED), "{block:x?}");
    }
}

#[tokio::test]
async fn a_request_that_waits_longer_than_the_head_timeout_is_reset() {
    let (time, mut options) = (Clock::default(), ServerOptions::default());
    options.timeouts.head_timeout = Duration::from_secs(1);
    let runtime = SharedRuntime::new(time.clone());
    let world = TestServer::serve_in(runtime, crate::support::echo, options);
    let raw = world.raw().await;
    let (blocked, literal) = (get_by_entry(0), headers(b""));
    let late = async {
        assert_eq!(outcome(&raw, &literal).await, None);
        time.push(Duration::from_secs(1));
    };
    let (reset, ()) = tokio::join!(outcome(&raw, &blocked), late);
    assert_eq!(reset, Some(code::REQUEST_INCOMPLETE));
    // Stream Cancellation of stream 0.
    let mut decoder = accept(&raw, 0x03).await;
    let mut instruction = [0];
    decoder.read_exact(&mut instruction).await.unwrap();
    assert_eq!(instruction, [0x40]);
}

#[tokio::test]
async fn a_response_that_is_dropped_cancels_its_stream() {
    let pair = connect_pair(1).await;
    let reply = pair.client.send(get("/"), Priority::HIGHEST);
    let server_side = async {
        let (mut send, _recv) = pair.server.accept_bi().await.unwrap();
        send.write_all(OK).await.unwrap();
        send
    };
    let (response, _send) = tokio::join!(reply, server_side);
    drop(response);
    let mut decoder = accept(&pair.server, 0x03).await;
    let mut instruction = [0];
    decoder.read_exact(&mut instruction).await.unwrap();
    assert_eq!(instruction, [0x40]);
}

/// Sends a request, and returns its header block.
async fn block_of(pair: &ClientServerPair) -> Vec<u8> {
    let reply = pair.client.send(page("/"), Priority::HIGHEST);
    let server_side = async {
        let (mut send, mut recv) = pair.server.accept_bi().await.unwrap();
        let request = recv.read_to_end(10_000).await.unwrap();
        send.write_all(OK).await.unwrap();
        send.finish().unwrap();
        request
    };
    let (response, request) = tokio::join!(reply, server_side);
    read(response.unwrap()).await.unwrap();
    request
}

/// Waits until the client has received the server's SETTINGS: its next request inserts.
async fn insertion(pair: &ClientServerPair) -> quinn::RecvStream {
    let requesting = async {
        loop {
            block_of(pair).await;
        }
    };
    tokio::select! {
        encoder = accept(&pair.server, 0x02) => encoder,
        () = requesting => unreachable!("requests never end"),
    }
}

#[tokio::test]
async fn a_client_inserts_after_the_settings_of_the_server() {
    let transport = quinn::TransportConfig::default();
    let pair = connect_pair_with(SETTINGS, transport).await;
    let mut encoder = insertion(&pair).await;
    let mut capacity = [0; 3];
    encoder.read_exact(&mut capacity).await.unwrap();
    assert_eq!(capacity, [0x3f, 0xe1, 0x1f]);
}

#[tokio::test]
async fn without_credit_for_an_encoder_stream_requests_have_literals() {
    let mut transport = quinn::TransportConfig::default();
    transport.max_concurrent_uni_streams(1_u32.into()); // the control stream
    let pair = connect_pair_with(SETTINGS, transport).await;
    for _ in 0..5 {
        // HEADERS, whose length has two bytes, and no required insertions.
        let request = block_of(&pair).await;
        assert_eq!((request[0], &request[3..5]), (0x01, &[0, 0][..]));
    }
}

#[tokio::test]
async fn an_encoder_stream_that_is_stopped_is_a_closed_critical_stream() {
    let pair = connect_pair_with(SETTINGS, quinn::TransportConfig::default()).await;
    let mut encoder = insertion(&pair).await;
    encoder.stop(0_u32.into()).unwrap();
    assert_eq!(close_code(&pair.server).await, code::CLOSED_CRITICAL_STREAM);
}
