//! Pushes that wait for a request to claim them, in virtual time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt;
use spdy::client::{PushInfo, PushLimits, PushStats, Session};
use spdy::server::{PushForm, Pusher};
use spdy::{
    Body, Direction, Frame, Instant, Limit, Observe, ObservedFrame, Priority, SharedRuntime,
    Version, client, server,
};

use crate::support::virtual_world::{VirtualTime, World, wire};

/// A push: path, headers, bytes.
type Push = (&'static str, &'static [(&'static str, &'static str)], usize);

/// Openings and resets in both directions, as the client sees them.
#[derive(Clone, Default)]
struct Wire(Arc<Mutex<Vec<(Instant, String)>>>);

impl Observe for Wire {
    fn seen(&self, observed: &ObservedFrame<'_>) {
        let arrow = match observed.direction {
            Direction::Sent => '>',
            Direction::Received => '<',
        };
        let text = match observed.frame {
            Frame::SynStream(syn) => format!("{arrow} SYN {}", syn.stream_id),
            Frame::RstStream(rst) => format!("{arrow} RST {} {}", rst.stream_id, rst.status),
            Frame::GoAway(_) => format!("{arrow} GOAWAY"),
            _ => return,
        };
        self.0.lock().unwrap().push((observed.at, text));
    }
}

impl Wire {
    fn frames(&self) -> Vec<String> {
        let log = self.0.lock().unwrap();
        log.iter().map(|(_, text)| text.clone()).collect()
    }
}

/// How a world is set up.
struct Setting {
    version: Version,
    form: PushForm,
    limits: PushLimits,
    pushes: &'static [Push],
}

impl Setting {
    fn of(pushes: &'static [Push]) -> Self {
        Self {
            version: Version::V31,
            form: PushForm::TwoBlocks,
            limits: PushLimits::default(),
            pushes,
        }
    }

    /// Runs `client` against a server that pushes beside `/page`, over a wire of 20 ms.
    fn run<F>(self, client: impl FnOnce(Session, SharedRuntime) -> F) -> Wire
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let world = Arc::<World>::default();
        let runtime = SharedRuntime::new(VirtualTime(world.clone()));
        let (near, far) = wire(&world, Duration::from_millis(20));
        let (pushes, spawner) = (self.pushes, runtime.clone());
        let service = move |request: Request<Body>| {
            if request.uri().path() == "/page" {
                push_all(&request, pushes, &spawner);
            }
            let path = request.uri().path().to_owned();
            async move { Response::new(Body::from(path.into_bytes())) }
        };
        let builder = server::Builder::new(self.version).push_form(self.form);
        let server = builder.serve(far, runtime.clone(), service);
        runtime.spawn(Box::pin(async move { server.await.unwrap() }));
        let wire = Wire::default();
        let builder = client::Builder::new(self.version)
            .observer(Arc::new(wire.clone()))
            .claim_pushes(self.limits);
        let (session, connection) = builder.handshake(near, runtime.clone());
        runtime.spawn(Box::pin(async move { connection.run().await.unwrap() }));
        let done = Arc::<Mutex<bool>>::default();
        let (acting, end) = (client(session, runtime.clone()), done.clone());
        runtime.spawn(Box::pin(async move {
            acting.await;
            *end.lock().unwrap() = true;
        }));
        world.run();
        assert!(
            *done.lock().unwrap(),
            "the client finished: {:?}",
            wire.frames()
        );
        wire
    }
}

fn push_all(request: &Request<Body>, pushes: &'static [Push], runtime: &SharedRuntime) {
    let pusher = request.extensions().get::<Pusher>().unwrap();
    for (path, headers, bytes) in pushes {
        let mut builder = Response::builder();
        for (name, value) in *headers {
            builder = builder.header(*name, *value);
        }
        let response = builder.body(Body::full(vec![b'x'; *bytes])).unwrap();
        let query = request.uri().query();
        let query = query.map_or(String::new(), |query| format!("?{query}"));
        let request = Request::get(format!("http://a.test{path}{query}"))
            .body(())
            .unwrap();
        let sending = pusher
            .push_response(&request, Priority::LOWEST, response)
            .unwrap();
        runtime.spawn(Box::pin(async move { drop(sending.await) }));
    }
}

