//! Our HTTP/3 client, and servers that break the rules or do what is rare. What they send is written out; the types of
//! frames are of RFC 9114 §7.2.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join;
use futures_util::stream::{self, Stream, StreamExt};
use http::{Method, Request};
use spdy::body::Body;
use spdy::runtime::SharedRuntime;
use spdy_frame::priority::Priority;
use spdy_net_core::error::Retry;
use spdy_testkit::clock::Clock;
use tokio::task::JoinHandle;

use crate::support::raw_server::{ClientServerPair, OK, connect_pair, connect_pair_in};
use crate::support::{get, read, runtime};

/// DATA of one byte.
const DATA: &[u8] = &[0x00, 0x01, b'x'];
/// H3_MESSAGE_ERROR.
const MESSAGE_ERROR: u64 = 0x10e;

/// H3_ID_ERROR.
const ID_ERROR: u64 = 0x108;

/// H3_EXCESSIVE_LOAD.
const EXCESSIVE_LOAD: u64 = 0x107;
/// H3_REQUEST_CANCELLED.
const REQUEST_CANCELLED: u64 = 0x10c;

fn request(method: Method) -> Request<Body> {
    let mut request = get("/");
    *request.method_mut() = method;
    request
}

#[tokio::test]
async fn a_response_that_allows_no_body_is_an_error_with_one() {
    let not_modified = &[0x01, 0x03, 0x00, 0x00, 0xda];
    let no_content = &[0x01, 0x04, 0x00, 0x00, 0xff, 0x01];
    let pair = connect_pair(100).await;
    for (method, head) in [
        (Method::HEAD, OK),
        (Method::GET, not_modified),
        (Method::GET, no_content),
    ] {
        for body in [&[], DATA] {
            let exchange = pair.client.send(request(method.clone()), Priority::HIGHEST);
            let server_side = async {
                let (mut send, _recv) = pair.server.accept_bi().await.unwrap();
                send.write_all(&[head, body].concat()).await.unwrap();
                send.finish().unwrap();
                send.stopped().await.unwrap()
            };
            let reading = async {
                let response = exchange.await.unwrap();
                let status = response.status();
                (status, read(response).await.map(|body| body.len()))
            };
            let (stopped, (status, body_len)) = tokio::join!(server_side, reading);
            match body {
                [] => assert_eq!((stopped, body_len.unwrap()), (None, 0), "{status}"),
                _ => assert!(body_len.is_err(), "{status} with {body_len:?}"),
            }
            let code = stopped.map(quinn::VarInt::into_inner);
            assert!(code.is_none_or(|code| code == MESSAGE_ERROR), "{code:x?}");
        }
    }
    drop(pair.control);
}

#[tokio::test]
async fn dropping_a_response_stops_its_upload() {
    let pair = connect_pair(100).await;
    for is_whole in [false, true] {
        let (up, body) = tokio::sync::mpsc::unbounded_channel();
        let body = stream::unfold(body, |mut body| async {
            body.recv().await.map(|piece| (piece, body))
        });
        let mut request = request(Method::POST);
        *request.body_mut() = Body::from_stream(body);
        up.send(Ok::<_, std::io::Error>(Bytes::from_static(b"x")))
            .unwrap();
        let exchange = pair.client.send(request, Priority::HIGHEST);
        let server_side = async {
            let (mut send, recv) = pair.server.accept_bi().await.unwrap();
            send.write_all(OK).await.unwrap();
            is_whole.then(|| send.finish().unwrap());
            (send, recv)
        };
        let (response, (_send, mut recv)) = tokio::join!(exchange, server_side);
        let response = response.unwrap();
        if is_whole {
            // Servers may answer first and read on.
            assert_eq!(read(response).await.unwrap().len(), 0);
            up.send(Ok(Bytes::from_static(b"y"))).unwrap();
            drop(up);
            assert!(recv.read_to_end(1000).await.unwrap().ends_with(b"y"));
        } else {
            drop(response);
            let code = recv.received_reset().await.unwrap().unwrap();
            assert_eq!(code.into_inner(), REQUEST_CANCELLED);
        }
    }
}

