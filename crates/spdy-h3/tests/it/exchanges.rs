//! HTTP/3 over loopback: our two ends, each of them with the h3 crate as its peer, and peers that break the rules.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::future::join_all;
use http::{Request, Response};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use spdy::body::Body;
use spdy::runtime::SharedRuntime;
use spdy_frame::priority::Priority;
use spdy_net_core::limit::{ConnectionLimit, LimitHits};
use spdy_net_core::options::ServerOptions;
use spdy_testkit::clock::Clock;

use crate::support::http3::{
    CONTROL, LOOPBACK, TestServer, announced, close_code, code, headers, long, outcome, uni,
};
use crate::support::{echo, get, pattern, post, read};

#[tokio::test]
async fn bodies_of_every_length_are_complete_both_ways() {
    let world = TestServer::echo();
    let connection = world.connect().await;
    for len in [0, 1, 128, 10_000, 1_000_000, 5_000_000] {
        let response = connection.send(get(&format!("/{len}")), Priority::new(2));
        let response = response.await.unwrap();
        assert_eq!(response.headers()["x-protocol"], "h3");
        assert_eq!(response.headers()["x-secure"], "true");
        assert!(read(response).await.unwrap() == pattern(len), "{len}");
        let response = connection.send(post("/", pattern(len)), Priority::HIGHEST);
        let response = response.await.unwrap();
        assert!(read(response).await.unwrap() == pattern(len), "back {len}");
    }
}

#[tokio::test]
async fn a_hundred_and_fifty_exchanges_share_one_connection() {
    let world = TestServer::echo();
    let connection = world.connect().await;
    let all = (0..150).map(|at| {
        let connection = connection.clone();
        async move {
            let request = get(&format!("/{}", at * 1_000));
            let response = connection.send(request, Priority::new(at as u8 % 8)).await;
            let response = response.unwrap_or_else(|error| panic!("{at}: {error}"));
            let priority = (at % 8).to_string();
            assert_eq!(response.headers()["x-priority"], priority.as_str());
            assert!(read(response).await.unwrap() == pattern(at * 1_000), "{at}");
        }
    });
    join_all(all).await;
}

#[tokio::test]
async fn head_gets_no_body_and_handlers_get_the_complete_url() {
    let world = TestServer::echo();
    let connection = world.connect().await;
    let request = Request::head("https://localhost:8080/5?q=1%20");
    let response = connection.send(request.body(Body::empty()).unwrap(), Priority::HIGHEST);
    let response = response.await.unwrap();
    assert_eq!(
        response.headers()["x-uri"],
        "https://localhost:8080/5?q=1%20"
    );
    assert_eq!(read(response).await.unwrap().len(), 0);
}

#[tokio::test]
async fn header_blocks_are_counted_both_ways() {
    let world = TestServer::echo();
    let connection = world.connect().await;
    let response = connection.send(get("/1"), Priority::new(3)).await.unwrap();
    read(response).await.unwrap();
    let bytes = connection.header_bytes();
    // Two bytes before all fields, then GET and the scheme by number, the rest in letters.
    assert!((10..40).contains(&bytes.sent), "{bytes:?}");
    assert!((40..120).contains(&bytes.received), "{bytes:?}");
}

#[tokio::test]
async fn a_body_that_fails_on_the_server_is_an_error_for_the_client() {
    let failing = |_| async {
        let pieces = [Ok(pattern(100_000)), Err(std::io::Error::other("gone"))];
        Response::new(Body::from_stream(futures_util::stream::iter(pieces)))
    };
    let world = TestServer::serve(failing, ServerOptions::default());
    let connection = world.connect().await;
    // QUIC may lose the head too, when the stream is reset behind it.
    let exchange = async { read(connection.send(get("/"), Priority::HIGHEST).await?).await };
    assert!(exchange.await.is_err());
    assert!(!connection.is_closing(), "only one exchange failed");
}

#[tokio::test]
async fn a_stopped_server_completes_its_open_exchange_and_closes() {
    let mut world = TestServer::echo();
    let connection = world.connect().await;
    let open = connection
        .send(get("/3000000"), Priority::HIGHEST)
        .await
        .unwrap();
    world.stop.set();
    assert!(read(open).await.unwrap() == pattern(3_000_000));
    connection.closed().await;
    assert!(connection.is_closing());
    assert!(connection.send(get("/1"), Priority::HIGHEST).await.is_err());
    assert!(world.end().await.is_ok());
}