fn get(path: &str, headers: &[(&'static str, &'static str)]) -> Request<Body> {
    let mut request = Request::get(format!("http://a.test{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::empty()).unwrap()
}

/// Status, bytes, and whether it was pushed.
async fn fetch(session: &Session, request: Request<Body>) -> (u16, usize, bool) {
    read(session.request(request, Priority::HIGHEST).await.unwrap()).await
}

async fn read(response: Response<Body>) -> (u16, usize, bool) {
    let pushed = response.extensions().get::<PushInfo>().is_some();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap();
    (status, body.to_bytes().len(), pushed)
}

const PAGE: (u16, usize, bool) = (200, 5, false);

#[test]
fn a_request_for_a_pushed_url_uses_the_push() {
    for version in Version::ALL {
        for form in [
            PushForm::TwoBlocks,
            PushForm::VersionTwice,
            PushForm::OneBlock,
        ] {
            let setting = Setting {
                version,
                form,
                ..Setting::of(&[("/style.css", &[], 300_000), ("/empty", &[], 0)])
            };
            let wire = setting.run(async |session, _| {
                assert_eq!(fetch(&session, get("/page", &[])).await, PAGE);
                for (path, bytes) in [("/style.css", 300_000), ("/empty", 0)] {
                    let result = fetch(&session, get(path, &[])).await;
                    assert_eq!(result, (200, bytes, true), "{path}");
                }
                // A push answers once.
                assert_eq!(fetch(&session, get("/empty", &[])).await, (200, 6, false));
                let mut expected = PushStats::default();
                expected.accepted = 2;
                expected.claimed = 2;
                assert_eq!(session.push_stats(), expected);
            });
            let expected = ["> SYN 1", "< SYN 2", "< SYN 4", "> SYN 3"];
            assert_eq!(wire.frames()[..4], expected, "{version} {form:?}");
        }
    }
}

#[test]
fn a_request_with_other_selecting_headers_is_sent() {
    let pushes: &[Push] = &[("/a", &[], 10), ("/b", &[("vary", "accept")], 10)];
    let wire = Setting::of(pushes).run(async |session, _| {
        let page = get("/page", &[("cookie", "id=1"), ("accept", "text/html")]);
        assert_eq!(fetch(&session, page).await, PAGE);
        for (path, headers) in [
            ("/a", &[("cookie", "id=1"), ("range", "bytes=0-1")][..]),
            ("/a", &[("cookie", "id=1"), ("if-none-match", "\"x\"")]),
            ("/a", &[("cookie", "id=2")]),
            ("/a?", &[("cookie", "id=1")]),
            ("/b", &[("cookie", "id=1"), ("accept", "text/css")]),
        ] {
            let (_, _, pushed) = fetch(&session, get(path, headers)).await;
            assert!(!pushed, "{path} {headers:?}");
        }
        let head = Request::head("http://a.test/a").header("cookie", "id=1");
        let head = head.body(Body::empty()).unwrap();
        assert_eq!(fetch(&session, head).await, (200, 0, false));
        for (path, accept) in [("/a", "image/png"), ("/b", "text/html")] {
            let request = get(path, &[("cookie", "id=1"), ("accept", accept)]);
            assert_eq!(fetch(&session, request).await, (200, 10, true), "{path}");
        }
    });
    let request_count = wire
        .frames()
        .iter()
        .filter(|text| text.starts_with("> SYN"))
        .count();
    assert_eq!(request_count, 7, "the page, five others, and HEAD");
}

#[test]
fn an_unclaimed_push_is_cancelled_after_the_timeout() {
    let pushes: &[Push] = &[
        ("/soon", &[], 1_000_000),
        ("/never", &[], 1_000_000),
        ("/small", &[], 9),
    ];
    let setting = Setting {
        limits: {
            let mut raised = PushLimits::default();
            raised.claim_timeout = Duration::from_secs(3);
            raised
        },
        ..Setting::of(pushes)
    };
    let wire = setting.run(async |session, runtime| {
        assert_eq!(fetch(&session, get("/page", &[])).await, PAGE);
        runtime
            .sleep_until(runtime.now() + Duration::from_secs(2))
            .await;
        assert_eq!(
            fetch(&session, get("/soon", &[])).await,
            (200, 1_000_000, true)
        );
        runtime
            .sleep_until(runtime.now() + Duration::from_secs(2))
            .await;
        assert_eq!(fetch(&session, get("/never", &[])).await, (200, 6, false));
        let stats = session.push_stats();
        assert_eq!((stats.accepted, stats.claimed, stats.cancelled), (3, 1, 2));
        assert_eq!(session.stats().limits.of(Limit::UnclaimedTimeout), 2);
    });
    let log = wire.0.lock().unwrap();
    let resets: Vec<_> = log
        .iter()
        .filter(|(_, text)| text.contains("RST"))
        .collect();
    let [(at, text)] = resets[..] else {
        panic!("{resets:?}");
    };
    assert_eq!(text, "> RST 4 CANCEL");
    assert_eq!(
        at.as_nanos(),
        3_040_000_000,
        "three seconds after the push arrived"
    );
}

#[test]
fn one_push_over_the_limit_is_refused_one_byte_over_is_cancelled() {
    let setting = Setting {
        limits: {
            let mut raised = PushLimits::default();
            raised.streams = 2;
            raised
        },
        ..Setting::of(&[("/a", &[], 1), ("/b", &[], 1)])
    };
    setting.run(async |session, _| {
        assert_eq!(fetch(&session, get("/page", &[])).await, PAGE);
        assert_eq!(session.take_pushes().len(), 2);
        assert_eq!(fetch(&session, get("/page", &[])).await, PAGE);
        assert_eq!(
            session.push_stats().accepted,
            4,
            "the claimed pushes have made room"
        );
        // Two wait, all of their bytes there: no open stream, and yet no more room for two others.
        assert_eq!(fetch(&session, get("/page?2", &[])).await, PAGE);
        assert_eq!(session.push_stats().refused, 2);
        assert_eq!(session.stats().limits.of(Limit::UnclaimedPushes), 2);
    });

    for (bytes, cancelled) in [(50_000, 0), (49_999, 1)] {
        let setting = Setting {
            limits: {
                let mut raised = PushLimits::default();
                raised.bytes = bytes;
                raised
            },
            ..Setting::of(&[
                ("/a", &[], 20_000),
                ("/b", &[], 20_000),
                ("/c", &[], 10_000),
            ])
        };
        setting.run(async move |session, runtime| {
            assert_eq!(fetch(&session, get("/page", &[])).await, PAGE);
            runtime
                .sleep_until(runtime.now() + Duration::from_secs(1))
                .await;
            assert_eq!(session.push_stats().cancelled, cancelled, "{bytes}");
            let hits = session.stats().limits.of(Limit::UnclaimedBytes);
            assert_eq!(u64::from(hits), cancelled, "{bytes}");
        });
    }
}

/// Those that had come whole were taken for cancelled requests that are still worked on, of which 100 may be.
#[test]
fn pushes_wait_up_to_the_limit() {
    let mut limits = PushLimits::default();
    limits.streams = 150;
    let setting = Setting {
        limits,
        ..Setting::of(&[("/a", &[], 1)])
    };
    setting.run(async |session, _| {
        for nth in 0..150 {
            let page = get(&format!("/page?{nth}"), &[]);
            assert_eq!(fetch(&session, page).await, PAGE);
        }
        assert_eq!(session.push_stats().accepted, 150);
    });
}

/// The handshake put the limits' own in their place.
#[test]
fn a_later_stream_limit_overrides_that_of_the_push_limits() {
    let mut builder = client::Builder::new(Version::V31).claim_pushes(PushLimits::default());
    let config = builder.config_mut();
    assert_eq!(config.max_concurrent_streams, 100);
    assert_eq!(config.settings_window_bytes, Some(65_536));
    config.max_concurrent_streams = 7;
    config.settings_window_bytes = Some(70_000);
    let world = Arc::<World>::default();
    let runtime = SharedRuntime::new(VirtualTime(world.clone()));
    let (near, _far) = wire(&world, Duration::ZERO);
    let entries_sent = Arc::<Mutex<Vec<_>>>::default();
    let builder = builder.observer(Arc::new(SettingsLog(entries_sent.clone())));
    let (session, connection) = builder.handshake(near, runtime.clone());
    runtime.spawn(Box::pin(async move { drop(connection.run().await) }));
    world.run();
    assert_eq!(*entries_sent.lock().unwrap(), [(4, 7), (7, 70_000)]);
    drop(session);
}

/// Settings that the client sent.
struct SettingsLog(Arc<Mutex<Vec<(u32, u32)>>>);

impl Observe for SettingsLog {
    fn seen(&self, observed: &ObservedFrame<'_>) {
        if let (Direction::Sent, Frame::Settings(settings)) = (observed.direction, observed.frame) {
            let entries = settings.entries.iter();
            let entries = entries.map(|entry| (entry.id.0, entry.value));
            self.0.lock().unwrap().extend(entries);
        }
    }
}

#[test]
fn a_push_of_a_requested_or_pushed_url_is_refused() {
    let pushes: &[Push] = &[
        ("/asked", &[], 100_000),
        ("/twice", &[], 100_000),
        ("/twice", &[], 100_000),
        ("/page", &[], 100_000),
    ];
    let wire = Setting::of(pushes).run(async |session, _| {
        let page = session.request(get("/page", &[]), Priority::HIGHEST);
        let exchange = session.request(get("/asked", &[]), Priority::HIGHEST);
        assert_eq!(read(page.await.unwrap()).await, PAGE);
        assert_eq!(read(exchange.await.unwrap()).await, (200, 6, false));
        assert_eq!(session.push_stats().refused, 3);
    });
    let frames = wire.frames();
    let refusals: Vec<_> = frames
        .iter()
        .filter(|text| text.contains("REFUSED"))
        .collect();
    let expected = [2, 6, 8].map(|id| format!("> RST {id} REFUSED_STREAM"));
    assert_eq!(refusals, expected.iter().collect::<Vec<_>>());
}

#[test]
fn a_session_without_handles_does_not_wait_for_claims() {
    let wire = Setting::of(&[("/big", &[], 1_000_000)]).run(async |session, _| {
        assert_eq!(fetch(&session, get("/page", &[])).await, PAGE);
    });
    let log = wire.0.lock().unwrap();
    let (at, last) = log.last().unwrap();
    assert!(last.ends_with("GOAWAY"), "{log:?}");
    assert!(at.as_nanos() < 200_000_000, "{log:?}");
}

/// It was cancelled by the server before its head came: the request that claimed it is sent after all.
#[test]
fn a_claimed_push_that_fails_is_requested() {
    let world = Arc::<World>::default();
    let runtime = SharedRuntime::new(VirtualTime(world.clone()));
    let (near, far) = wire(&world, Duration::from_millis(20));
    let (mut accept, server_connection) =
        server::Builder::new(Version::V31).handshake(far, runtime.clone());
    runtime.spawn(Box::pin(
        async move { server_connection.run().await.unwrap() },
    ));
    let clock = runtime.clone();
    runtime.spawn(Box::pin(async move {
        let (_, page) = accept.next().await.unwrap().into_request().unwrap();
        let request = Request::get("http://a.test/a").body(()).unwrap();
        let push = page.push(&request, Priority::LOWEST).unwrap();
        page.respond(Response::new(Body::full("/page")))
            .await
            .unwrap();
        clock
            .sleep_until(clock.now() + Duration::from_secs(1))
            .await;
        drop(push); // INTERNAL_ERROR
        let (request, responder) = accept.next().await.unwrap().into_request().unwrap();
        assert_eq!(request.uri().path(), "/a");
        responder
            .respond(Response::new(Body::full("asked")))
            .await
            .unwrap();
        assert!(accept.next().await.is_none());
    }));
    let builder = client::Builder::new(Version::V31).claim_pushes(PushLimits::default());
    let (session, connection) = builder.handshake(near, runtime.clone());
    runtime.spawn(Box::pin(async move { connection.run().await.unwrap() }));
    let results = Arc::<Mutex<Vec<_>>>::default();
    let log = results.clone();
    runtime.spawn(Box::pin(async move {
        for path in ["/page", "/a"] {
            let result = fetch(&session, get(path, &[])).await;
            log.lock().unwrap().push(result);
        }
    }));
    world.run();
    assert_eq!(*results.lock().unwrap(), [PAGE, (200, 5, false)]);
}

/// A push is claimed when only its URL is known; a later head that contradicts the claim still counts.
#[test]
fn a_head_that_comes_after_the_claim_must_match_the_request_too() {
    for (status, vary, uses_push) in [
        (200, "cookie", true),
        (200, "accept", false),
        (200, "*", false),
        (206, "cookie", false),
        (304, "cookie", false),
    ] {
        let world = Arc::<World>::default();
        let runtime = SharedRuntime::new(VirtualTime(world.clone()));
        let (near, far) = wire(&world, Duration::from_millis(20));
        let builder = server::Builder::new(Version::V31).push_form(PushForm::TwoBlocks);
        let (mut accept, server_connection) = builder.handshake(far, runtime.clone());
        runtime.spawn(Box::pin(
            async move { server_connection.run().await.unwrap() },
        ));
        let clock = runtime.clone();
        runtime.spawn(Box::pin(async move {
            let (_, page) = accept.next().await.unwrap().into_request().unwrap();
            let request = Request::get("http://a.test/a").body(()).unwrap();
            let push = page.push(&request, Priority::LOWEST).unwrap();
            let response = Response::new(Body::full("/page"));
            page.respond(response).await.unwrap();
            let later = clock.now() + Duration::from_secs(1);
            clock.sleep_until(later).await;
            let response = Response::builder().status(status).header("vary", vary);
            let body = if status == 304 { "" } else { "pushed" };
            // It may be cancelled on its way.
            let _ = push.respond(response.body(Body::full(body)).unwrap()).await;
            while let Some(stream) = accept.next().await {
                let (_, responder) = stream.into_request().unwrap();
                let response = Response::new(Body::full("asked"));
                responder.respond(response).await.unwrap();
            }
        }));
        let builder = client::Builder::new(Version::V31).claim_pushes(PushLimits::default());
        let (session, connection) = builder.handshake(near, runtime.clone());
        runtime.spawn(Box::pin(async move { connection.run().await.unwrap() }));
        let results = Arc::<Mutex<Vec<_>>>::default();
        let log = results.clone();
        runtime.spawn(Box::pin(async move {
            for (path, accept) in [("/page", "text/html"), ("/a", "text/css")] {
                let result = fetch(&session, get(path, &[("accept", accept)])).await;
                log.lock().unwrap().push(result);
            }
        }));
        world.run();
        let expected = if uses_push {
            (200, 6, true)
        } else {
            (200, 5, false)
        };
        assert_eq!(
            *results.lock().unwrap(),
            [PAGE, expected],
            "{status} {vary}"
        );
    }
}