#[tokio::test]
async fn one_interim_head_over_the_limit_is_an_error() {
    let pair = connect_pair(100).await;
    let early = [0x01, 0x03, 0x00, 0x00, 0xd8]; // `:status: 103`, by the static table
    for heads in [16, 17] {
        let exchange = pair.client.send(get("/"), Priority::HIGHEST);
        let server_side = async {
            let (mut send, mut recv) = pair.server.accept_bi().await.unwrap();
            send.write_all(&[early.repeat(heads), OK.to_vec()].concat())
                .await
                .unwrap();
            send.finish().unwrap();
            (send.stopped().await.unwrap(), recv.read_to_end(1000).await)
        };
        let client_side = async { read(exchange.await?).await };
        let (body, (stopped, _)) = tokio::join!(client_side, server_side);
        let code = stopped.map(quinn::VarInt::into_inner);
        match heads {
            16 => assert_eq!(body.unwrap().len(), 0),
            _ => assert!(body.is_err() && code.is_none_or(|code| code == EXCESSIVE_LOAD)),
        }
    }
}

#[tokio::test]
async fn after_goaway_rejected_requests_are_retry_safe() {
    let mut pair = connect_pair(2).await;
    let sends = [(); 3].map(|()| pair.client.send(get("/"), Priority::HIGHEST));
    // The third has no stream, and gets none as long as the first two are open.
    let [first, second, third] = sends;
    let going = async {
        let (mut send, _first) = pair.server.accept_bi().await.unwrap();
        let _second = pair.server.accept_bi().await.unwrap();
        pair.control.write_all(&[0x07, 0x01, 0x04]).await.unwrap();
        send.write_all(OK).await.unwrap();
        send.finish().unwrap();
        std::future::pending::<()>().await;
    };
    let exchanges = join(first, join(second, third));
    let (first, (second, third)) = tokio::select! { it = exchanges => it, () = going => panic!() };
    assert_eq!(first.unwrap().status(), 200);
    for lost in [second, third] {
        assert_eq!(lost.unwrap_err().retry, Retry::Always);
    }
    assert!(pair.client.is_closing());
}

#[tokio::test]
async fn a_request_without_a_stream_is_retry_safe_after_a_loss() {
    let pair = connect_pair(1).await;
    let [first, second] = [(); 2].map(|()| pair.client.send(get("/"), Priority::HIGHEST));
    let losing = async {
        let open = pair.server.accept_bi().await.unwrap();
        pair.server.close(0x100_u32.into(), b"");
        drop(open);
    };
    let ((first, second), ()) = tokio::join!(join(first, second), losing);
    assert_eq!(first.unwrap_err().retry, Retry::IfIdempotent);
    assert_eq!(second.unwrap_err().retry, Retry::Always);
}

#[tokio::test]
async fn a_goaway_without_a_request_stream_id_ends_the_connection() {
    let mut pair = connect_pair(1).await;
    pair.control.write_all(&[0x07, 0x01, 0x03]).await.unwrap();
    match pair.server.closed().await {
        quinn::ConnectionError::ApplicationClosed(close) => {
            assert_eq!(close.error_code.into_inner(), ID_ERROR);
        }
        other => panic!("{other}"),
    }
}

/// Reads about `bytes` of what lies on `streams`, each in its turn; of what does not come at once, nothing.
async fn take(streams: &mut [quinn::RecvStream], mut bytes: usize) {
    let mut piece = vec![0; 1024];
    let mut empty_streams = 0;
    while bytes > 0 && empty_streams < streams.len() {
        streams.rotate_left(1);
        let len = piece.len().min(bytes);
        let reading = streams[0].read(&mut piece[..len]);
        let reading = futures_util::FutureExt::now_or_never(reading);
        match reading {
            Some(Ok(Some(len))) => (bytes, empty_streams) = (bytes - len, 0),
            _ => empty_streams += 1,
        }
    }
}

