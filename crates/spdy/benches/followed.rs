//! The cost of counting and tracing a request: the same hundred requests over a pipe in memory, client and
//! server on one thread, without observers, with metrics, and with subscribers of `tracing`.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use http::{Request, Response};
use spdy::client::Session;
use spdy::{Body, Metrics, Priority, SharedRuntime, client, server};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;

const REQUESTS: usize = 100;

/// A session with a server that responds with a few bytes.
fn session(metrics: Option<&Metrics>) -> Session {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (mut client_builder, mut server_builder) =
        (client::Builder::default(), server::Builder::default());
    if let Some(metrics) = metrics {
        (client_builder, server_builder) = (
            client_builder.metrics(metrics),
            server_builder.metrics(metrics),
        );
    }
    let service = |_: Request<Body>| async { Response::new(Body::from("hello")) };
    tokio::spawn(server_builder.serve(far, SharedRuntime::tokio(), service));
    let (session, connection) = client_builder.handshake(near, SharedRuntime::tokio());
    connection.spawn();
    session
}

async fn send_requests(session: &Session) {
    let responses = (0..REQUESTS).map(|_| {
        let request = Request::get("http://example.org/path").body(Body::empty());
        session.request(request.expect("the request is valid"), Priority::HIGHEST)
    });
    for response in responses.collect::<Vec<_>>() {
        let body = response.await.expect("the server responds").into_body();
        assert_eq!(
            body.collect_up_to(100)
                .await
                .expect("the body is complete")
                .len(),
            5
        );
    }
}

fn followed(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }
        .enable_all()
        .build()
        .expect("the runtime can be created");
    let _within = runtime.enter();
    let mut group = criterion.benchmark_group("spdy/followed");
    group.throughput(Throughput::Elements(REQUESTS as u64));
    let mut bench = |name: &str, metrics: Option<&Metrics>| {
        let session = session(metrics);
        group.bench_function(name, |bencher| {
            bencher.iter(|| runtime.block_on(send_requests(&session)));
        });
    };
    bench("without a subscriber", None);
    bench("by metrics", Some(&Metrics::new()));
    for (name, level) in [
        ("by a subscriber that is off", LevelFilter::INFO),
        ("by a subscriber of every span", LevelFilter::DEBUG),
    ] {
        let subscriber = tracing_subscriber::registry().with(level);
        tracing::subscriber::with_default(subscriber, || bench(name, None));
    }
    group.finish();
}

criterion_group!(benches, followed);
criterion_main!(benches);