#[tokio::test]
async fn a_closing_client_ends_after_its_last_exchange() {
    let mut world = TestServer::echo();
    let connection = world.connect().await;
    let open = connection
        .send(get("/3000000"), Priority::HIGHEST)
        .await
        .unwrap();
    connection.close();
    assert!(connection.send(get("/1"), Priority::HIGHEST).await.is_err());
    assert!(read(open).await.unwrap() == pattern(3_000_000));
    connection.closed().await;
    assert!(world.end().await.is_ok());
}

#[tokio::test]
async fn the_clients_of_the_h3_crate_are_served() {
    let world = TestServer::echo();
    let raw = h3_quinn::Connection::new(world.raw().await);
    let (mut driver, mut sender) = h3::client::new(raw).await.unwrap();
    let driving = tokio::spawn(async move { poll_fn(|cx| driver.poll_close(cx)).await });
    for len in [0, 1000, 1_000_000] {
        let request = Request::post("https://localhost/").body(()).unwrap();
        let mut stream = sender.send_request(request).await.unwrap();
        let (mut up, mut down) = stream.split();
        let upload = tokio::spawn(async move {
            up.send_data(pattern(len)).await.unwrap();
            up.finish().await.unwrap();
        });
        let response = down.recv_response().await.unwrap();
        assert_eq!(response.headers()["x-protocol"], "h3");
        let mut body = Vec::new();
        while let Some(mut piece) = down.recv_data().await.unwrap() {
            body.extend_from_slice(&piece.copy_to_bytes(piece.remaining()));
        }
        upload.await.unwrap();
        assert!(body == pattern(len), "{len}");
        stream = sender
            .send_request(Request::get("https://localhost/5").body(()).unwrap())
            .await
            .unwrap();
        stream.finish().await.unwrap();
        assert_eq!(stream.recv_response().await.unwrap().status(), 200);
    }
    drop(sender);
    let _ = driving.await;
}

#[tokio::test]
async fn a_server_of_the_h3_crate_responds_to_our_client() {
    let world = TestServer::echo();
    let key = PrivateKeyDer::from_pem_slice(world.identity.key_pem().as_bytes()).unwrap();
    let mut tls = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(world.chain(), key)
        .unwrap();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let crypto = quinn::crypto::rustls::QuicServerConfig::try_from(tls).unwrap();
    let config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    let endpoint = quinn::Endpoint::server(config, LOOPBACK).unwrap();
    let address = endpoint.local_addr().unwrap();
    let server_task = tokio::spawn(async move {
        let quic = endpoint.accept().await.unwrap().await.unwrap();
        let quic = h3_quinn::Connection::new(quic);
        let mut connection = h3::server::Connection::<_, Bytes>::new(quic).await.unwrap();
        while let Ok(Some(resolver)) = connection.accept().await {
            let (request, mut stream) = resolver.resolve_request().await.unwrap();
            let mut body = Vec::new();
            while let Some(mut piece) = stream.recv_data().await.unwrap() {
                body.extend_from_slice(&piece.copy_to_bytes(piece.remaining()));
            }
            let response = Response::builder().header("x-path", request.uri().path());
            stream
                .send_response(response.body(()).unwrap())
                .await
                .unwrap();
            stream.send_data(body.into()).await.unwrap();
            stream.finish().await.unwrap();
        }
    });
    let connection = world.connect_to(address).await;
    for len in [0, 1000, 1_000_000] {
        let request = post("/there", pattern(len));
        let response = connection.send(request, Priority::HIGHEST).await.unwrap();
        assert_eq!(response.headers()["x-path"], "/there");
        assert!(read(response).await.unwrap() == pattern(len), "{len}");
    }
    connection.close();
    server_task.await.unwrap();
}

