//! Requests that are repeated, and addresses that are tried.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Request, Response};
use spdy::body::Body;
use spdy_client::error::Error;
use spdy_client::route::Route;
use spdy_frame::priority::Priority;
use spdy_frame::version::Version;
use spdy_net::latch::Latch;
use spdy_net::protocol::Protocol;

use crate::support::site::{HTTP, client, only, serve_responses, world};
use crate::support::{World, get, numbers, read, runtime};

#[tokio::test]
async fn a_server_restart_between_requests_is_transparent() {
    for protocol in Protocol::ALL {
        let stop = Latch::new();
        let world = World::default();
        world
            .name("a.test", &["10.0.0.1"])
            .server(HTTP, &[protocol], None, stop.clone(), numbers);
        let client = client(&world, only(protocol));
        let response = client
            .send(get("http://a.test/10"), Priority::HIGHEST)
            .await
            .unwrap();
        read(response).await.unwrap();
        stop.set();
        world.server(HTTP, &[protocol], None, Latch::new(), numbers);
        let response = client
            .send(get("http://a.test/20"), Priority::HIGHEST)
            .await;
        let response = response.unwrap_or_else(|error| panic!("{protocol}: {error}"));
        assert_eq!(read(response).await.unwrap().len(), 20, "{protocol}");
        // An HTTP/2 server sends GOAWAY twice, and still answers requests that arrive in between.
        let expected = if protocol == Protocol::Http2 {
            1..=2
        } else {
            2..=2
        };
        assert!(expected.contains(&client.stats().connections), "{protocol}");
    }
}

#[tokio::test]
async fn only_retry_safe_requests_are_retried() {
    const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    for (method, times) in [("GET", 2), ("PUT", 2), ("POST", 1)] {
        let world = World::default();
        let request_count = serve_responses(&world, &["", OK]);
        let client = client(&world, only(Protocol::Http1));
        let request = Request::builder().method(method).uri("http://a.test/");
        let request = request.body(Body::full("data")).unwrap();
        let outcome = client.send(request, Priority::HIGHEST).await;
        assert_eq!(request_count.load(Ordering::Relaxed), times, "{method}");
        assert_eq!(outcome.is_ok(), times == 2, "{method}");
    }
}

#[tokio::test]
async fn retries_are_limited() {
    let world = World::default();
    let request_count = serve_responses(&world, &[""]);
    let mut config = only(Protocol::Http1);
    config.retries = 3;
    let client = client(&world, config);
    let error = client
        .send(get("http://a.test/"), Priority::HIGHEST)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Exchange { .. }), "{error}");
    assert_eq!(request_count.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn a_refused_request_waits_until_another_has_ended() {
    // Once it was sent again at once, on the same session, and used up its attempts there.
    let (request_count, release) = (Arc::new(AtomicUsize::new(0)), Latch::new());
    let world = World::default();
    let (count, hold) = (request_count.clone(), release.clone());
    world
        .name("a.test", &["10.0.0.1"])
        .accept_at(HTTP, move |io| {
            // The server sends no SETTINGS, so the client does not know the limit.
            let builder = spdy::upgrade::server_builder().max_concurrent_streams(1);
            let (count, hold) = (count.clone(), hold.clone());
            let service = move |_: Request<Body>| {
                let (count, hold) = (count.clone(), hold.clone());
                async move {
                    count.fetch_add(1, Ordering::Relaxed);
                    hold.wait().await;
                    Response::new(Body::full("ok"))
                }
            };
            tokio::spawn(async move {
                let _ = builder
                    .serve_until(io, runtime(), service, Latch::new().wait())
                    .await;
            });
        });
    let client = client(&world, only(Protocol::Spdy(Version::V31)));
    let mut all: Vec<_> = (0..4)
        .map(|_| client.send(get("http://a.test/"), Priority::HIGHEST))
        .collect();
    for _ in 0..1_000 {
        for response in &mut all {
            assert!(futures_util::FutureExt::now_or_never(response).is_none());
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(request_count.load(Ordering::Relaxed), 1);
    release.set();
    for response in all {
        let body = read(response.await.unwrap()).await.unwrap();
        assert_eq!(body, "ok");
    }
    assert_eq!(request_count.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_refuses() {
    let world = World::default();
    world
        .name("a.test", &["10.0.0.8", "10.0.0.9", "10.0.0.1"])
        .server(HTTP, &[Protocol::Http1], None, Latch::new(), numbers);
    let client = client(&world, only(Protocol::Http1));
    let response = client
        .send(get("http://a.test/3"), Priority::HIGHEST)
        .await
        .unwrap();
    assert_eq!(
        response.extensions().get::<Route>().unwrap().address,
        HTTP.parse().unwrap()
    );
    assert_eq!(world.connects().len(), 3);
}

#[tokio::test]
async fn a_fixed_address_is_not_looked_up() {
    let (world, _) = world(&[Protocol::Http1]);
    let resolve = vec![("B.test".to_owned(), Some(80), "10.0.0.1".parse().unwrap())];
    let mut config = only(Protocol::Http1);
    config.resolve = resolve;
    let client = client(&world, config);
    assert!(
        client
            .send(get("http://b.test/3"), Priority::HIGHEST)
            .await
            .is_ok()
    );
    assert!(
        client
            .send(get("http://b.test:81/3"), Priority::HIGHEST)
            .await
            .is_err()
    );
    assert!(
        client
            .send(get("http://10.0.0.1/3"), Priority::HIGHEST)
            .await
            .is_ok()
    );
    assert_eq!(world.look_ups(), ["b.test"], "only for port 81");
}
