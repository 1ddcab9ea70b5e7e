//! Limits of clients and origins: one above each limit, its response and counter, and that other requests are served.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::StreamExt;
use http::{Method, Request, StatusCode};
use spdy::body::Body;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::telemetry::counters::CounterFamily;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};

use crate::support::fields::FRESH;
use crate::support::{
    CollectedResponse, Origin, accelerator, accelerator_of, get, respond, send_request, until,
    until_some,
};

fn limits(proxy: &Proxy) -> Vec<(&'static str, u64)> {
    proxy.telemetry.counters.read(CounterFamily::Limits)
}

/// It was refused because a limit was reached, which is no fault of the client or the origin.
fn assert_full(response: &CollectedResponse) {
    assert_eq!(
        response.status,
        StatusCode::SERVICE_UNAVAILABLE,
        "{response:?}"
    );
    let reason = response.field("proxy-status");
    assert_eq!(reason, "spdy; error=connection_limit_reached");
    assert_eq!(response.field("retry-after"), "1");
    assert_eq!(
        response.text(),
        "too many requests wait for the origin; try again soon\n"
    );
}

/// The first answer that is not refused for a limit: a finished request frees its place slightly later.
async fn patiently<F: Future<Output = CollectedResponse>>(
    attempt: impl Fn() -> F,
) -> CollectedResponse {
    until_some("there is room", async || {
        let response = attempt().await;
        let is_full = response.field("proxy-status") == "spdy; error=connection_limit_reached";
        (!is_full).then_some(response)
    })
    .await
}

/// Posts the body from `pieces`; it is answered after the end of the body.
fn post(proxy: &Arc<Proxy>, pieces: mpsc::Receiver<Bytes>) -> tokio::task::JoinHandle<StatusCode> {
    let pieces = futures_util::stream::unfold(pieces, |mut pieces| async {
        let piece = pieces.recv().await?;
        Some((Ok::<_, std::io::Error>(piece), pieces))
    });
    let request = Request::post("/upload").header("host", "www.site.test");
    let request = request.body(Body::from_stream(pieces)).expect("a request");
    let proxy = proxy.clone();
    tokio::spawn(async move { proxy.answer(request, None).await.status() })
}

#[tokio::test]
async fn uploads_use_a_limited_number_of_connections() {
    let origin = Origin::start(|_| std::future::ready(respond(&[], "hello")));
    let proxy = accelerator(
        &origin,
        "[upstream]\nconnections = 2\nuploads = 1\nqueue_timeout_s = 0\n",
    );
    let long = || Bytes::from(vec![b'x'; 20_000]);
    let (first, pieces) = mpsc::channel(4);
    first.send(long()).await.expect("the reader is alive");
    let first_status = post(&proxy, pieces);
    until("the upload is begun", || {
        origin.request_lines() == ["POST /upload"]
    })
    .await;

    let (second, pieces) = mpsc::channel(4);
    second.send(long()).await.expect("the limit is not reached");
    let refused = post(&proxy, pieces).await.expect("no panic");
    assert_eq!(refused, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(limits(&proxy), [("uploads", 1)]);
    assert_eq!(
        proxy.telemetry.counters.read(CounterFamily::Origins),
        [],
        "it did nothing wrong"
    );

    // Short bodies, and requests without a body, are accepted.
    let short = patiently(|| send_request(&proxy, Method::POST, "/short", &[], "short")).await;
    assert_eq!((short.status, short.text()), (StatusCode::OK, "hello"));
    let without = patiently(|| get(&proxy, "/a", &[])).await;
    assert_eq!(without.text(), "hello");

    drop(first);
    assert_eq!(first_status.await.expect("no panic"), StatusCode::OK);
    // The seat is free again.
    let long = "x".repeat(20_000).leak();
    let third = patiently(|| send_request(&proxy, Method::POST, "/third", &[], long)).await;
    assert_eq!(third.status, StatusCode::OK);
}

#[tokio::test]
async fn busy_connections_give_503_without_backoff() {
    let (origin, gate) = Origin::start_gated(|_| respond(&[], "hello"));
    let proxy = accelerator(
        &origin,
        "[upstream]\nconnections = 1\nqueue_timeout_s = 0\nfailures = 1\n",
    );
    let spawn_request = |target: &'static str| {
        let proxy = proxy.clone();
        tokio::spawn(async move { get(&proxy, target, &[]).await })
    };
    let first = spawn_request("/1");
    until("the first is requested", || {
        origin.request_lines() == ["GET /1"]
    })
    .await;
    for count in [1, 2] {
        assert_full(&get(&proxy, "/2", &[]).await);
        assert_eq!(limits(&proxy), [("queue", count)]);
    }
    gate.add_permits(1000);
    assert_eq!(first.await.expect("no panic").text(), "hello");
    // One failure would have been enough for it to be left alone.
    let last = patiently(|| get(&proxy, "/3", &[])).await;
    assert_eq!(last.text(), "hello");
}