// Peers that break the rules.
#[tokio::test]
async fn a_header_block_over_the_limit_is_rejected() {
    let mut options = ServerOptions::default();
    options.max_head_bytes = 500;
    let world = TestServer::serve(echo, options);
    let raw = world.raw().await;
    // The announced length decides; no byte of the payload has to arrive.
    assert_eq!(
        outcome(&raw, &announced(1, 501, b"")).await,
        Some(code::EXCESSIVE_LOAD)
    );
    assert_eq!(
        outcome(&raw, &announced(1, 1 << 29, b"")).await,
        Some(code::EXCESSIVE_LOAD)
    );
    // The fields of `headers`: 10 + 39, 12 + 35, 19 + 32, 7 + 32, in all 186; a field "a" then has room for 281.
    let field = |len: usize| {
        let value = vec![b' '; len];
        [
            &b"\x21a\x7f"[..],
            &[(len - 127) as u8 | 0x80, ((len - 127) >> 7) as u8],
            &value,
        ]
        .concat()
    };
    let base = 7 + 3 + 32 + 7 + 5 + 32 + 10 + 9 + 32 + 5 + 2 + 32;
    let max_len = 500 - base - 33;
    assert_eq!(outcome(&raw, &headers(&field(max_len))).await, None);
    assert_eq!(
        outcome(&raw, &headers(&field(max_len + 1))).await,
        Some(code::EXCESSIVE_LOAD)
    );
    assert_eq!(
        outcome(&raw, &headers(b"")).await,
        None,
        "the connection stays open"
    );
}

#[tokio::test]
async fn a_malformed_request_is_reset_alone() {
    let world = TestServer::echo();
    let raw = world.raw().await;
    for (invalid, expected) in [
        (headers(b"\x21A\x01b"), code::MESSAGE_ERROR),
        (headers(b"\x51\x02/2"), code::MESSAGE_ERROR),
        (headers(b"\x54\x01x"), code::MESSAGE_ERROR),
        (Vec::new(), code::REQUEST_INCOMPLETE),
    ] {
        assert_eq!(
            outcome(&raw, &invalid).await,
            Some(expected),
            "{invalid:x?}"
        );
    }
    assert_eq!(outcome(&raw, &headers(b"")).await, None);
}

#[tokio::test]
async fn connection_errors_on_a_request_close_with_their_code() {
    let world = TestServer::echo();
    let behind = |bytes: &[u8]| [&headers(b""), bytes].concat();
    for (invalid, expected) in [
        (announced(0, 1, b"x"), code::FRAME_UNEXPECTED),
        (announced(2, 0, b""), code::FRAME_UNEXPECTED),
        (announced(4, 0, b""), code::FRAME_UNEXPECTED),
        (announced(5, 0, b""), code::FRAME_UNEXPECTED),
        (announced(1, 4, b"\x00\x00"), code::FRAME_ERROR),
        (
            announced(1, 3, b"\x00\x00\x80"),
            code::QPACK_DECOMPRESSION_FAILED,
        ),
        (announced(0x21, 64 * 1024 + 1, b""), code::EXCESSIVE_LOAD),
    ] {
        let raw = world.raw().await;
        assert_eq!(
            outcome(&raw, &invalid).await,
            Some(expected),
            "{invalid:x?}"
        );
        assert_eq!(close_code(&raw).await, expected, "{invalid:x?}");
    }
    let raw = world.raw().await;
    let ignored = behind(&announced(0x21, 64 * 1024, &[0; 64 * 1024]));
    assert_eq!(
        outcome(&raw, &ignored).await,
        None,
        "this amount is ignored"
    );
}

#[tokio::test]
async fn control_stream_errors_close_with_their_code() {
    let world = TestServer::echo();
    let behind = |bytes: &[u8]| [CONTROL, bytes].concat();
    for (invalid, over, expected) in [
        (vec![0x00, 0x07, 0x01, 0x00], false, code::MISSING_SETTINGS),
        (behind(&[0x04, 0x00]), false, code::FRAME_UNEXPECTED),
        (behind(&[0x00, 0x00]), false, code::FRAME_UNEXPECTED),
        (
            behind(&announced(7, 4097, b"")),
            false,
            code::EXCESSIVE_LOAD,
        ),
        (behind(&[0x07, 0x02, 0x00, 0x00]), false, code::FRAME_ERROR),
        (
            behind(&[0x07, 0x01, 0x04, 0x07, 0x01, 0x08]),
            false,
            code::ID_ERROR,
        ),
        (
            behind(&announced(0x21, 64 * 1024 + 1, b"")),
            false,
            code::EXCESSIVE_LOAD,
        ),
        (
            behind(&[0x80, 0x0f, 0x07, 0x00, 0x02, 0x02, b'i']),
            false,
            code::ID_ERROR,
        ),
        (CONTROL.to_vec(), true, code::CLOSED_CRITICAL_STREAM),
        (
            vec![0x00, 0x04, 0x02, 0x02, 0x00],
            false,
            code::SETTINGS_ERROR,
        ),
        (
            vec![0x00, 0x04, 0x04, 0x06, 0x00, 0x06, 0x00],
            false,
            code::SETTINGS_ERROR,
        ),
        (vec![0x00, 0x04, 0x01, 0x06], false, code::FRAME_ERROR),
        (vec![0x01], false, code::STREAM_CREATION_ERROR),
        (vec![0x02, 0x00], false, code::QPACK_ENCODER_STREAM_ERROR),
        (vec![0x03], true, code::CLOSED_CRITICAL_STREAM),
    ] {
        let raw = world.raw().await;
        let _open = uni(&raw, &invalid, over).await;
        assert_eq!(close_code(&raw).await, expected, "{invalid:x?}");
    }
    let raw = world.raw().await;
    let _first = uni(&raw, CONTROL, false).await;
    let _second = uni(&raw, CONTROL, false).await;
    assert_eq!(close_code(&raw).await, code::STREAM_CREATION_ERROR);
}

