//! A client as its users see it: bodies, tower, timings, header bytes, the end.

use std::time::Duration;

use futures_util::future::join_all;
use http::Response;
use spdy::body::Body;
use spdy_client::error::Error;
use spdy_client::timing::Timings;
use spdy_frame::priority::Priority;
use spdy_frame::version::Version;
use spdy_net::protocol::Protocol;
use tower::ServiceExt;

use crate::support::site::{client, only, world};
use crate::support::{get, read};

#[tokio::test]
async fn unread_bodies_do_not_block_others_over_any_protocol() {
    // SPDY/2 has no windows: with 10 MiB unread nothing more is read of its sessions.
    let has_windows = |protocol: &Protocol| *protocol != Protocol::Spdy(Version::V2);
    for protocol in Protocol::ALL.into_iter().filter(has_windows) {
        let (world, mut config) = world(&[protocol]);
        config.protocols = vec![protocol];
        config.http1_connections = 31;
        let client = client(&world, config);
        let fetch = |bytes| client.send(get(&format!("https://a.test/{bytes}")), Priority::HIGHEST);
        let unread = join_all((0..30).map(|_| fetch(1_500_000))).await;
        let next = async { read(fetch(5_000_000).await.expect("a head")).await };
        let next = tokio::time::timeout(Duration::from_secs(30), next).await;
        let next = next.unwrap_or_else(|_| panic!("{protocol}: the request waits for others"));
        assert_eq!(next.expect("a whole body").len(), 5_000_000, "{protocol}");
        assert!(unread.iter().all(Result::is_ok), "{protocol}");
    }
}

#[tokio::test]
async fn tower_layers_work_over_the_pool() {
    let (world, config) = world(&[Protocol::Spdy(Version::V31)]);
    let client = client(&world, config);
    let service = tower::ServiceBuilder::new()
        .concurrency_limit(2)
        .timeout(Duration::from_secs(3600))
        .service(client.clone());
    let responses = (0..10).map(|at| {
        service
            .clone()
            .oneshot(get(&format!("https://a.test/{at}")))
    });
    for (at, response) in join_all(responses).await.into_iter().enumerate() {
        assert_eq!(read(response.unwrap()).await.unwrap().len(), at);
    }
    assert_eq!(client.stats().connections, 1);
}

#[tokio::test]
async fn timings_belong_to_the_exchange_that_waited() {
    let (world, mut config) = world(&[Protocol::Http1]);
    config.protocols = vec![Protocol::Http1];
    let client = client(&world, config);
    let timings = |response: &Response<Body>| *response.extensions().get::<Timings>().unwrap();
    let first = client
        .send(get("https://a.test/10"), Priority::HIGHEST)
        .await
        .unwrap();
    let first_timings = timings(&first);
    assert_eq!(first_timings.connection, 0);
    let (dns, connect, tls) = (
        first_timings.dns.unwrap(),
        first_timings.connect.unwrap(),
        first_timings.tls.unwrap(),
    );
    assert!(
        dns.0 <= dns.1
            && dns.1 <= connect.0
            && connect.1 <= tls.0
            && tls.1 <= first_timings.sent
            && first_timings.sent <= first_timings.first_byte
    );
    read(first).await.unwrap();
    let second = client
        .send(get("https://a.test/10"), Priority::HIGHEST)
        .await
        .unwrap();
    let second_timings = timings(&second);
    assert_eq!(
        (
            second_timings.connection,
            second_timings.dns,
            second_timings.connect,
            second_timings.tls
        ),
        (0, None, None, None)
    );
    // While it is busy a third needs a connection of its own, but no name.
    let third = client
        .send(get("https://a.test/10"), Priority::HIGHEST)
        .await
        .unwrap();
    let third_timings = timings(&third);
    assert_eq!((third_timings.connection, third_timings.dns), (1, None));
    assert!(third_timings.connect.is_some() && third_timings.tls.is_some());
}

#[tokio::test]
async fn header_bytes_are_counted_as_text_and_as_on_the_wire() {
    for protocol in Protocol::ALL {
        let (world, _) = world(&[protocol]);
        let client = client(&world, only(protocol));
        for _ in 0..10 {
            let mut request = get("http://a.test/10");
            request
                .headers_mut()
                .insert("user-agent", "x".repeat(100).parse().unwrap());
            read(client.send(request, Priority::HIGHEST).await.unwrap())
                .await
                .unwrap();
        }
        client.close().await;
        let stats = client.stats();
        let text = "GET /10 HTTP/1.1\r\nhost: a.test\r\nuser-agent: \r\n\r\n".len() + 100;
        assert_eq!(stats.request_header_bytes, 10 * text as u64, "{protocol}");
        if protocol == Protocol::Http1 {
            assert_eq!(stats.request_header_bytes_wire, stats.request_header_bytes);
            assert_eq!(
                stats.response_header_bytes_wire,
                stats.response_header_bytes
            );
        } else {
            assert!(
                stats.request_header_bytes_wire < stats.request_header_bytes / 2,
                "{protocol}: {stats:?}"
            );
            assert!(stats.response_header_bytes_wire > 0, "{protocol}");
        }
    }
}

#[tokio::test]
async fn a_closed_client_completes_open_requests_and_rejects_new_ones() {
    for protocol in Protocol::ALL {
        let (world, _) = world(&[protocol]);
        let mut config = only(protocol);
        config.http1_connections = 1;
        let client = client(&world, config);
        let open = client
            .send(get("http://a.test/200000"), Priority::HIGHEST)
            .await
            .unwrap();
        let (body, ()) = futures_util::future::join(read(open), client.close()).await;
        assert_eq!(body.unwrap().len(), 200_000, "{protocol}");
        let error = client
            .send(get("http://a.test/1"), Priority::HIGHEST)
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Closed), "{protocol}: {error}");
    }
}