#[tokio::test]
async fn body_past_fetch_timeout_is_streamed_unstored() {
    let gate = Arc::new(Semaphore::new(0));
    let permits = gate.clone();
    let origin = Origin::start(move |_| {
        let permits = permits.clone();
        let rest = futures_util::stream::once(async move {
            permits
                .acquire()
                .await
                .expect("the semaphore is never closed")
                .forget();
            Ok::<_, std::io::Error>(Bytes::from("and the rest"))
        });
        let begun = futures_util::stream::iter([Ok(Bytes::from("the beginning "))]);
        let mut response = respond(&[FRESH], "");
        *response.body_mut() = Body::from_stream(begun.chain(Box::pin(rest)));
        std::future::ready(response)
    });
    for (patience, fetches, counts) in [(0, 2, 2), (600, 1, 0)] {
        let before = origin.times("/a");
        let proxy = accelerator(&origin, &format!("[cache]\nfetch_timeout_s = {patience}\n"));
        for round in 1..=2 {
            let going = {
                let proxy = proxy.clone();
                tokio::spawn(async move { get(&proxy, "/a", &[]).await })
            };
            // The rest arrives after the timeout, or at once.
            let met = || limits(&proxy).first().map_or(0, |(_, count)| *count);
            until("the limit is met", || met() == round || patience > 0).await;
            gate.add_permits(1);
            assert_eq!(
                going.await.expect("no panic").text(),
                "the beginning and the rest"
            );
        }
        assert_eq!(origin.times("/a") - before, fetches, "after {patience} s");
        let met = limits(&proxy).first().map_or(0, |(_, count)| *count);
        assert_eq!(met, counts, "after {patience} s");
    }
}

#[tokio::test]
async fn unread_body_past_fetch_timeout_is_aborted() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let origin = listener.local_addr().expect("the listener has an address");
    let proxy = accelerator_of(&format!(
        "[cache]\nfetch_timeout_s = 0\n[[site]]\nnames = ['www.site.test']\norigin = 'http://{origin}'\n"
    ));
    let request = Request::get("/a").header("host", "www.site.test");
    let request = request.body(Body::empty()).expect("a request");
    let exchange = tokio::spawn(async move { drop(proxy.answer(request, None).await) });
    let (mut io, _) = listener.accept().await.expect("a client connects");
    let mut buffer = [0; 4096];
    let request_len = io.read(&mut buffer).await.expect("a request");
    assert!(buffer[..request_len].starts_with(b"GET /a "));
    let half = b"HTTP/1.1 200 OK\r\ncache-control: max-age=60\r\ncontent-length: 100\r\n\r\nhalf";
    io.write_all(half).await.expect("it listens");
    exchange.await.expect("no panic");
    // Else it would wait for the rest for as long as any body may be silent.
    let end = io.read(&mut buffer).await;
    assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
}

#[tokio::test]
async fn rate_limited_client_gets_429_but_still_gets_hits() {
    let origin = Origin::start(|_| std::future::ready(respond(&[FRESH], "hello")));
    let proxy = accelerator(&origin, "[cache]\nmisses_per_second = 1\n");
    let mut requests = 0;
    // Five at once; of so many more one comes within the second.
    let refused = loop {
        let response = get(&proxy, &format!("/{requests}"), &[]).await;
        if response.status != StatusCode::OK {
            break response;
        }
        requests += 1;
        assert!(requests < 1000, "no limit was reached");
    };
    assert!(requests >= 5, "{requests}");
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.field("retry-after"), "1");
    assert_eq!(limits(&proxy), [("misses_per_second", 1)]);
    assert_eq!(origin.request_lines().len(), requests);
    for _ in 0..100 {
        assert_eq!(get(&proxy, "/0", &[]).await.text(), "hello");
    }
}

#[tokio::test]
async fn get_with_empty_body_has_no_content() {
    let origin = Origin::start(|_| std::future::ready(respond(&[FRESH], "hello")));
    let proxy = accelerator(&origin, "");
    let send = |pieces: &'static [&'static str]| {
        let pieces = futures_util::stream::iter(pieces)
            .map(|piece| Ok::<_, std::io::Error>(Bytes::from(*piece)));
        let request = Request::get("/a").header("host", "www.site.test");
        let request = request.body(Body::from_stream(pieces)).expect("a request");
        proxy.answer(request, None)
    };
    for pieces in [&[][..], &[""], &["", ""]] {
        assert_eq!(send(pieces).await.status(), StatusCode::OK);
    }
    assert_eq!(origin.times("/a"), 1);
    assert_eq!(send(&["", "x"]).await.status(), StatusCode::OK);
    assert_eq!(origin.times("/a"), 2, "what comes of content is its own");
}