#[tokio::test]
async fn unknown_streams_and_frames_are_ignored() {
    let world = TestServer::echo();
    let raw = world.raw().await;
    let _control = uni(
        &raw,
        &[CONTROL, &announced(0x21, 3, b"abc")].concat(),
        false,
    )
    .await;
    let _encoder = uni(&raw, &[0x02, 0x20], false).await;
    for _ in 0..100 {
        let mut unknown = uni(&raw, &[0x21, 1, 2, 3], false).await;
        let stopped = unknown.stopped().await.unwrap();
        assert_eq!(
            stopped.map(quinn::VarInt::into_inner),
            Some(code::STREAM_CREATION_ERROR)
        );
        let _ = unknown.reset(0_u32.into());
    }
    let request = [announced(0x21, 3, b"abc"), headers(b"")].concat();
    assert_eq!(outcome(&raw, &request).await, None);
}

#[tokio::test]
async fn one_aborted_request_over_the_limit_is_abuse() {
    let waiting = |_| async { std::future::pending().await };
    let mut world = TestServer::serve(waiting, ServerOptions::default());
    let raw = world.raw().await;
    for nth in 1..=101 {
        assert!(
            raw.close_reason().is_none(),
            "ended before the limit, by {nth}"
        );
        let (mut send, mut recv) = raw.open_bi().await.unwrap();
        send.write_all(&headers(b"")).await.unwrap();
        send.reset(0x10c_u32.into()).unwrap();
        recv.stop(0x10c_u32.into()).unwrap();
    }
    assert_eq!(close_code(&raw).await, code::EXCESSIVE_LOAD);
    assert!(world.end().await.unwrap_err().is_abuse());
}

#[tokio::test]
async fn no_more_streams_are_open_at_once_than_the_server_allows() {
    let mut options = ServerOptions::default();
    options.max_streams = 3;
    let world = TestServer::serve(echo, options);
    let raw = world.raw().await;
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(raw.open_bi().await.unwrap());
    }
    let mut fourth = Box::pin(raw.open_bi());
    let patience = Duration::from_millis(50); // credit is available now, or only after a response
    assert!(tokio::time::timeout(patience, &mut fourth).await.is_err());
    let (mut send, _recv) = open.pop().unwrap();
    send.write_all(&headers(b"")).await.unwrap();
    send.finish().unwrap();
    fourth.await.unwrap();
}

#[tokio::test]
async fn a_server_allows_at_most_4096_streams_over_quic() {
    let mut options = ServerOptions::default();
    options.max_streams = 5000;
    let world = TestServer::serve(echo, options);
    let raw = world.raw().await;
    let mut open = Vec::new();
    for _ in 0..4096 {
        open.push(raw.open_bi().await.unwrap());
    }
    let patience = Duration::from_millis(50); // credit is available now, or only after a response
    assert!(tokio::time::timeout(patience, raw.open_bi()).await.is_err());
}

#[tokio::test]
async fn a_missing_head_times_out() {
    let (time, hits) = (Clock::default(), LimitHits::default());
    let mut options = ServerOptions::default();
    options.hits = hits.clone();
    let world = TestServer::serve_in(SharedRuntime::new(time.clone()), echo, options);
    let raw = world.raw().await;
    let (mut send, mut recv) = raw.open_bi().await.unwrap();
    send.write_all(&headers(b"")[..7]).await.unwrap();
    let mut reset = Box::pin(recv.received_reset());
    for second in 0.. {
        // Real datagrams take real time over loopback, and only the server's clock is pushed.
        let pause = Duration::from_millis(10);
        if let Ok(code) = tokio::time::timeout(pause, &mut reset).await {
            let code = code.unwrap().map(quinn::VarInt::into_inner);
            assert_eq!(code, Some(code::REQUEST_INCOMPLETE));
            assert!(second >= 30, "after {second} s");
            break;
        }
        time.push(Duration::from_secs(1));
    }
    assert_eq!(hits.of(ConnectionLimit::HeadTimeout), 1);
}

