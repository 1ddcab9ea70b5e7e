use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use spdy::{Body, Priority};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::support::{OnDrop, Program, in_time, session};

const PROGRAM: &str = env!("CARGO_BIN_EXE_reverse-proxy");
const PIECE: Bytes = Bytes::from_static(&[b'x'; 16 * 1024]);
const PIECES: u64 = 2048;
const QUIET: Duration = Duration::from_millis(300);

/// An origin with HTTP/1.1 whose responses `service` makes.
async fn origin<S, F>(service: S) -> SocketAddr
where
    S: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let service = service.clone();
            let service = hyper::service::service_fn(move |request| {
                let response = service(request);
                async { Ok::<_, Infallible>(response.await) }
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(socket), service),
            );
        }
    });
    address
}

async fn proxy(origin: SocketAddr) -> (Program, String) {
    Program::serve(PROGRAM, &["127.0.0.1:0", &origin.to_string()]).await
}

fn get(address: &str, path: &str) -> Request<Body> {
    Request::get(format!("http://{address}{path}"))
        .body(Body::empty())
        .expect("a valid URL")
}

#[tokio::test]
async fn the_origin_gets_the_request_and_the_client_the_response_without_hop_by_hop_headers() {
    let origin = origin(async |request: Request<Incoming>| {
        let report = format!(
            "{} {}\n{:#?}",
            request.method(),
            request.uri(),
            request.headers()
        );
        let mut response = Response::new(Body::from(report));
        for (name, value) in [
            ("connection", "x-private"),
            ("keep-alive", "timeout=5"),
            ("x-private", "1"),
            ("x-public", "2"),
        ] {
            response
                .headers_mut()
                .insert(name, value.parse().expect("a valid value"));
        }
        response
    })
    .await;
    let (_program, address) = proxy(origin).await;
    let session = session(&address).await;
    let response = in_time(session.request(get(&address, "/a?b=c"), Priority::HIGHEST))
        .await
        .expect("a response");
    assert_eq!(response.headers()["x-public"], "2");
    for name in ["connection", "keep-alive", "x-private"] {
        assert!(!response.headers().contains_key(name), "{name}");
    }
    let report = response
        .into_body()
        .collect_up_to(10_000)
        .await
        .expect("a short body");
    let report = String::from_utf8_lossy(&report).into_owned();
    assert!(report.starts_with("GET /a?b=c\n"), "{report}");
    assert!(
        report.contains(&format!("\"host\": \"{address}\"")),
        "{report}"
    );
    assert!(
        report.contains("\"x-forwarded-for\": \"127.0.0.1\""),
        "{report}"
    );
    assert!(!report.contains("transfer-encoding"), "{report}");
}

#[tokio::test]
async fn both_bodies_are_streamed_at_the_same_time() {
    let origin =
        origin(async |request: Request<Incoming>| Response::new(Body::wrap(request.into_body())))
            .await;
    let (_program, address) = proxy(origin).await;
    let session = session(&address).await;
    let (pieces, receiver) = mpsc::unbounded_channel::<Bytes>();
    let upload = stream::unfold(receiver, async |mut receiver| {
        let piece = receiver.recv().await?;
        Some((Ok::<_, Infallible>(piece), receiver))
    });
    let request = Request::post(format!("http://{address}/"))
        .body(Body::from_stream(upload))
        .expect("a valid URL");
    let mut echo = in_time(session.request(request, Priority::HIGHEST))
        .await
        .expect("a head")
        .into_body();
    for text in ["one", "two", "three"] {
        pieces.send(Bytes::from(text)).expect("the upload is read");
        assert_eq!(
            in_time(echo.receive())
                .await
                .expect("a piece")
                .expect("no error"),
            text
        );
    }
    drop(pieces);
    assert!(in_time(echo.receive()).await.is_none());
}

#[tokio::test]
async fn a_client_that_does_not_read_stops_the_origin_and_one_that_leaves_ends_it() {
    let (sent, mut progress) = watch::channel(0_u64);
    let (dropped, mut body_dropped) = mpsc::unbounded_channel();
    let origin = origin(move |_| {
        let guard = OnDrop(dropped.clone());
        let body = stream::unfold((sent.clone(), guard), async |(sent, guard)| {
            if *sent.borrow() == PIECES {
                return None;
            }
            sent.send_modify(|pieces| *pieces += 1);
            Some((Ok::<_, Infallible>(PIECE), (sent, guard)))
        });
        async { Response::new(Body::from_stream(body)) }
    })
    .await;
    let (_program, address) = proxy(origin).await;
    let session = session(&address).await;
    let response = in_time(session.request(get(&address, "/"), Priority::HIGHEST))
        .await
        .expect("a head");

    // The origin has stopped when it makes no progress for a while. Without back-pressure it would send everything.
    in_time(progress.changed()).await.expect("a body begins");
    while timeout(QUIET, progress.changed()).await.is_ok() {}
    let stopped_at = *progress.borrow();
    assert!(
        stopped_at < PIECES,
        "{stopped_at} of {PIECES} pieces were sent"
    );

    // It continues when the client reads.
    let mut body = response.into_body();
    loop {
        let piece = in_time(body.receive()).await.expect("more pieces");
        assert!(!piece.expect("no error").is_empty());
        if *progress.borrow() > stopped_at {
            break;
        }
    }
    drop(body);
    in_time(body_dropped.recv())
        .await
        .expect("the origin's body is dropped");
    assert!(*progress.borrow() < PIECES);
    assert!(session.error().is_none());
}

#[tokio::test]
async fn an_origin_that_cannot_be_reached_is_a_502_with_the_reason() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let origin = listener.local_addr().expect("an address");
    drop(listener);
    let (_program, address) = proxy(origin).await;
    let session = session(&address).await;
    let response = in_time(session.request(get(&address, "/"), Priority::HIGHEST))
        .await
        .expect("a response");
    assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
    let reason = response
        .into_body()
        .collect_up_to(1000)
        .await
        .expect("a short body");
    assert!(
        reason.starts_with(format!("cannot connect to {origin}: ").as_bytes()),
        "{reason:?}"
    );
}