/// An origin that hangs up without an answer on the second request of its first connection.
async fn hangs_up_once() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("the listener has an address");
    let requests = Arc::new(AtomicUsize::new(0));
    let count = requests.clone();
    tokio::spawn(async move {
        while let Ok((mut io, _)) = listener.accept().await {
            let mut request = [0; 4096];
            while io.read(&mut request).await.is_ok_and(|len| len > 0) {
                if count.fetch_add(1, Ordering::SeqCst) == 1 {
                    break;
                }
                let _ = io
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                    .await;
            }
        }
    });
    (address, requests)
}

#[tokio::test]
async fn idempotent_request_is_retried_after_connection_close() {
    for (method, status, times) in [
        (Method::PUT, StatusCode::OK, 3),
        (Method::DELETE, StatusCode::OK, 3),
        (Method::POST, StatusCode::BAD_GATEWAY, 2),
    ] {
        let (origin, requests) = hangs_up_once().await;
        let proxy = accelerator_of(&format!(
            "[[site]]\nnames = ['www.site.test']\norigin = 'http://{origin}'\n"
        ));
        assert_eq!(get(&proxy, "/", &[]).await.text(), "ok");
        let response = send_request(&proxy, method.clone(), "/form", &[], "a=b").await;
        assert_eq!(response.status, status, "{method}");
        assert_eq!(requests.load(Ordering::SeqCst), times, "{method}");
    }
}

/// An origin that reads each request and hangs up, and its number of requests.
async fn hangs_up_always() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("the listener has an address");
    let requests = Arc::new(AtomicUsize::new(0));
    let count = requests.clone();
    tokio::spawn(async move {
        while let Ok((mut io, _)) = listener.accept().await {
            let mut request = [0; 4096];
            if io.read(&mut request).await.is_ok_and(|len| len > 0) {
                count.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    (address, requests)
}

#[tokio::test]
async fn origin_failing_one_resource_is_used_for_others() {
    let (origin, requests) = hangs_up_always().await;
    let proxy = accelerator_of(&format!(
        "[upstream]\nfailures = 2\nretries = 0\n[[site]]\nnames = ['www.site.test']\norigin = 'http://{origin}'\n"
    ));
    for times in 1..=4 {
        let response = get(&proxy, "/", &[]).await;
        assert_eq!(response.status, StatusCode::BAD_GATEWAY);
        assert_eq!(requests.load(Ordering::SeqCst), times);
    }
}

#[tokio::test]
async fn client_upload_abort_does_not_count_against_origin() {
    let origin = Origin::start(|_| std::future::ready(respond(&[], "hello")));
    let proxy = accelerator(&origin, "[upstream]\nfailures = 1\n");
    let (upload, pieces) = mpsc::channel(4);
    let long = Bytes::from(vec![b'x'; 20_000]);
    upload.send(long).await.expect("the reader is alive");
    let pieces = futures_util::stream::unfold(pieces, |mut pieces| async {
        let piece = pieces
            .recv()
            .await
            .ok_or_else(|| std::io::Error::other("gone"));
        Some((piece, pieces))
    });
    let request = Request::post("/upload").header("host", "www.site.test");
    let request = request.body(Body::from_stream(Box::pin(pieces)));
    let (request, client_proxy) = (request.expect("a request"), proxy.clone());
    let exchange = tokio::spawn(async move { client_proxy.answer(request, None).await.status() });
    until("the upload is begun", || {
        origin.request_lines() == ["POST /upload"]
    })
    .await;
    drop(upload);
    assert_eq!(exchange.await.expect("no panic"), StatusCode::BAD_REQUEST);
    assert_eq!(get(&proxy, "/", &[]).await.text(), "hello");
}

#[tokio::test]
async fn retry_budget_limits_retries() {
    let (origin, requests) = hangs_up_always().await;
    let proxy = accelerator_of(&format!(
        "[upstream]\nfailures = 0\nretries = 1\nretry_percent = 20\n[[site]]\nnames = ['www.site.test']\norigin = 'http://{origin}'\n"
    ));
    let begun = std::time::Instant::now();
    for _ in 0..100 {
        let response = get(&proxy, "/", &[]).await;
        assert_eq!(response.status, StatusCode::BAD_GATEWAY);
    }
    let again = requests.load(Ordering::SeqCst) - 100;
    // Ten, and a fifth of a hundred, and one for each second that this took.
    let seconds =
        usize::try_from(begun.elapsed().as_secs()).expect("the test takes less than an hour");
    assert!(
        (29..=30 + seconds).contains(&again),
        "{again} in {seconds} s"
    );
    let withheld = u64::try_from(100 - again).expect("it is positive");
    assert_eq!(limits(&proxy), [("retry_percent", withheld)]);
}
