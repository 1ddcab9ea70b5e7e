//! Errors, timeouts and cancelled requests.

use std::io;
use std::time::Duration;

use futures_util::future::join_all;
use http::{Request, Response};
use spdy::body::Body;
use spdy_client::client::Config;
use spdy_client::error::{ConnectFailure, Error};
use spdy_frame::priority::Priority;
use spdy_net::latch::Latch;
use spdy_net::protocol::Protocol;
use tokio::io::AsyncWriteExt;

use crate::support::site::{HTTP, HTTPS, client, only, serve_responses, world};
use crate::support::{World, get, numbers, read, tls_pair};

#[tokio::test]
async fn each_step_of_connecting_fails_with_its_own_type() {
    let (server, _) = tls_pair();
    let (_, of_another_authority) = tls_pair();
    let world = World::default();
    let protocols = [Protocol::Http2];
    world
        .name("a.test", &["10.0.0.1"])
        .name("down.test", &["10.0.0.2"])
        .name("plain.test", &["10.0.0.3"])
        .server(HTTPS, &protocols, Some(server), Latch::new(), numbers)
        .accept_at("10.0.0.3:443", |mut io| {
            tokio::spawn(async move { io.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await });
        });
    let mut config = Config::default();
    config.tls = Some(of_another_authority);
    let client = client(&world, config);
    let mut failures = Vec::new();
    for host in ["a.test", "down.test", "plain.test"] {
        let uri = format!("https://{host}/");
        let error = client.send(get(&uri), Priority::HIGHEST).await.unwrap_err();
        let Error::Connect { failure, .. } = error else {
            panic!("{host}: {error:?}");
        };
        failures.push(failure);
    }
    let expected = [
        ConnectFailure::Certificate,
        ConnectFailure::Unreachable,
        ConnectFailure::Tls,
    ];
    assert_eq!(failures, expected);
    let unknown = get("https://unknown.test/");
    let error = client.send(unknown, Priority::HIGHEST).await.unwrap_err();
    let not_found = io::ErrorKind::NotFound;
    assert!(
        matches!(error, Error::Resolve { kind, .. } if kind == not_found),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_failing_request_body_is_reported() {
    for (response, expected) in [
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            "Invalid chunk size line",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\nshort",
            "end of file before message length reached",
        ),
    ] {
        let world = World::default();
        serve_responses(&world, Box::leak(Box::new([response])));
        let client = client(&world, only(Protocol::Http1));
        let response = client
            .send(get("http://a.test/"), Priority::HIGHEST)
            .await
            .unwrap();
        let error = read(response).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn an_unrequested_101_is_an_error() {
    let world = World::default();
    serve_responses(
        &world,
        &["HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"],
    );
    let client = client(&world, only(Protocol::Http1));
    let error = client
        .send(get("http://a.test/"), Priority::HIGHEST)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("not requested"), "{error}");
}

#[tokio::test]
async fn a_body_that_ends_short_is_an_error() {
    for text in [
        "HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nshort\r\n",
    ] {
        let world = World::default();
        let responses: &'static [&'static str] = Box::leak(Box::new([text]));
        serve_responses(&world, responses);
        let client = client(&world, only(Protocol::Http1));
        let response = client
            .send(get("http://a.test/"), Priority::HIGHEST)
            .await
            .unwrap();
        assert!(read(response).await.is_err(), "{text:?}");
    }
}

#[tokio::test]
async fn every_waiting_request_gets_the_connect_error() {
    let world = World::default();
    world.name("a.test", &["10.0.0.9"]);
    let client = client(&world, only(Protocol::Http1));
    let responses = (0..8).map(|_| client.send(get("http://a.test/"), Priority::HIGHEST));
    for outcome in join_all(responses.collect::<Vec<_>>()).await {
        let error = outcome.unwrap_err().to_string();
        assert_eq!(
            error,
            "cannot connect to http://a.test:80: connection refused"
        );
    }
    let error = client
        .send(get("http://b.test/"), Priority::HIGHEST)
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "cannot resolve b.test: no such name");
    let error = client
        .send(get("https://a.test/"), Priority::HIGHEST)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "https://a.test:443 needs TLS: set `Config::tls`"
    );
    let error = client.send(get("/"), Priority::HIGHEST).await.unwrap_err();
    assert_eq!(error.to_string(), "\"/\" is not an http or https URL");
}

#[tokio::test]
async fn timeouts_name_their_phase() {
    let short = Some(Duration::from_millis(20));
    // A resolver that does not answer.
    let world = World::default();
    world.name("a.test", &["10.0.0.1"]);
    let _held = world.hold_look_ups();
    let mut config = only(Protocol::Http1);
    config.connect_timeout = short;
    let error = client(&world, config)
        .send(get("http://a.test/"), Priority::HIGHEST)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "no connection from http://a.test:80 within 20ms"
    );
    // A server that does not answer, and one that stops in its body.
    async fn never(_: Request<Body>) -> Response<Body> {
        std::future::pending().await
    }
    async fn stalls(_: Request<Body>) -> Response<Body> {
        use futures_util::StreamExt;
        let first = futures_util::stream::iter([Ok::<_, io::Error>(bytes::Bytes::from("begin"))]);
        Response::new(Body::from_stream(
            first.chain(futures_util::stream::pending()),
        ))
    }
    for protocol in Protocol::ALL {
        let world = World::default();
        world
            .name("a.test", &["10.0.0.1"])
            .server(HTTP, &[protocol], None, Latch::new(), never);
        let mut config = only(protocol);
        config.head_timeout = short;
        let error = client(&world, config)
            .send(get("http://a.test/"), Priority::HIGHEST)
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "no response from http://a.test:80 within 20ms",
            "{protocol}"
        );

        world.server(HTTP, &[protocol], None, Latch::new(), stalls);
        let mut config = only(protocol);
        config.body_timeout = short;
        let client = client(&world, config);
        let response = client
            .send(get("http://a.test/"), Priority::HIGHEST)
            .await
            .unwrap();
        let error = read(response).await.unwrap_err().to_string();
        assert_eq!(
            error, "no more body data from http://a.test:80 within 20ms",
            "{protocol}"
        );
    }
}

#[tokio::test]
async fn a_cancelled_queued_request_leaves_no_state() {
    let (world, _) = world(&[Protocol::Http1]);
    let mut config = only(Protocol::Http1);
    config.http1_connections = 1;
    let client = client(&world, config);
    let busy = client
        .send(get("http://a.test/300000"), Priority::HIGHEST)
        .await
        .unwrap();
    let given_up: Vec<_> = (0..5)
        .map(|_| client.send(get("http://a.test/1"), Priority::HIGHEST))
        .collect();
    let last_response = client.send(get("http://a.test/7"), Priority::LOWEST);
    drop(given_up);
    read(busy).await.unwrap();
    assert_eq!(read(last_response.await.unwrap()).await.unwrap().len(), 7);
    assert_eq!(
        (client.stats().requests, client.stats().connections),
        (2, 1)
    );
}

#[tokio::test]
async fn a_dropped_body_frees_its_connection() {
    for protocol in Protocol::ALL {
        let (world, _) = world(&[protocol]);
        let mut config = only(protocol);
        config.http1_connections = 1;
        let client = client(&world, config);
        for _ in 0..5 {
            drop(
                client
                    .send(get("http://a.test/3000000"), Priority::HIGHEST)
                    .await
                    .unwrap(),
            );
        }
        let response = client
            .send(get("http://a.test/9"), Priority::HIGHEST)
            .await
            .unwrap();
        assert_eq!(read(response).await.unwrap().len(), 9, "{protocol}");
    }
}