#[tokio::test]
async fn a_peer_may_open_at_most_eight_unidirectional_streams() {
    let world = TestServer::echo();
    let raw = world.raw().await;
    let mut open = Vec::new();
    for _ in 0..8 {
        // No byte is sent: the peer cannot know the type of the stream, or refuse it.
        open.push(raw.open_uni().await.unwrap());
    }
    let patience = Duration::from_millis(50);
    assert!(
        tokio::time::timeout(patience, raw.open_uni())
            .await
            .is_err()
    );
}

/// A peer whose SETTINGS_MAX_FIELD_SECTION_SIZE is `limit`, and its control stream, which has to stay open.
async fn raw_with_limit(
    world: &TestServer,
    limit: usize,
) -> (quinn::Connection, quinn::SendStream) {
    let raw = world.raw().await;
    let settings = [&[0x00, 0x04, 0x05, 0x06][..], &long(limit)].concat();
    let control = uni(&raw, &settings, false).await;
    (raw, control)
}

#[tokio::test]
async fn response_heads_stay_within_the_limit_of_the_client() {
    let respond = |_| async {
        let response = Response::builder().header("a", "bcd");
        response.body(Body::empty()).unwrap()
    };
    let world = TestServer::serve(respond, ServerOptions::default());
    // `:status: 200` and the field, with 32 for each (RFC 9114 §4.2.2).
    let len = 10 + 32 + 4 + 32;
    for (limit, expected) in [(len, None), (len - 1, Some(code::INTERNAL_ERROR))] {
        let (raw, _control) = raw_with_limit(&world, limit).await;
        assert_eq!(
            outcome(&raw, &headers(b"")).await,
            expected,
            "{limit} bytes"
        );
    }
}

#[tokio::test]
async fn trailers_stay_within_the_limit_of_the_peer() {
    // `:status: 200` is shorter.
    let len = "a-name".len() + "and what it has to say".len() + 32;
    let trailing = || {
        let fields = [("a-name", "and what it has to say")];
        let fields = fields.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let trailers = http_body::Frame::trailers(http::HeaderMap::from_iter(fields));
        let frames = [
            Ok::<_, std::io::Error>(http_body::Frame::data(pattern(9))),
            Ok(trailers),
        ];
        Body::wrap(http_body_util::StreamBody::new(futures_util::stream::iter(
            frames,
        )))
    };
    let respond = move |_| async move { Response::new(trailing()) };
    let world = TestServer::serve(respond, ServerOptions::default());
    for (limit, expected) in [(len, None), (len - 1, Some(code::INTERNAL_ERROR))] {
        let (raw, _control) = raw_with_limit(&world, limit).await;
        assert_eq!(
            outcome(&raw, &headers(b"")).await,
            expected,
            "{limit} bytes"
        );
    }
}

#[tokio::test]
async fn streams_with_closed_windows_hold_no_send_budget() {
    let request_count = Arc::new(AtomicUsize::new(0));
    let handler = move |_| {
        let len = match request_count.fetch_add(1, Ordering::Relaxed) {
            0..90 => 1_000_000,
            _ => 100,
        };
        async move { Response::new(Body::full(pattern(len))) }
    };
    let world = TestServer::serve(handler, ServerOptions::default());
    let mut transport = quinn::TransportConfig::default();
    transport.stream_receive_window(10_000_u32.into());
    let raw = world.raw_by(world.address, transport).await;
    let mut open = Vec::new();
    for nth in 0..90 {
        let (mut send, mut recv) = raw.open_bi().await.unwrap();
        send.write_all(&headers(b"")).await.unwrap();
        send.finish().unwrap();
        // Too little for more credit.
        let first_chunk = recv.read_chunk(10, true).await;
        assert!(
            matches!(first_chunk, Ok(Some(_))),
            "stream {nth}: {first_chunk:?}"
        );
        open.push(recv);
    }
    assert_eq!(outcome(&raw, &headers(b"")).await, None);
}