/// Each had too little by itself, and was given up although the server took all the time.
#[tokio::test]
async fn uploads_sharing_a_window_time_out_only_without_progress() {
    let mut transport = quinn::TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(100_u32.into())
        .receive_window((64_u32 * 1024).into())
        .stream_receive_window((1_u32 << 20).into())
        .max_idle_timeout(None);
    let time = Clock::default();
    let pair = connect_pair_in(SharedRuntime::new(time.clone()), transport).await;
    let mut uploads: Vec<_> = (0..60)
        .map(|_| Request::post("https://localhost/").body(Body::full(vec![7; 1 << 20])))
        .map(|request| pair.client.send(request.unwrap(), Priority::HIGHEST))
        .map(|upload| tokio::spawn(async move { upload.await.expect_err("no response arrives") }))
        .collect();
    let (mut streams, mut sends) = (Vec::new(), Vec::new());
    let mut pass = async |bytes: usize| {
        let accepting = async {
            loop {
                let (send, recv) = pair.server.accept_bi().await.unwrap();
                streams.push(recv);
                sends.push(send); // dropped, they would be ended
            }
        };
        // Datagrams take real time.
        let _ = tokio::time::timeout(Duration::from_millis(10), accepting).await;
        take(&mut streams, bytes).await;
        time.push(Duration::from_secs(1));
    };
    for second in 0..150 {
        pass(12 * 1024).await; // 200 bytes of each
        let ended_count = uploads.iter().filter(|upload| upload.is_finished()).count();
        assert_eq!(ended_count, 0, "after {second} s");
    }
    let upload = loop {
        if let Some(nth) = uploads.iter().position(JoinHandle::is_finished) {
            break uploads.remove(nth);
        }
        pass(0).await;
    };
    let error = upload.await.expect("no panic").to_string();
    assert!(error.starts_with("h3: the peer accepted "), "{error}");
}

/// What the server takes of each upload that it reads, bytes, until that is `in_all`; the first `unread` it leaves lying.
async fn shares(
    pair: &ClientServerPair,
    uploads: usize,
    unread: usize,
    in_all: usize,
) -> Vec<usize> {
    let _uploads_in_progress: Vec<_> = (0..uploads)
        .map(|_| Request::post("https://localhost/").body(Body::full(vec![7; 4 << 20])))
        .map(|request| pair.client.send(request.unwrap(), Priority::HIGHEST))
        .map(tokio::spawn)
        .collect();
    let (mut senders, mut unread_streams, mut pieces) =
        (Vec::new(), Vec::new(), stream::SelectAll::new());
    let mut shares = vec![0; uploads];
    while senders.len() < uploads || shares.iter().sum::<usize>() < in_all {
        tokio::select! {
            accepted = pair.server.accept_bi(), if senders.len() < uploads => {
                let (number, (send, recv)) = (senders.len(), accepted.unwrap());
                senders.push(send); // dropped, it would be ended
                if number < unread {
                    unread_streams.push(recv);
                } else {
                    pieces.push(Box::pin(lengths(recv).map(move |len| (number, len))));
                }
                shares.fill(0); // the earlier streams did not share
            }
            Some((nth, len)) = pieces.next() => shares[nth] += len,
        }
    }
    shares.split_off(unread)
}

/// The lengths of the pieces received on `recv`, bytes.
fn lengths(recv: quinn::RecvStream) -> impl Stream<Item = usize> {
    stream::unfold(recv, |mut recv| async {
        let piece = recv.read_chunk(usize::MAX, true).await.unwrap();
        Some((piece.expect("there is more").bytes.len(), recv))
    })
}

/// QUIC wakes the last that found the window closed first: the second of three had nothing for ever. And where all had turns, the
/// same one had three times as much as another of those.
#[tokio::test]
async fn uploads_sharing_a_window_alternate_past_unread_ones() {
    const WINDOW: u32 = 64 * 1024;
    let mut all = Vec::new();
    for (uploads, unread, stream_window) in
        [(3, 0, 2 * WINDOW), (4, 1, 24 * 1024), (6, 1, 24 * 1024)]
    {
        let mut transport = quinn::TransportConfig::default();
        transport
            .max_concurrent_bidi_streams(100_u32.into())
            .receive_window(WINDOW.into())
            .stream_receive_window(stream_window.into());
        let pair = connect_pair_in(runtime(), transport).await;
        all.push(shares(&pair, uploads, unread, 40 * WINDOW as usize).await);
    }
    for shares in &all {
        let least = shares.iter().sum::<usize>() / shares.len() * 4 / 5;
        let is_shared = shares.iter().all(|share| *share >= least);
        assert!(is_shared, "bytes of each: {all:?}");
    }
}
