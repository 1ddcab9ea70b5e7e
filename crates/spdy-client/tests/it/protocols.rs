//! Which protocol a client uses: the configured ones, the result of ALPN, and servers without ALPN.

use futures_util::future::join_all;
use spdy_client::client::Config;
use spdy_client::origin::WithoutCredentials;
use spdy_client::route::Route;
use spdy_frame::priority::Priority;
use spdy_frame::version::Version;
use spdy_net::latch::Latch;
use spdy_net::protocol::Protocol;
use spdy_net::tls::certificates::{KeyKind, LocalCa};
use spdy_net::tls::verify::Trust;
use spdy_net::tls::{ClientTls, KeyLogTarget, ServerTls, TlsOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::site::{HTTP, HTTPS, client, only, world};
use crate::support::{World, get, numbers, read, tls_pair};

#[tokio::test]
async fn every_protocol_is_fetched_plain_and_over_tls() {
    for protocol in Protocol::ALL {
        for scheme in ["http", "https"] {
            let (world, mut config) = world(&[protocol]);
            config.protocols = vec![protocol];
            config.plain_protocol = protocol;
            let client = client(&world, config);
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
    let mut chosen = config.clone();
    chosen.plain_protocol = spdy;
    let mut configured = config.clone();
    configured.host_protocols = host_protocols;
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

/// `a.test`, which speaks every protocol in TLS, and what a client needs to reach it.
fn world_with_numbers() -> (World, ClientTls) {
    let (server, tls) = tls_pair();
    let world = World::default();
    world.name("a.test", &["10.0.0.1"]).server(
        HTTPS,
        &Protocol::ALL,
        Some(server),
        Latch::new(),
        numbers,
    );
    (world, tls)
}

#[tokio::test]
async fn queued_requests_wait_for_the_alpn_result() {
    for (protocol, connections) in [
        (Protocol::Spdy(Version::V31), 1),
        (Protocol::Http2, 1),
        (Protocol::Http1, 6),
    ] {
        let (world, tls) = world_with_numbers();
        let protocols = vec![protocol, Protocol::Http1];
        let mut config = Config::default();
        config.tls = Some(tls);
        config.protocols = protocols;
        let client = client(&world, config);
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

#[tokio::test]
async fn requests_without_credentials_share_names_but_no_connection_or_tls_session() {
    let (world, tls) = world_with_numbers();
    let mut config = Config::default();
    config.tls = Some(tls);
    config.protocols = vec![Protocol::Http1];
    let client = client(&world, config);
    let fetch = async |without_credentials: bool| {
        let mut request = get("https://a.test/10");
        if without_credentials {
            request.extensions_mut().insert(WithoutCredentials);
        }
        let response = client.send(request, Priority::HIGHEST).await.unwrap();
        read(response).await.unwrap();
        let stats = client.stats();
        (stats.connections, stats.resumed)
    };
    assert_eq!(fetch(false).await, (1, 0));
    assert_eq!(fetch(true).await, (2, 0), "a second full handshake");
    assert_eq!(fetch(false).await, (2, 0));
    assert_eq!(fetch(true).await, (2, 0));
    assert_eq!(world.look_ups(), ["a.test"]);
}

/// A TLS server that speaks HTTP/1.1 and knows no ALPN, and what a client needs to reach it.
fn world_without_alpn() -> (World, Config) {
    let key_log = KeyLogTarget::Disabled;
    let mut options = TlsOptions::default();
    options.key_log = key_log;
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
    let mut client = Config::default();
    client.tls = tls;
    (world, client)
}

#[tokio::test]
async fn without_alpn_a_spdy_only_client_fails_once_with_the_reason() {
    let (world, mut config) = world_without_alpn();
    config.protocols = vec![Protocol::Spdy(Version::V31)];
    let client = client(&world, config);
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
