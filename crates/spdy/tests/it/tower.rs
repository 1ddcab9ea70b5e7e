//! Tower services as servers, and a session under tower's layers.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::Path;
use axum::routing::{get, post};
use http::{Request, Response, StatusCode};
use spdy::client::{self, Session};
use spdy::{Body, Error, RstStatus};
use tokio::sync::Notify;
use tower::retry::Policy;
use tower::util::{ServiceExt, service_fn};
use tower::{Service, ServiceBuilder};

/// Bytes that the pipe between client and server holds.
const PIPE_BYTES: usize = 64 * 1024;

fn session_with<S, B>(service: S) -> Session
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<spdy::BoxError>,
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<spdy::BoxError>,
{
    let (near, far) = tokio::io::duplex(PIPE_BYTES);
    tokio::spawn(spdy::tower::serve(far, service));
    let (session, connection) = client::handshake(near);
    connection.spawn();
    session
}

fn request_for(path: &str) -> Request<Body> {
    Request::get(format!("http://example.org{path}"))
        .body(Body::empty())
        .expect("a valid URL")
}

async fn text(response: Response<Body>) -> String {
    let bytes = response.into_body().collect_up_to(1 << 20).await;
    String::from_utf8(bytes.expect("a body").to_vec()).expect("text")
}

#[tokio::test]
async fn an_axum_app_responds_over_spdy() {
    let app = Router::new()
        .route(
            "/hello/{name}",
            get(|Path(name): Path<String>| async move { format!("hello {name}") }),
        )
        .route(
            "/length",
            post(|body: axum::body::Bytes| async move { body.len().to_string() }),
        );
    let session = session_with(app);
    let names = (0..100).map(|number| {
        let mut session = session.clone();
        async move {
            let response = session.call(request_for(&format!("/hello/{number}"))).await;
            assert_eq!(
                text(response.expect("a response")).await,
                format!("hello {number}")
            );
        }
    });
    futures_util::future::join_all(names).await;
    let upload = Request::post("http://example.org/length").body(Body::full(vec![7; 300_000]));
    let upload = upload.expect("a valid URL");
    let response = session.clone().oneshot(upload).await.expect("a response");
    assert_eq!(text(response).await, "300000");
    let missing = session.clone().oneshot(request_for("/nothing")).await;
    assert_eq!(missing.expect("a response").status(), StatusCode::NOT_FOUND);
}

/// A `ConcurrencyLimit` that is called before it is ready panics, so this shows that `poll_ready` is heeded.
#[tokio::test]
async fn a_tower_limit_applies_to_all_streams_of_a_session() {
    let (active, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (active_counter, peak_counter) = (active.clone(), peak.clone());
    let service = ServiceBuilder::new()
        .concurrency_limit(3)
        .service(service_fn(move |_: Request<Body>| {
            let (active, peak) = (active_counter.clone(), peak_counter.clone());
            async move {
                peak.fetch_max(
                    active.fetch_add(1, Ordering::Relaxed) + 1,
                    Ordering::Relaxed,
                );
                for _ in 0..5 {
                    tokio::task::yield_now().await;
                }
                active.fetch_sub(1, Ordering::Relaxed);
                Ok::<_, Infallible>(Response::new(Body::empty()))
            }
        }));
    let session = session_with(service);
    let all = (0..50).map(|_| session.clone().oneshot(request_for("/")));
    for response in futures_util::future::join_all(all).await {
        assert_eq!(response.expect("a response").status(), StatusCode::OK);
    }
    assert_eq!(peak.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_service_that_fails_or_panics_loses_its_own_stream_only() {
    let session = session_with(service_fn(|request: Request<Body>| async move {
        match request.uri().path() {
            "/fails" => Err("no response to send"),
            "/panics" => panic!("on purpose"),
            _ => Ok(Response::new(Body::from("fine"))),
        }
    }));
    for path in ["/fails", "/panics"] {
        let lost = session.clone().oneshot(request_for(path)).await;
        let status = lost.expect_err(path).reset_status();
        assert_eq!(status, Some(RstStatus::INTERNAL_ERROR), "{path}");
        let response = session.clone().oneshot(request_for("/")).await;
        assert_eq!(text(response.expect("a response")).await, "fine");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tower_timeout_over_the_client_cancels_the_request() {
    /// Notifies the test when the request that it belongs to is dropped.
    struct DropNotice(Arc<Notify>);
    impl Drop for DropNotice {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let given_up = Arc::new(Notify::new());
    let notify = given_up.clone();
    let session = session_with(service_fn(move |_: Request<Body>| {
        let guard = DropNotice(notify.clone());
        async move {
            std::future::pending::<()>().await;
            drop(guard);
            Ok::<_, Infallible>(Response::new(Body::empty()))
        }
    }));
    let client = ServiceBuilder::new()
        .timeout(Duration::from_secs(3))
        .service(session.clone());
    let error = client
        .oneshot(request_for("/"))
        .await
        .expect_err("no response");
    assert!(error.is::<tower::timeout::error::Elapsed>(), "{error}");
    given_up.notified().await;
    assert_eq!(session.active_streams(), 0);
}

/// Retries requests that the peer did not process.
#[derive(Clone)]
struct RetryPolicy {
    retries_left: usize,
}

impl Policy<Request<Body>, Response<Body>, Error> for RetryPolicy {
    type Future = std::future::Ready<()>;

    fn retry(
        &mut self,
        _: &mut Request<Body>,
        result: &mut Result<Response<Body>, Error>,
    ) -> Option<Self::Future> {
        let is_retried =
            matches!(result, Err(error) if error.is_retry_safe()) && self.retries_left > 0;
        self.retries_left -= usize::from(is_retried);
        is_retried.then(|| std::future::ready(()))
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        let body = request.body().try_clone()?;
        let mut copy = Request::new(body);
        *copy.method_mut() = request.method().clone();
        *copy.uri_mut() = request.uri().clone();
        *copy.headers_mut() = request.headers().clone();
        Some(copy)
    }
}

#[tokio::test]
async fn a_tower_retry_over_the_client_resends_a_refused_request() {
    let (near, far) = tokio::io::duplex(PIPE_BYTES);
    let (mut accept, connection) = spdy::server::handshake(far);
    connection.spawn();
    let (session, connection) = client::handshake(near);
    connection.spawn();
    let refusing = tokio::spawn(async move {
        for _ in 0..2 {
            let incoming = accept.next().await.expect("a request");
            incoming.reject(RstStatus::REFUSED_STREAM);
        }
        let third_attempt = accept.next().await.expect("the third time");
        let (_, responder) = third_attempt.into_request().expect("a request");
        let response = Response::new(Body::from("at last"));
        responder.respond(response).await.expect("a client");
        accept
    });
    let client = ServiceBuilder::new()
        .retry(RetryPolicy { retries_left: 2 })
        .service(session);
    let response = client.oneshot(request_for("/")).await.expect("a response");
    assert_eq!(text(response).await, "at last");
    refusing.await.expect("no panic");
}

#[tokio::test]
async fn a_session_that_ends_is_no_longer_ready() {
    let mut session = session_with(Router::<()>::new());
    assert!(
        ServiceExt::<Request<Body>>::ready(&mut session)
            .await
            .is_ok()
    );
    session.shutdown();
    let not_ready = ServiceExt::<Request<Body>>::ready(&mut session).await;
    assert!(matches!(not_ready, Err(Error::Closing)));
}
