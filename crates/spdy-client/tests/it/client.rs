//! A client among servers: connections shared, requests repeated where that is safe, time-outs.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use http::{Request, Response};
use spdy::body::Body;
use spdy_client::client::{Client, Config};
use spdy_client::error::{ConnectFailure, Error};
use spdy_client::route::Route;
use spdy_client::timing::Timings;
use spdy_frame::priority::Priority;
use spdy_frame::version::Version;
use spdy_net::latch::Latch;
use spdy_net::protocol::Protocol;
use spdy_net::tls::certificates::{KeyKind, LocalCa};
use spdy_net::tls::verify::Trust;
use spdy_net::tls::{ClientTls, KeyLogTarget, ServerTls, TlsOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower::ServiceExt;

use crate::support::{World, get, numbers, read, runtime, tls_pair};

const HTTP: SocketText = "10.0.0.1:80";
const HTTPS: SocketText = "10.0.0.1:443";
type SocketText = &'static str;

fn client(world: &World, config: Config) -> Client {
    Client::new(runtime(), Arc::new(world.clone()), config)
}

fn only(protocol: Protocol) -> Config {
    Config {
        protocols: vec![protocol],
        plain_protocol: protocol,
        ..Config::default()
    }
}

/// A world with `a.test`, plain and over TLS, that speaks `protocols`; and what a client needs there.
fn world(protocols: &[Protocol]) -> (World, Config) {
    let world = World::default();
    let (server, tls) = tls_pair();
    world
        .name("a.test", &["10.0.0.1"])
        .server(HTTP, protocols, None, Latch::new(), numbers)
        .server(HTTPS, protocols, Some(server), Latch::new(), numbers);
    (
        world,
        Config {
            tls: Some(tls),
            ..Config::default()
        },
    )
}

#[tokio::test]
async fn every_protocol_is_fetched_plain_and_over_tls() {
    for protocol in Protocol::ALL {
        for scheme in ["http", "https"] {
            let (world, config) = world(&[protocol]);
            let client = client(
                &world,
                Config {
                    protocols: vec![protocol],
                    plain_protocol: protocol,
                    ..config
                },
            );
            let fetches = (0..20).map(|at| {
                let uri = format!("{scheme}://a.test/{}", at * 5_000);
                let response = client.send(get(&uri), Priority::new(at as u8 % 8));
                async move {
                    let response = response
                        .await
                        .unwrap_or_else(|error| panic!("{protocol} {scheme}: {error}"));
                    let route = *response.extensions().get::<Route>().unwrap();
                    assert_eq!(route.protocol, protocol);
                    assert_eq!(route.tls.is_some(), scheme == "https");
                    assert_eq!(
                        read(response).await.unwrap().len(),
                        at * 5_000,
                        "{protocol} {scheme}"
                    );
                }
            });
            join_all(fetches.collect::<Vec<_>>()).await;
            let stats = client.stats();
            assert_eq!(stats.requests, 20);
            assert_eq!(
                stats.connections,
                if protocol.is_multiplexed() { 1 } else { 6 },
                "{protocol}"
            );
            assert_eq!(world.look_ups(), ["a.test"], "one lookup for all requests");
            client.close().await;
        }
    }
}

#[tokio::test]
async fn http_urls_are_fetched_by_http_1_1_unless_another_protocol_is_chosen() {
    let spdy = Protocol::Spdy(Version::V31);
    let (world, config) = world(&[Protocol::Http1, spdy]);
    let host_protocols = [("a.test".to_owned(), spdy)].into();
    let chosen = Config {
        plain_protocol: spdy,
        ..config.clone()
    };
    let configured = Config {
        host_protocols,
        ..config.clone()
    };
    for (config, protocol) in [
        (config, Protocol::Http1),
        (chosen, spdy),
        (configured, spdy),
    ] {
        let client = client(&world, config);
        let response = client
            .send(get("http://a.test/10"), Priority::HIGHEST)
            .await;
        let response = response.expect("a response");
        let route = *response.extensions().get::<Route>().expect("a route");
        assert_eq!(route.protocol, protocol);
        assert_eq!(read(response).await.expect("a whole body").len(), 10);
    }
}

#[tokio::test]
async fn an_http1_response_to_spdy_fails_once_with_its_name() {
    let world = World::default();
    world
        .name("a.test", &["10.0.0.1"])
        .accept_at(HTTP, |mut io| {
            tokio::spawn(async move {
                let mut bytes = [0; 1024];
                let len = io.read(&mut bytes).await.expect("a request");
                assert!(len > 0, "the client sends first");
                let response = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
                io.write_all(response).await.expect("written");
            });
        });
    let client = client(&world, only(Protocol::Spdy(Version::V31)));
    let error = client.send(get("http://a.test/"), Priority::HIGHEST).await;
    let error = error.expect_err("the port does not speak SPDY").to_string();
    let expected = "the peer sent an HTTP/1.1 response to SPDY: this port does not speak SPDY";
    assert!(error.contains(expected), "{error}");
    assert_eq!(world.connects().len(), 1, "a retry would be useless");
}

#[tokio::test]
async fn bodies_that_are_not_read_hold_up_no_other_over_any_protocol() {
    // SPDY/2 has no windows: with 10 MiB unread nothing more is read of its sessions.
    let has_windows = |protocol: &Protocol| *protocol != Protocol::Spdy(Version::V2);
    for protocol in Protocol::ALL.into_iter().filter(has_windows) {
        let (world, config) = world(&[protocol]);
        let config = Config {
            protocols: vec![protocol],
            http1_connections: 31,
            ..config
        };
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
async fn queued_requests_wait_for_the_alpn_result() {
    for (protocol, connections) in [
        (Protocol::Spdy(Version::V31), 1),
        (Protocol::Http2, 1),
        (Protocol::Http1, 6),
    ] {
        let (server, tls) = tls_pair();
        let world = World::default();
        world.name("a.test", &["10.0.0.1"]).server(
            HTTPS,
            &Protocol::ALL,
            Some(server),
            Latch::new(),
            numbers,
        );
        let protocols = vec![protocol, Protocol::Http1];
        let client = client(
            &world,
            Config {
                tls: Some(tls),
                protocols,
                ..Config::default()
            },
        );
        // The page, then what it names; by then the tickets have come.
        let page = client
            .send(get("https://a.test/1000"), Priority::HIGHEST)
            .await
            .unwrap();
        read(page).await.unwrap();
        // The bodies do not fit the pipes: each connection stays busy until its body is read.
        let responses: Vec<_> = (0..8)
            .map(|_| client.send(get("https://a.test/200000"), Priority::HIGHEST))
            .collect();
        let read_all = responses
            .into_iter()
            .map(|response| async { read(response.await.unwrap()).await.unwrap().len() });
        assert_eq!(join_all(read_all).await, [200_000; 8]);
        assert_eq!(client.stats().connections, connections, "{protocol}");
        if protocol == Protocol::Http1 {
            // A ticket of TLS 1.3 is good for one connection, and a server sends two.
            assert!(client.stats().resumed >= 2, "{:?}", client.stats());
        }
    }
}

/// A TLS server that speaks HTTP/1.1 and knows no ALPN, and what a client needs to reach it.
fn world_without_alpn() -> (World, Config) {
    let key_log = KeyLogTarget::Disabled;
    let options = TlsOptions {
        key_log,
        ..TlsOptions::default()
    };
    let ca = LocalCa::generate(KeyKind::EcdsaP256).unwrap();
    let identity = ca.issue(&["a.test".to_owned()], &[]).unwrap();
    let server = ServerTls::new(&identity, &[], &options).unwrap();
    let tls = ClientTls::new(&Trust::only(vec![ca.certificate().clone()]), &options).unwrap();
    let world = World::default();
    world.name("a.test", &["10.0.0.1"]).server(
        HTTPS,
        &[Protocol::Http1],
        Some(server),
        Latch::new(),
        numbers,
    );
    let tls = Some(tls);
    (
        world,
        Config {
            tls,
            ..Config::default()
        },
    )
}

#[tokio::test]
async fn without_alpn_a_spdy_only_client_fails_once_with_the_reason() {
    let (world, config) = world_without_alpn();
    let client = client(
        &world,
        Config {
            protocols: vec![Protocol::Spdy(Version::V31)],
            ..config
        },
    );
    let error = client
        .send(get("https://a.test/10"), Priority::HIGHEST)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot connect to https://a.test:443: the server did not select a protocol by ALPN \
         (offered: spdy/3.1); it may only know NPN, which this client does not support"
    );
    assert!(!error.is_transient());
    assert_eq!(world.connects().len(), 1, "one attempt");
    assert_eq!(client.stats().requests, 0, "nothing was sent");
}

#[tokio::test]
async fn without_alpn_http1_is_used_if_offered() {
    let (world, config) = world_without_alpn();
    let client = client(&world, config);
    let response = client
        .send(get("https://a.test/10"), Priority::HIGHEST)
        .await
        .unwrap();
    let route = *response.extensions().get::<Route>().unwrap();
    assert_eq!(route.protocol, Protocol::Http1);
    assert_eq!(read(response).await.unwrap().len(), 10);
}

#[tokio::test]
async fn layers_of_tower_go_over_the_pool() {
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
    let (world, config) = world(&[Protocol::Http1]);
    let client = client(
        &world,
        Config {
            protocols: vec![Protocol::Http1],
            ..config
        },
    );
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
        // HTTP/2 says twice that it goes, and still answers what comes between.
        let expected = if protocol == Protocol::Http2 {
            1..=2
        } else {
            2..=2
        };
        assert!(expected.contains(&client.stats().connections), "{protocol}");
    }
}

/// A plain server that answers each connection's first request with these bytes, and hangs up.
fn serve_responses(world: &World, responses: &'static [&'static str]) -> Arc<AtomicUsize> {
    let request_count = Arc::new(AtomicUsize::new(0));
    let count = request_count.clone();
    world
        .name("a.test", &["10.0.0.1"])
        .accept_at(HTTP, move |mut io| {
            let nth = count.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let mut request = vec![0; 4096];
                let _ = io.read(&mut request).await;
                let _ = io
                    .write_all(responses[nth.min(responses.len() - 1)].as_bytes())
                    .await;
                let _ = io.shutdown().await;
            });
        });
    request_count
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
async fn retries_end() {
    let world = World::default();
    let request_count = serve_responses(&world, &[""]);
    let client = client(
        &world,
        Config {
            retries: 3,
            ..only(Protocol::Http1)
        },
    );
    let error = client
        .send(get("http://a.test/"), Priority::HIGHEST)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Exchange { .. }), "{error}");
    assert_eq!(request_count.load(Ordering::Relaxed), 4);
}

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
    let client = client(
        &world,
        Config {
            tls: Some(of_another_authority),
            ..Config::default()
        },
    );
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
async fn a_request_that_was_refused_waits_until_another_has_ended() {
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
        "https://a.test:443 needs TLS, but TLS is not configured"
    );
    let error = client.send(get("/"), Priority::HIGHEST).await.unwrap_err();
    assert_eq!(error.to_string(), "\"/\" is not an http or https URL");
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
    let client = client(
        &world,
        Config {
            resolve,
            ..only(Protocol::Http1)
        },
    );
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

#[tokio::test]
async fn timeouts_name_their_phase() {
    let short = Some(Duration::from_millis(20));
    // A resolver that does not answer.
    let world = World::default();
    world.name("a.test", &["10.0.0.1"]);
    let _held = world.hold_look_ups();
    let config = Config {
        connect_timeout: short,
        ..only(Protocol::Http1)
    };
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
        let config = Config {
            head_timeout: short,
            ..only(protocol)
        };
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
        let config = Config {
            body_timeout: short,
            ..only(protocol)
        };
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
    let client = client(
        &world,
        Config {
            http1_connections: 1,
            ..only(Protocol::Http1)
        },
    );
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
async fn a_body_dropped_half_way_frees_its_place() {
    for protocol in Protocol::ALL {
        let (world, _) = world(&[protocol]);
        let client = client(
            &world,
            Config {
                http1_connections: 1,
                ..only(protocol)
            },
        );
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

#[tokio::test]
async fn a_closed_client_ends_what_is_open_and_takes_nothing_new() {
    for protocol in Protocol::ALL {
        let (world, _) = world(&[protocol]);
        let client = client(
            &world,
            Config {
                http1_connections: 1,
                ..only(protocol)
            },
        );
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
