//! HTTP/1.1 `Upgrade: SPDY/3.1`, both sides: what each sends before the first frame, and how streams end.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Request, StatusCode};
use spdy::client::OpenOptions;
use spdy::upgrade::{self, Channel, Limits, Refusal, Rewind, UpgradeError, Upgraded};
use spdy::{
    Compression, Error, Frame, HeaderBlock, Instant, Priority, RstStatus, SharedRuntime, StreamId,
    Version, client, server,
};
use spdy_frame::compress::Deflater;
use spdy_frame::frame::{RstStream, SynStream};
use spdy_session::session::Session as Machine;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::support::virtual_world::{VirtualTime, World, wire};
use crate::support::{pattern, pipe, runtime};

const EXEC: &[&str] = &["v4.channel.k8s.io", "v3.channel.k8s.io"];

fn exec_request() -> Request<()> {
    Request::post("http://kubelet:10250/exec/token?x=1")
        .header("authorization", "Bearer abc")
        .body(())
        .expect("a request")
}

async fn connect(
    io: DuplexStream,
    protocols: &[&str],
) -> Result<Upgraded<DuplexStream>, UpgradeError> {
    upgrade::connect(
        io,
        &exec_request(),
        protocols,
        Limits::default(),
        &runtime(),
    )
    .await
}

/// A client's result for `response`, which is written in pieces of `size` bytes, and the request that the client sent.
async fn connect_with_response(
    response: &[u8],
    size: usize,
) -> (Result<Upgraded<DuplexStream>, UpgradeError>, String) {
    let (near, mut far) = pipe();
    let client_task = tokio::spawn(async move { connect(near, EXEC).await });
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(far.read_u8().await.expect("a request"));
    }
    for piece in response.chunks(size) {
        if far.write_all(piece).await.is_err() {
            break; // it has seen enough
        }
        tokio::task::yield_now().await;
    }
    drop(far);
    let result = client_task.await.expect("no panic");
    (result, String::from_utf8(request).expect("ascii"))
}

/// A server's result and response for `request`, where the server offers `protocols`.
async fn response_to(
    request: &[u8],
    protocols: &[&str],
) -> (Result<Upgraded<DuplexStream>, UpgradeError>, String) {
    let (mut near, far) = pipe();
    near.write_all(request).await.expect("room");
    let serve = async {
        let offer = upgrade::read_request(far, Limits::default(), &runtime()).await?;
        offer.accept(protocols).await
    };
    let result = serve.await;
    let mut response = Vec::new();
    if result.is_ok() {
        while !response.ends_with(b"\r\n\r\n") {
            response.push(near.read_u8().await.expect("a response"));
        }
    } else {
        near.read_to_end(&mut response).await.expect("a response");
    }
    (result, String::from_utf8(response).expect("ascii"))
}

fn request(lines: &[&str]) -> Vec<u8> {
    let mut head = "POST /exec/t HTTP/1.1\r\nHost: h\r\n".to_owned();
    for line in lines {
        head += line;
        head += "\r\n";
    }
    (head + "\r\n").into_bytes()
}

const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nconnection: keep-alive, UPGRADE\r\n\
                      upgrade: spdy/3.1\r\nX-Stream-Protocol-Version: v3.channel.k8s.io\r\n\r\n";

#[tokio::test]
async fn upgrade_request_matches_kubernetes_and_keeps_later_bytes() {
    let frames = [0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 2];
    let response = [SWITCH.as_bytes(), &frames].concat();
    for size in [1, 2, 7, response.len()] {
        let (result, request) = connect_with_response(&response, size).await;
        let upgraded = result.expect("a switch");
        assert_eq!(upgraded.protocol(), Some("v3.channel.k8s.io"));
        let mut rest = Vec::new();
        upgraded
            .into_io()
            .read_to_end(&mut rest)
            .await
            .expect("read");
        assert_eq!(rest, frames, "in pieces of {size}");
        assert_eq!(
            request,
            "POST /exec/token?x=1 HTTP/1.1\r\nhost: kubelet:10250\r\nconnection: Upgrade\r\n\
             upgrade: SPDY/3.1\r\ncontent-length: 0\r\nauthorization: Bearer abc\r\n\
             x-stream-protocol-version: v4.channel.k8s.io\r\nx-stream-protocol-version: v3.channel.k8s.io\r\n\r\n"
        );
    }
}

