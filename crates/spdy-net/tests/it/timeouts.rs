//! Timeouts and keepalive of a server, over every protocol.

use std::time::Duration;

use futures_util::FutureExt;
use http::Request;
use spdy::body::Body;
use spdy::runtime::SharedRuntime;
use spdy_frame::priority::Priority;
use spdy_frame::version::Version;
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::latch::Latch;
use spdy_net::protocol::Protocol;
use spdy_net::serve::ServerOptions;
use spdy_testkit::clock::Clock;

use crate::support::{self, ALL, connection_in, echo, get, pattern, read};

#[tokio::test]
async fn a_connection_without_requests_is_ended() {
    for protocol in ALL {
        let mut options = ServerOptions::default();
        options.timeouts.idle_timeout = Duration::from_secs(5);
        let (time, client) = (Clock::default(), ClientOptions::default());
        let runtime = SharedRuntime::new(time.clone());
        let connection = connection_in(runtime, protocol, echo, options, &client).await;
        let mut closing = connection.closed();
        for _ in 0..3 {
            assert!(connection.ready().await, "{protocol}");
            time.push(Duration::from_secs(4));
            assert!(closing.as_mut().now_or_never().is_none(), "{protocol}");
            let response = connection.send(get("/1"), Priority::HIGHEST).await.unwrap();
            read(response).await.unwrap();
        }
        // The idle timeout may have started again a little after the last answer.
        while closing.as_mut().now_or_never().is_none() {
            time.push(Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_missing_request_body_times_out() {
    // Once such a request stayed open for ever, and its connection with it.
    for protocol in ALL {
        let mut options = ServerOptions::default();
        options.timeouts.read_timeout = Duration::from_secs(7);
        options.timeouts.idle_timeout = Duration::from_secs(3_600);
        let (time, client) = (Clock::default(), ClientOptions::default());
        let runtime = SharedRuntime::new(time.clone());
        let connection = connection_in(runtime, protocol, echo, options, &client).await;
        let first = futures_util::stream::iter([Ok::<_, spdy::BoxError>(http_body::Frame::data(
            pattern(10),
        ))]);
        let stuck = futures_util::StreamExt::chain(first, futures_util::stream::pending());
        let request = Request::post("http://localhost/")
            .body(Body::wrap(http_body_util::StreamBody::new(stuck)))
            .unwrap();
        let mut response = connection.send(request, Priority::HIGHEST);
        for _ in 0..3 {
            for _ in 0..100 {
                assert!(
                    (&mut response).now_or_never().is_none(),
                    "{protocol}: too early"
                );
                tokio::task::yield_now().await;
            }
            time.push(Duration::from_secs(2));
        }
        let response = loop {
            if let Some(response) = (&mut response).now_or_never() {
                break response.unwrap_or_else(|error| panic!("{protocol}: {error}"));
            }
            time.push(Duration::from_secs(1));
            tokio::task::yield_now().await;
        };
        assert_eq!(response.status(), 400, "{protocol}");
    }
}

#[tokio::test]
async fn a_client_that_reads_nothing_times_out() {
    for protocol in ALL {
        let mut options = ServerOptions::default();
        options.timeouts.write_timeout = Duration::from_secs(7);
        options.timeouts.idle_timeout = Duration::from_secs(3_600);
        let time = Clock::default();
        let (near, mut server_task) = support::serve_with_end(
            SharedRuntime::new(time.clone()),
            &[protocol],
            echo,
            None,
            options,
            Latch::new(),
        );
        let mut client = ClientOptions::default();
        client.stream_window_bytes = 64 * 1024;
        let connection = Connection::start(near, protocol, 0, &client, &support::runtime())
            .await
            .unwrap();
        // More than windows and pipes hold, and the client does not read it.
        let unread = connection
            .send(get("/20000000"), Priority::HIGHEST)
            .await
            .unwrap();
        for _ in 0..3 {
            for _ in 0..1_000 {
                tokio::task::yield_now().await;
            }
            assert!(
                (&mut server_task).now_or_never().is_none(),
                "{protocol}: too early"
            );
            time.push(Duration::from_secs(2));
        }
        // The exchange is lost; of a multiplexed connection no more than that.
        let reading = async {
            for _ in 0..20 {
                time.push(Duration::from_secs(1));
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
            }
            read(unread).await
        };
        assert!(reading.await.is_err(), "{protocol}: the whole body came");
    }
}

#[tokio::test]
async fn keepalive_pings_come_from_the_configured_side() {
    for server_pings in [true, false] {
        let (metrics, time) = (spdy::Metrics::new(), Clock::default());
        let keepalive = |is_enabled: bool| is_enabled.then_some(Duration::from_secs(30));
        let spdy = Protocol::Spdy(Version::V31);
        let mut options = ServerOptions::default();
        options.keepalive = keepalive(server_pings);
        options.spdy.metrics = Some(metrics.clone());
        let runtime = SharedRuntime::new(time.clone());
        let stop = Latch::new();
        let io = support::serve_in(runtime.clone(), &[spdy], echo, None, options, stop);
        let mut options = ClientOptions::default();
        options.keepalive = keepalive(!server_pings);
        options.spdy.metrics = Some(metrics.clone());
        let connection = Connection::start(io, spdy, 0, &options, &runtime).await;
        let connection = connection.unwrap();
        let response = connection.send(get("/10"), Priority::HIGHEST).await;
        read(response.unwrap()).await.unwrap();
        let echoes = || {
            let snapshot = metrics.snapshot();
            [snapshot.server, snapshot.client].map(|side| side.round_trips.count())
        };
        for seconds in [29, 2] {
            assert_eq!(echoes(), [0, 0]);
            time.push(Duration::from_secs(seconds));
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        }
        let expected = if server_pings { [1, 0] } else { [0, 1] };
        assert_eq!(echoes(), expected);
        assert!(!connection.is_closing());
    }
}
