//! The client of HTTP/1.1 `Upgrade: SPDY/3.1`: its request, and which responses are a switch, a refusal or an error.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use spdy::SharedRuntime;
use spdy::upgrade::{self, Limits, Rewind, UpgradeError, Upgraded};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::support::upgrade::{EXEC, connect, exec_request};
use crate::support::virtual_world::{VirtualTime, World, wire};
use crate::support::{pipe, runtime};

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

#[test]
fn a_slow_upgrade_head_times_out() {
    let world = Arc::<World>::default();
    let runtime = SharedRuntime::new(VirtualTime(world.clone()));
    let (near, far) = wire(&world, Duration::from_millis(1));
    let (near_error, far_error) = (Arc::default(), Arc::default());
    let store = |slot: &Arc<std::sync::Mutex<Option<UpgradeError>>>, error| {
        *slot.lock().expect("one thread") = Some(error);
    };
    // The server waits for a blank line that never arrives, the client for a response.
    let (slot, task_runtime) = (Arc::clone(&far_error), runtime.clone());
    runtime.spawn(Box::pin(async move {
        let result = upgrade::read_request(
            Rewind::new(Bytes::from_static(b"GET"), far),
            {
                let mut limits = Limits::default();
                limits.timeout = Duration::from_secs(60);
                limits
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