#[tokio::test]
async fn interim_responses_are_skipped() {
    let response =
        format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n{SWITCH}");
    let (result, _) = connect_with_response(response.as_bytes(), 5).await;
    assert_eq!(
        result.expect("a switch").protocol(),
        Some("v3.channel.k8s.io")
    );
}

#[tokio::test]
async fn a_refusal_has_status_headers_and_body() {
    let cases = [
        (
            "HTTP/1.1 403 Forbidden\r\nX-Accepted-Stream-Protocol-Versions: v9\r\nContent-Length: 5\r\n\r\nsorryXXX",
            403,
            "sorry",
        ),
        (
            "HTTP/1.1 302 Found\r\nLocation: http://evil/\r\nContent-Length: 0\r\n\r\n",
            302,
            "",
        ),
        (
            "HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
            500,
            "abcde",
        ),
        (
            "HTTP/1.0 404 Not Found\r\n\r\nto the end",
            404,
            "to the end",
        ),
        (
            "HTTP/1.1 200 OK\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade\r\nContent-Length: 2\r\n\r\nno",
            200,
            "no",
        ),
    ];
    for (response, code, text) in cases {
        for size in [1, response.len()] {
            match connect_with_response(response.as_bytes(), size).await.0 {
                Err(UpgradeError::Refused {
                    status,
                    body,
                    headers,
                }) => {
                    assert_eq!(
                        (status.as_u16(), &body[..]),
                        (code, text.as_bytes()),
                        "{response}"
                    );
                    let expected_headers = ["content-length", "transfer-encoding", "location"];
                    assert!(
                        code == 404
                            || expected_headers
                                .iter()
                                .any(|name| headers.contains_key(*name))
                    );
                }
                other => panic!("{response}: {other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn a_refusal_of_any_length_is_cut_at_the_limit() {
    let limit = Limits::default().refusal_bytes;
    let response = format!("HTTP/1.1 500 Oops\r\n\r\n{}", "x".repeat(limit + 1));
    match connect_with_response(response.as_bytes(), 1000).await.0 {
        Err(UpgradeError::Refused { body, .. }) => assert_eq!(body.len(), limit),
        other => panic!("{other:?}"),
    }
}

/// Found by the fuzz target `upgrade`: input of one read beyond the limit was used too, so that the body of a
/// refusal depended on the size of the reads.
#[tokio::test]
async fn a_chunked_refusal_is_the_same_with_any_read_size() {
    let limit = Limits::default().refusal_bytes;
    let chunk = format!("3\r\nabc\r\n{limit:x}\r\n{}", "x".repeat(limit));
    let response = format!("HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}");
    for size in [1, 1000, response.len()] {
        match connect_with_response(response.as_bytes(), size).await.0 {
            // 8 bytes for the first chunk, 7 for the length of the second
            Err(UpgradeError::Refused { body, .. }) => assert_eq!(body.len(), limit - 15 + 3),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_101_to_anything_else_is_no_switch() {
    let cases = [
        "HTTP/1.1 101 x\r\nUpgrade: SPDY/3.1\r\n\r\n",
        "HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        "HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v9\r\n\r\n",
        "HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\nX-Stream-Protocol-Version: v3.channel.k8s.io\r\n\r\n",
    ];
    for response in cases {
        let result = connect_with_response(response.as_bytes(), response.len())
            .await
            .0;
        assert!(
            matches!(result, Err(UpgradeError::UnexpectedSwitch { .. })),
            "{response}: {result:?}"
        );
    }
    let unnamed = "HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n";
    let result = connect_with_response(unnamed.as_bytes(), 9)
        .await
        .0
        .expect("a switch");
    assert_eq!(result.protocol(), None);
}

#[tokio::test]
async fn invalid_short_and_long_heads_are_distinct_errors() {
    let (result, _) = connect_with_response(b"\x80\x03\x00\x06\n\n", 100).await;
    assert!(matches!(result, Err(UpgradeError::Head(_))), "{result:?}");
    let (result, _) = connect_with_response(b"HTTP/1.1 101 x\r\n", 100).await;
    assert!(
        matches!(result, Err(UpgradeError::Closed { received_bytes: 16 })),
        "{result:?}"
    );
    let limit = Limits::default().head_bytes;
    let line = "HTTP/1.1 101 x\r\na: ";
    for (extra, fits) in [(0, true), (1, false)] {
        let filler = "y".repeat(limit - line.len() - 4 + extra);
        let (result, _) =
            connect_with_response(format!("{line}{filler}\r\n\r\n").as_bytes(), 4096).await;
        match result {
            Err(UpgradeError::UnexpectedSwitch { .. }) => assert!(fits),
            Err(UpgradeError::HeadTooLong { .. }) => assert!(!fits),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_request_that_cannot_be_written_is_not_sent() {
    let (near, mut far) = pipe();
    let result = connect(near, &["v4, v3"]).await;
    assert!(
        matches!(result, Err(UpgradeError::Request { .. })),
        "{result:?}"
    );
    assert_eq!(far.read(&mut [0; 1]).await.expect("an end"), 0);
    let (near, _far) = pipe();
    let nameless = Request::get("/exec").body(()).expect("a request");
    let result = upgrade::connect(near, &nameless, EXEC, Limits::default(), &runtime()).await;
    assert!(
        matches!(result, Err(UpgradeError::Request { .. })),
        "{result:?}"
    );
}

#[tokio::test]
async fn the_first_supported_offer_is_chosen_in_any_case() {
    let head = request(&[
        "connection: keep-alive, upgrade",
        "UPGRADE: h2c, spdy/3.1",
        "X-Stream-Protocol-Version: v5.channel.k8s.io",
        "X-Stream-Protocol-Version: v3.channel.k8s.io, v4.channel.k8s.io",
        "Content-Length: 0",
    ]);
    let with_frames = [&head[..], b"\x80\x03"].concat();
    let (result, response) = response_to(&with_frames, EXEC).await;
    let upgraded = result.expect("a switch");
    assert_eq!(
        upgraded.protocol(),
        Some("v3.channel.k8s.io"),
        "the client's order decides"
    );
    assert_eq!(
        response,
        "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: SPDY/3.1\r\n\
         x-stream-protocol-version: v3.channel.k8s.io\r\n\r\n"
    );
    assert_eq!(
        &upgraded.into_io().into_parts().0[..],
        b"\x80\x03",
        "the first frame arrived with the request"
    );
}

#[tokio::test]
async fn a_server_refuses_with_400_and_403_as_apimachinery_does() {
    let up = ["Connection: Upgrade", "Upgrade: SPDY/3.1"];
    let offer = "X-Stream-Protocol-Version: v4.channel.k8s.io";
    let cases: &[(&[&str], &str)] = &[
        (&[up[0], offer], "400"),
        (&[up[1], offer], "400"),
        (&["Connection: close", up[1], offer], "400"),
        (&[up[0], "Upgrade: websocket", offer], "400"),
        (&up, "400"),
        (&[up[0], up[1], "X-Stream-Protocol-Version: ,"], "400"),
        (&[up[0], up[1], offer, "Content-Length: 1"], "400"),
        (&[up[0], up[1], offer, "Transfer-Encoding: chunked"], "400"),
        (&[up[0], up[1], "X-Stream-Protocol-Version: v9"], "403"),
    ];
    for (lines, code) in cases {
        let (result, response) = response_to(&request(lines), EXEC).await;
        assert!(
            matches!(result, Err(UpgradeError::Offer(_))),
            "{lines:?}: {result:?}"
        );
        assert!(
            response.starts_with(&format!("HTTP/1.1 {code} ")),
            "{lines:?}: {response}"
        );
        let accepted = EXEC.iter().all(|name| {
            response.contains(&format!("x-accepted-stream-protocol-versions: {name}\r\n"))
        });
        assert_eq!(accepted, *code == "403", "{response}");
    }
    let (_, response) = response_to(b"PUT / HTTP/1.1\r\n\r\n", EXEC).await;
    assert!(response.starts_with("HTTP/1.1 405 "), "{response}");
    assert!(response.contains("\r\nallow: GET, POST\r\n"), "{response}");
    let (_, response) = response_to(
        b"GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n",
        &[],
    )
    .await;
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
    let (_, response) = response_to(b"\x80\x03\x00\x01\r\n\r\n", EXEC).await;
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
    let (result, _) = response_to(&request(&up), &[]).await;
    assert_eq!(
        result
            .expect("no sub-protocol is offered or required")
            .protocol(),
        None
    );
}

#[tokio::test]
async fn a_request_head_over_a_limit_gets_431() {
    let limits = Limits::default();
    let over_bytes = request(&[&format!("a: {}", "y".repeat(limits.head_bytes))]);
    let over_lines = request(&vec!["a: b"; limits.header_lines]);
    for head in [over_bytes, over_lines] {
        let (result, response) = response_to(&head, EXEC).await;
        assert!(result.is_err());
        assert!(response.starts_with("HTTP/1.1 431 "), "{response}");
    }
    let fits = request(&vec!["a: b"; limits.header_lines - 1]);
    let (_, response) = response_to(&fits, EXEC).await;
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
}

#[tokio::test]
async fn the_callers_refusal_is_written_as_given() {
    let (mut near, far) = pipe();
    near.write_all(&request(&[])).await.expect("room");
    let offer = upgrade::read_request(far, Limits::default(), &runtime())
        .await
        .expect("a request");
    assert_eq!(offer.request().uri().path(), "/exec/t");
    offer
        .refuse(&Refusal::new(StatusCode::NOT_FOUND, "no such token"))
        .await
        .expect("written");
    let mut response = String::new();
    near.read_to_string(&mut response)
        .await
        .expect("a response");
    assert!(
        response.starts_with("HTTP/1.1 404 Not Found\r\n"),
        "{response}"
    );
    assert!(response.ends_with("\r\n\r\nno such token\n"), "{response}");
}

#[test]
fn a_slow_upgrade_head_times_out() {
    let world = Arc::<World>::default();
    let runtime = SharedRuntime::new(VirtualTime(world.clone()));
    let (near, far) = wire(&world, Duration::from_millis(1));
    let (near_error, far_error) = (Arc::default(), Arc::default());
    let store = |slot: &Arc<std::sync::Mutex<Option<UpgradeError>>>, error| {
        *slot.lock().expect("one thread") = Some(error);
    };
    // The server waits for a blank line that never comes, the client for an answer.
    let (slot, task_runtime) = (Arc::clone(&far_error), runtime.clone());
    runtime.spawn(Box::pin(async move {
        let result = upgrade::read_request(
            Rewind::new(Bytes::from_static(b"GET"), far),
            Limits {
                timeout: Duration::from_secs(60),
                ..Limits::default()
            },
            &task_runtime,
        )
        .await;
        store(
            &slot,
            result
                .map(|_| ())
                .expect_err("the request is never complete"),
        );
    }));
    let (slot, task_runtime) = (Arc::clone(&near_error), runtime.clone());
    runtime.spawn(Box::pin(async move {
        let result = upgrade::connect(
            tokio::io::join(near, tokio::io::sink()),
            &exec_request(),
            EXEC,
            Limits::default(),
            &task_runtime,
        )
        .await;
        store(&slot, result.map(|_| ()).expect_err("no response"));
    }));
    world.run();
    let near_error = near_error
        .lock()
        .expect("one thread")
        .take()
        .expect("an end");
    assert!(
        matches!(near_error, UpgradeError::TimedOut { after } if after == Duration::from_secs(30)),
        "{near_error}"
    );
    let far_error = far_error
        .lock()
        .expect("one thread")
        .take()
        .expect("an end");
    assert!(
        matches!(far_error, UpgradeError::Closed { .. }),
        "{far_error}"
    );
}

/// An answer without a body was read until the timeout, and then not reported.
#[test]
fn a_refusal_without_body_is_reported_at_once() {
    let cases = [
        ("204 No Content\r\n\r\n", 204, "", 0),
        ("304 Not Modified\r\ncontent-length: 9\r\n\r\n", 304, "", 0),
        (
            "403 Forbidden\r\ncontent-length: 9\r\n\r\nsor",
            403,
            "sor",
            30,
        ),
        ("404 Not Found\r\n\r\nno such", 404, "no such", 30),
    ];
    for (response, code, text, seconds) in cases {
        let world = Arc::<World>::default();
        let runtime = SharedRuntime::new(VirtualTime(world.clone()));
        let (near, mut far) = wire(&world, Duration::from_millis(1));
        let response = format!("HTTP/1.1 {response}");
        runtime.spawn(Box::pin(async move {
            far.write_all(response.as_bytes()).await.expect("room");
            while far.read(&mut [0; 512]).await.is_ok_and(|len| len > 0) {}
        }));
        let outcome = Arc::<std::sync::Mutex<Option<_>>>::default();
        let (slot, task_runtime) = (Arc::clone(&outcome), runtime.clone());
        runtime.spawn(Box::pin(async move {
            let result = upgrade::connect(
                near,
                &exec_request(),
                EXEC,
                Limits::default(),
                &task_runtime,
            )
            .await;
            let error = result.map(|_| ()).expect_err("no switch");
            *slot.lock().expect("one thread") = Some((error, task_runtime.now()));
        }));
        world.run();
        let outcome = outcome.lock().expect("one thread").take();
        let (error, at) = outcome.expect("an end");
        assert_eq!(at.as_nanos() / 1_000_000_000, seconds, "{code}");
        match error {
            UpgradeError::Refused { status, body, .. } => {
                assert_eq!((status.as_u16(), &body[..]), (code, text.as_bytes()));
            }
            other => panic!("{code}: {other}"),
        }
    }
}

/// Two sessions behind an upgrade, the client's and what the server accepts.
async fn pair() -> (client::Session, server::Accept) {
    let (near, far) = pipe();
    let server_task = tokio::spawn(async move {
        let offer = upgrade::read_request(far, Limits::default(), &runtime())
            .await
            .expect("a request");
        let upgraded = offer.accept(EXEC).await.expect("a switch");
        let (accept, connection) =
            upgrade::server_builder().handshake(upgraded.into_io(), runtime());
        connection.spawn();
        accept
    });
    let upgraded = connect(near, EXEC).await.expect("a switch");
    let (session, connection) = upgrade::client_builder().handshake(upgraded.into_io(), runtime());
    connection.spawn();
    (session, server_task.await.expect("no panic"))
}

async fn open(session: &client::Session, accept: &mut server::Accept) -> (Channel, Channel) {
    let headers = HeaderBlock::from_iter([("streamtype", "stdout")]);
    let near = session
        .open(headers, OpenOptions::default())
        .await
        .expect("a stream");
    let incoming = accept.next().await.expect("a stream");
    let far = incoming.accept_raw(&HeaderBlock::new()).expect("a stream");
    let mut near = Channel::new(near);
    assert!(near.reply().await.expect("a reply").is_empty());
    (near, Channel::new(far))
}

#[tokio::test]
async fn no_window_stops_a_transfer_either_way() {
    let (session, mut accept) = pair().await;
    let (mut near, mut far) = open(&session, &mut accept).await;
    let payload = pattern(3_000_000);
    for _ in 0..2 {
        let writer = tokio::spawn({
            let payload = payload.clone();
            async move {
                far.write_all(&payload).await.expect("written");
                far
            }
        });
        let mut received = vec![0; payload.len()];
        near.read_exact(&mut received).await.expect("read");
        assert!(received == payload);
        (near, far) = (writer.await.expect("no panic"), near);
    }
}

#[tokio::test]
async fn a_channel_that_is_dropped_loses_nothing_and_leaves_nothing() {
    let (session, mut accept) = pair().await;
    let (mut near, mut far) = open(&session, &mut accept).await;
    let payload = pattern(1_000_000);
    let writer = tokio::spawn({
        let payload = payload.clone();
        async move {
            far.send(payload).await.expect("sent");
            far.end(); // with what the session holds still unsent
        }
    });
    let mut received = Vec::new();
    near.read_to_end(&mut received).await.expect("an end");
    assert!(
        received == payload,
        "{} bytes of {}",
        received.len(),
        payload.len()
    );
    writer.await.expect("no panic");
    drop(near);
    let handle = accept.handle();
    handle.shutdown();
    handle.closed().await;
    assert!(handle.error().is_none(), "{:?}", handle.error());
    assert_eq!((session.active_streams(), handle.active_streams()), (0, 0));
}

#[tokio::test]
async fn cancel_reads_as_the_end_and_any_other_reset_as_a_fault() {
    for status in [RstStatus::CANCEL, RstStatus::INTERNAL_ERROR] {
        let (session, mut accept) = pair().await;
        let (mut near, mut far) = open(&session, &mut accept).await;
        let (mut other_near, other_far) = open(&session, &mut accept).await;
        far.send(Bytes::from_static(b"all there is"))
            .await
            .expect("sent");
        assert_eq!(
            near.receive().await.expect("data").expect("no error"),
            "all there is"
        );
        far.reset(status);
        other_far.reset(status);
        let mut rest = Vec::new();
        let read_result = near.read_to_end(&mut rest).await;
        let received = other_near.receive().await;
        if status == RstStatus::CANCEL {
            assert_eq!(read_result.expect("an end"), 0);
            assert!(received.is_none());
        } else {
            assert!(read_result.is_err());
            let error = received.expect("an error").expect_err("reset");
            assert!(matches!(error, Error::ResetByPeer { .. }), "{error}");
        }
    }
}

#[tokio::test]
async fn a_server_sends_nothing_before_the_first_client_frame() {
    let (mut near, far) = pipe();
    let head = request(&["Connection: Upgrade", "Upgrade: SPDY/3.1"]);
    near.write_all(&head).await.expect("room");
    let offer = upgrade::read_request(far, Limits::default(), &runtime())
        .await
        .expect("a request");
    let upgraded = offer.accept(&[]).await.expect("a switch");
    let (accept, connection) = upgrade::server_builder().handshake(upgraded.into_io(), runtime());
    let connection_task = tokio::spawn(connection.run());
    // A PING of ours makes it speak: its echo must then be the first thing behind the 101.
    near.write_all(&[0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1])
        .await
        .expect("room");
    let mut response = Vec::new();
    while !response.ends_with(b"\r\n\r\n") {
        response.push(near.read_u8().await.expect("a head"));
    }
    let mut echo = [0; 12];
    near.read_exact(&mut echo).await.expect("an echo");
    assert_eq!(echo, [0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1]);
    drop((near, accept));
    connection_task
        .await
        .expect("no panic")
        .expect("an orderly end");
}

/// `kubectl port-forward` resets a stream for each connection that it closes: the session outlives as many as are
/// allowed, and not one more.
#[test]
fn one_reset_more_than_the_limit_in_ten_seconds_ends_the_session() {
    let mut builder = upgrade::server_builder();
    let mut session = Machine::new(builder.config_mut().clone(), Instant::ZERO);
    let mut deflater = Deflater::new(Version::V31, Compression::Zlib(0));
    let headers = HeaderBlock::from_iter([("streamtype", "data")]);
    let mut open_and_reset = |number: u32| {
        let stream_id = StreamId::new(2 * number + 1);
        let (mut block, mut wire) = (BytesMut::new(), BytesMut::new());
        deflater.deflate(&headers, &mut block);
        let syn = Frame::SynStream(SynStream {
            stream_id,
            associated_to: StreamId::ZERO,
            priority: Priority::HIGHEST,
            unidirectional: false,
            fin: false,
            block: block.freeze(),
        });
        let status = RstStatus::CANCEL;
        let reset = Frame::RstStream(RstStream { stream_id, status });
        syn.encode(Version::V31, &mut wire);
        reset.encode(Version::V31, &mut wire);
        session.handle_input(Instant::ZERO, &wire);
        while session.poll_event().is_some() {}
        session.is_closing()
    };
    for number in 0..upgrade::MAX_RESETS {
        assert!(!open_and_reset(number), "after {} resets", number + 1);
    }
    assert!(open_and_reset(upgrade::MAX_RESETS));
    assert_eq!(
        session.stats().limits.to_string(),
        "flood_aborted_streams 1"
    );
}
