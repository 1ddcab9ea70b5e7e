//! Names that change their addresses, against the client that fetches by them: a listener at a denied address receives
//! nothing.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Request;
use spdy::body::Body;
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_client::client::Client;
use spdy_client::config::Config;
use spdy_frame::priority::Priority;
use spdy_net::network::{BoxIo, Network, SystemNetwork};
use spdy_resolver::address_rules::{AddressRules, OriginDenial};
use spdy_resolver::guarded_network::GuardedNetwork;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Real sockets, and a resolver that gives its answers one after the other, the last for ever.
#[derive(Clone, Default)]
struct ChangingResolver(Arc<Mutex<BTreeMap<String, VecDeque<Vec<IpAddr>>>>>);

impl ChangingResolver {
    fn name(self, host: &str, answers: &[&[&str]]) -> Self {
        let parse = |answer: &&[&str]| answer.iter().map(|ip| ip.parse().unwrap()).collect();
        let answers = answers.iter().map(parse).collect();
        self.0.lock().unwrap().insert(host.to_owned(), answers);
        self
    }
}

impl Network for ChangingResolver {
    fn resolve(&self, host: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        let mut names = self.0.lock().unwrap();
        let answers = names.get_mut(host).expect("a name of the test");
        let answer = match answers.len() {
            1 => answers[0].clone(),
            _ => answers.pop_front().expect("a name has answers"),
        };
        Box::pin(std::future::ready(Ok(answer)))
    }

    fn connect(&self, to: SocketAddr) -> BoxFuture<io::Result<BoxIo>> {
        SystemNetwork.connect(to)
    }
}

/// An HTTP server at `ip` that counts its requests; port 0 lets the system choose.
async fn server(ip: &str, port: u16) -> Option<(u16, Arc<AtomicUsize>)> {
    let listener = TcpListener::bind((ip.parse::<IpAddr>().unwrap(), port)).await;
    let listener = listener.ok()?;
    let port = listener.local_addr().unwrap().port();
    let request_count = Arc::new(AtomicUsize::new(0));
    let counter = request_count.clone();
    tokio::spawn(async move {
        while let Ok((mut io, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::SeqCst);
            let mut head = [0; 4096];
            let _ = io.read(&mut head).await;
            let answer = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
            let _ = io.write_all(answer).await;
        }
    });
    Some((port, request_count))
}

/// A port at 127.0.0.2, where origins of these tests may stand, with a canary at 127.0.0.1 on the same port.
async fn origin_and_canary() -> (u16, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    for _ in 0..100 {
        let (port, origin) = server("127.0.0.2", 0).await.expect("a free port");
        if let Some((_, canary)) = server("127.0.0.1", port).await {
            return (port, origin, canary);
        }
    }
    panic!("no port is free at two addresses");
}

fn guarded(names: ChangingResolver, port: u16) -> (Client, GuardedNetwork) {
    let rules = AddressRules {
        allow: vec!["127.0.0.2/32".parse().unwrap()],
        ports: [port].into(),
        ..AddressRules::default()
    };
    let network = GuardedNetwork::new(Arc::new(names), rules);
    let mut config = Config::default();
    // Each request looks the name up again.
    config.dns_ttl = Duration::ZERO;
    let shared = Arc::new(network.clone());
    (Client::new(SharedRuntime::tokio(), shared, config), network)
}

async fn fetch(client: &Client, uri: String) -> Result<(), String> {
    let request = Request::get(uri).body(Body::empty()).unwrap();
    let exchange = client.send(request, Priority::HIGHEST);
    exchange.await.map(drop).map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_name_whose_second_answer_is_loopback_is_fetched_once_and_then_refused() {
    let (port, origin, canary) = origin_and_canary().await;
    let names = ChangingResolver::default().name("a.test", &[&["127.0.0.2"], &["127.0.0.1"]]);
    let (client, network) = guarded(names, port);
    let uri = format!("http://a.test:{port}/");
    assert_eq!(fetch(&client, uri.clone()).await, Ok(()));
    let error = fetch(&client, uri).await.unwrap_err();
    assert!(error.contains("127.0.0.1 is denied: loopback"), "{error}");
    assert_eq!(origin.load(Ordering::SeqCst), 1);
    assert_eq!(canary.load(Ordering::SeqCst), 0);
    assert_eq!(
        network.refusals().by_reason(),
        BTreeMap::from([("loopback", 1)])
    );
}

#[tokio::test]
async fn one_denied_address_refuses_the_name() {
    let (port, origin, canary) = origin_and_canary().await;
    let names = ChangingResolver::default()
        .name("mixed.test", &[&["127.0.0.2", "127.0.0.1"]])
        .name("cloud.test", &[&["127.0.0.2", "::ffff:169.254.169.254"]]);
    let (client, _) = guarded(names, port);
    for (host, expected) in [
        ("mixed.test", "127.0.0.1"),
        ("cloud.test", "169.254.169.254"),
    ] {
        let error = fetch(&client, format!("http://{host}:{port}/")).await;
        let error = error.unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(origin.load(Ordering::SeqCst), 0);
    assert_eq!(canary.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_address_without_a_lookup_is_checked_on_connect() {
    let (port, _, canary) = origin_and_canary().await;
    let (client, network) = guarded(ChangingResolver::default(), port);
    // The client does not look these up.
    for uri in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://[::1]:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
    ] {
        let error = fetch(&client, uri.clone()).await.unwrap_err();
        assert!(error.contains("is denied"), "{uri}: {error}");
    }
    // These are not looked up either: they are refused as names.
    for host in [
        "localhost",
        "2130706433",
        "0x7f.1",
        "017700000001",
        "127.1",
        "intranet",
    ] {
        let error = fetch(&client, format!("http://{host}:{port}/")).await;
        assert!(error.is_err(), "{host}");
    }
    let (port, canary_elsewhere) = server("127.0.0.2", 0).await.expect("a free port");
    let result = network
        .connect(SocketAddr::from(([127, 0, 0, 2], port)))
        .await;
    let error = result.expect_err("a port that is not listed");
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    let denial = error
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<OriginDenial>());
    assert_eq!(denial, Some(&OriginDenial::Port(port)));
    assert_eq!(canary_elsewhere.load(Ordering::SeqCst), 0);
    assert_eq!(canary.load(Ordering::SeqCst), 0);
}
