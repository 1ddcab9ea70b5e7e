//! Metrics summed over many sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{Request, Response, StatusCode};
use spdy::client::Session;
use spdy::metrics::{Metrics, Sessions, Snapshot};
use spdy::{Body, Limit, Priority, RstStatus, SharedRuntime, Version, client, server};

/// Paths are statuses; `/never` is not answered at all.
async fn respond(request: Request<Body>) -> Response<Body> {
    let path = request.uri().path().trim_start_matches('/');
    let Ok(status) = path.parse::<u16>() else {
        return std::future::pending().await;
    };
    let mut response = Response::new(Body::full(vec![b'x'; 100]));
    *response.status_mut() = StatusCode::from_u16(status).expect("a status");
    response
}

/// A session of `version` with both ends counted, and its server's end.
fn connect_with_metrics(
    metrics: &Metrics,
    version: Version,
) -> (Session, tokio::task::JoinHandle<Result<(), spdy::Error>>) {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let builder = server::Builder::new(version).metrics(metrics);
    let server_task = tokio::spawn(builder.serve(far, SharedRuntime::tokio(), respond));
    let builder = client::Builder::new(version).metrics(metrics);
    let (session, connection) = builder.handshake(near, SharedRuntime::tokio());
    connection.spawn();
    (session, server_task)
}

fn request_for(path: &str) -> Request<Body> {
    let request = Request::get(format!("http://example.org{path}"));
    request.body(Body::empty()).expect("a valid URL")
}

async fn read(session: &Session, path: &str) -> usize {
    let response = session.request(request_for(path), Priority::HIGHEST).await;
    let body = response.expect("a response").into_body();
    body.collect_up_to(1000).await.expect("a body").len()
}

fn sessions(snapshot: &Snapshot, version: Version) -> [Sessions; 2] {
    [&snapshot.client, &snapshot.server].map(|side| {
        let of_version = side
            .sessions
            .iter()
            .find(|(session_version, _)| *session_version == version);
        of_version.expect("every version").1
    })
}

#[tokio::test]
async fn both_ends_keep_equal_counts_after_the_session() {
    let metrics = Metrics::new();
    let (session, server_task) = connect_with_metrics(&metrics, Version::V31);
    for path in ["/200", "/200", "/404"] {
        assert_eq!(read(&session, path).await, 100);
    }
    let unanswered = session.request(request_for("/never"), Priority::HIGHEST);
    session.ping().await.expect("an echo");
    let living = metrics.snapshot();
    let open = Sessions { open: 1, total: 1 };
    assert_eq!(sessions(&living, Version::V31), [open; 2]);
    assert_eq!(sessions(&living, Version::V2), [Sessions::default(); 2]);
    assert_eq!(living.client.streams_open, 1);
    drop(unanswered);
    session.shutdown();
    session.closed().await;
    server_task
        .await
        .expect("no panic")
        .expect("an orderly end");
    drop(session);

    let Snapshot { client, server } = metrics.snapshot();
    for side in [&client, &server] {
        assert_eq!(side.exchanges.requests, 4);
        assert_eq!(side.exchanges.responses, [0, 2, 0, 1, 0, 0]);
        assert_eq!(side.streams_open, 0);
        let (_, sessions) = side.sessions[0];
        assert_eq!(sessions, Sessions { open: 0, total: 1 });
    }
    assert_eq!(client.round_trips.count(), 1);
    assert_eq!(client.stats.received_data_bytes, 300);
    assert_eq!(client.stats.resets_sent.of(RstStatus::CANCEL), 1);
    assert_eq!(server.stats.resets_received, client.stats.resets_sent);
    assert_eq!(server.stats.frames_received, client.stats.frames_sent);
    let frames: Vec<_> = client.stats.frames_sent.iter().collect();
    assert!(frames.contains(&("SYN_STREAM", 4)), "{frames:?}");
    assert!(frames.contains(&("RST_STREAM", 1)), "{frames:?}");
}

#[tokio::test]
async fn a_response_read_after_the_session_ended_is_counted() {
    let metrics = Metrics::new();
    let (session, server_task) = connect_with_metrics(&metrics, Version::V3);
    let response = session.request(request_for("/503"), Priority::HIGHEST);
    session.shutdown();
    session.closed().await;
    server_task
        .await
        .expect("no panic")
        .expect("an orderly end");
    // The task of the connection ends shortly after the event.
    while sessions(&metrics.snapshot(), Version::V3)[0].open > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(metrics.snapshot().client.exchanges.responses, [0; 6]);
    assert_eq!(response.await.expect("a response").status(), 503);
    let responses = metrics.snapshot().client.exchanges.responses;
    assert_eq!(responses, [0, 0, 0, 0, 1, 0]);
}

#[tokio::test]
async fn limits_are_reported_by_name() {
    let metrics = Metrics::new();
    let (near, far) = tokio::io::duplex(64 * 1024);
    let builder = server::Builder::default().max_concurrent_streams(1);
    let with_metrics = builder.metrics(&metrics);
    tokio::spawn(with_metrics.serve(far, SharedRuntime::tokio(), respond));
    let (session, connection) = client::handshake(near);
    connection.spawn();
    // Both are written before the server's SETTINGS can be read.
    let first = session.request(request_for("/never"), Priority::HIGHEST);
    let second = session
        .request(request_for("/200"), Priority::HIGHEST)
        .await;
    let status = second.expect_err("a refusal").reset_status();
    assert_eq!(status, Some(RstStatus::REFUSED_STREAM));
    let hits = metrics.snapshot().server.stats.limits;
    assert_eq!(hits.of(Limit::ConcurrentStreams), 1);
    assert_eq!(hits.to_string(), "max_concurrent_streams 1");
    drop(first);
}

/// Sessions begin and end on several threads during snapshots: a counter never falls.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn counters_never_fall() {
    let metrics = Metrics::new();
    let over = Arc::new(AtomicBool::new(false));
    let (shared_metrics, done) = (metrics.clone(), over.clone());
    let watching = std::thread::spawn(move || {
        let (mut last, mut looks) = ([0; 4], 0);
        // The last look is after all.
        let mut is_over = false;
        while !is_over {
            is_over = done.load(Ordering::Relaxed);
            let Snapshot { client, server } = shared_metrics.snapshot();
            let now = [
                client.exchanges.requests,
                client.exchanges.responses[1],
                server.stats.frames_received.total(),
                server.sessions[0].1.total,
            ];
            assert!(
                last.iter().zip(now).all(|(last, now)| *last <= now),
                "a counter decreased from {last:?} to {now:?}"
            );
            (last, looks) = (now, looks + 1);
        }
        looks
    });
    let tasks = (0..200).map(|_| {
        let metrics = metrics.clone();
        tokio::spawn(async move {
            let (session, server_task) = connect_with_metrics(&metrics, Version::V31);
            assert_eq!(read(&session, "/200").await, 100);
            drop(session);
            server_task
                .await
                .expect("no panic")
                .expect("an orderly end");
        })
    });
    for result in futures_util::future::join_all(tasks).await {
        result.expect("no panic");
    }
    over.store(true, Ordering::Relaxed);
    assert!(watching.join().expect("no counter fell") > 0);
    let Snapshot { client, server } = metrics.snapshot();
    assert_eq!(client.exchanges.responses[1], 200);
    assert_eq!(server.exchanges.responses[1], 200);
}
