//! A client and a server in virtual time: the library needs no tokio runtime, and the same run gives the
//! same nanoseconds.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt;
use spdy::{Body, Instant, Priority, SharedRuntime, Version, client, server};

use crate::support::virtual_world::{VirtualTime, World, wire};

/// Loads a page and three resources over a wire of 40 ms; gives the hour of each answer, and of the end.
fn load() -> Vec<(String, Instant)> {
    let world = Arc::<World>::default();
    let runtime = SharedRuntime::new(VirtualTime(world.clone()));
    let (near, far) = wire(&world, Duration::from_millis(40));
    let log = Arc::<Mutex<Vec<(String, Instant)>>>::default();
    let record = {
        let (log, world) = (log.clone(), world.clone());
        move |what: &str| {
            log.lock()
                .expect("one thread")
                .push((what.to_owned(), world.now()));
        }
    };
    let clock = runtime.clone();
    let service = move |request: Request<Body>| {
        let clock = clock.clone();
        async move {
            if request.uri().path() == "/slow" {
                clock
                    .sleep_until(clock.now() + Duration::from_millis(100))
                    .await;
            }
            Response::new(Body::full(vec![b'x'; 100_000]))
        }
    };
    let server = server::Builder::new(Version::V31).serve(far, runtime.clone(), service);
    let record_server = record.clone();
    runtime.spawn(Box::pin(async move {
        server.await.expect("an orderly end");
        record_server("server ended");
    }));
    let builder = client::Builder::new(Version::V31);
    let (session, connection) = builder.handshake(near, runtime.clone());
    let record_client = record.clone();
    runtime.spawn(Box::pin(async move {
        connection.run().await.expect("an orderly end");
        record_client("client ended");
    }));
    runtime.spawn(Box::pin(async move {
        let get = |path: &str| {
            let request = Request::get(format!("http://example.org{path}"))
                .body(Body::empty())
                .expect("valid");
            session.request(request, Priority::HIGHEST)
        };
        let page = get("/").await.expect("a response");
        record("page head");
        assert_eq!(
            page.into_body()
                .collect()
                .await
                .expect("a body")
                .to_bytes()
                .len(),
            100_000
        );
        record("page");
        let (slow, quick) = (get("/slow"), get("/quick"));
        let quick = quick
            .await
            .expect("a response")
            .into_body()
            .collect()
            .await
            .expect("a body");
        assert_eq!(quick.to_bytes().len(), 100_000);
        record("quick");
        slow.await
            .expect("a response")
            .into_body()
            .collect()
            .await
            .expect("a body");
        record("slow");
        record(&format!(
            "ping {:?}",
            session.ping().await.expect("a response")
        ));
    }));
    world.run();
    log.lock().expect("one thread").clone()
}

#[test]
fn a_page_load_in_virtual_time_is_deterministic() {
    let first = load();
    let at = |millis| Instant::from_millis(millis);
    let expected = [
        ("page head", at(80)),
        ("page", at(80)),
        ("quick", at(160)),
        ("slow", at(260)),
        ("ping 80ms", at(340)),
        ("server ended", at(380)),
        ("client ended", at(420)),
    ];
    let expected: Vec<_> = expected.map(|(what, at)| (what.to_owned(), at)).into();
    assert_eq!(first, expected);
    for _ in 0..20 {
        assert_eq!(load(), first);
    }
}
