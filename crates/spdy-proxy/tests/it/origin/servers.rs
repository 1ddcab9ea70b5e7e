//! A site with several servers: which one gets a request, what happens when one fails, and the effect of checks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{Request, StatusCode};
use spdy_proxy::config::Config;
use spdy_proxy::proxy::Proxy;

use crate::support::fields::ONCE;
use crate::support::{Origin, accelerator_of, get, respond, until};

/// A server that responds with its name. It fails its checks while `is_failing`.
fn server(name: &'static str, is_failing: Arc<AtomicBool>) -> Origin {
    Origin::start(move |request: Request<bytes::Bytes>| {
        let mut response = respond(&[ONCE], name);
        if request.uri().path() == "/health" && is_failing.load(Ordering::SeqCst) {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        }
        std::future::ready(response)
    })
}

fn healthy(name: &'static str) -> Origin {
    server(name, Arc::default())
}

fn proxy(servers: &[(String, u32)], more: &str) -> Arc<Proxy> {
    let servers: String = servers
        .iter()
        .map(|(address, weight)| {
            format!("[[site.servers]]\naddress = '{address}'\nweight = {weight}\n")
        })
        .collect();
    accelerator_of(&format!(
        "[[site]]\nnames = ['www.site.test']\norigin = 'http://app.test'\n{more}\n{servers}"
    ))
}

fn at(server: &Origin, weight: u32) -> (String, u32) {
    (server.address.to_string(), weight)
}

/// The names of the servers that answer these many requests, one after the other.
async fn answers(proxy: &Arc<Proxy>, requests: usize) -> Vec<String> {
    let mut names = Vec::new();
    for _ in 0..requests {
        names.push(get(proxy, "/a", &[]).await.text().to_owned());
    }
    names
}

#[tokio::test]
async fn equal_servers_take_turns_and_get_the_name_of_the_origin() {
    let (one, two) = (healthy("one"), healthy("two"));
    let proxy = proxy(&[at(&one, 1), at(&two, 1)], "");
    let names = answers(&proxy, 6).await;
    assert_eq!(
        names.iter().filter(|name| *name == "one").count(),
        3,
        "{names:?}"
    );
    assert_eq!(one.fields("/a")["host"], "app.test");
}

#[tokio::test]
async fn requests_in_progress_are_shared_by_weight() {
    let (light, gate) = Origin::start_gated(|_| respond(&[ONCE], "light"));
    let (heavy, heavy_gate) = Origin::start_gated(|_| respond(&[ONCE], "heavy"));
    let proxy = proxy(&[at(&light, 1), at(&heavy, 3)], "");
    let requests = (0..8).map(|number| {
        let proxy = proxy.clone();
        tokio::spawn(async move { get(&proxy, &format!("/{number}"), &[]).await.status })
    });
    let requests: Vec<_> = requests.collect();
    until("all requests are at a server", || {
        light.request_lines().len() + heavy.request_lines().len() == 8
    })
    .await;
    assert_eq!(
        (light.request_lines().len(), heavy.request_lines().len()),
        (2, 6)
    );
    gate.add_permits(8);
    heavy_gate.add_permits(8);
    for request in requests {
        assert_eq!(request.await.expect("a response"), StatusCode::OK);
    }
}

#[tokio::test]
async fn a_server_that_refuses_connections_costs_no_request() {
    let there = healthy("there");
    let refusing = {
        // A port that was free a moment ago.
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        socket.local_addr().expect("its address").to_string()
    };
    let proxy = proxy(&[(refusing, 1), at(&there, 1)], "");
    assert_eq!(answers(&proxy, 12).await, ["there"; 12]);
}

#[tokio::test]
async fn a_server_that_fails_its_checks_gets_no_requests_until_it_passes_two() {
    let is_failing = Arc::new(AtomicBool::new(true));
    let (one, two) = (server("one", is_failing.clone()), healthy("two"));
    let health = "health = { path = '/health', interval_s = 1, slow_start_s = 0 }";
    let proxy = proxy(&[at(&one, 1), at(&two, 1)], health);
    let available = || {
        let upstream = proxy.origins.upstream();
        let servers = upstream.servers();
        servers.filter(|(.., is_available)| *is_available).count()
    };
    until("the first check has failed", || available() == 1).await;
    assert_eq!(answers(&proxy, 4).await, ["two"; 4]);
    is_failing.store(false, Ordering::SeqCst);
    until("two checks have passed", || available() == 2).await;
    assert!(one.times("/health") >= 3);
    let names = answers(&proxy, 4).await;
    assert!(names.iter().any(|name| name == "one"), "{names:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_server_may_be_a_unix_socket() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let folder = tempfile::tempdir().expect("create a folder");
    let path = folder.path().join("app.sock");
    let listener = tokio::net::UnixListener::bind(&path).expect("bind the socket");
    let served = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut head = vec![0; 4096];
        let len = stream.read(&mut head).await.expect("a request");
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        stream.write_all(response).await.expect("write");
        String::from_utf8_lossy(&head[..len]).to_ascii_lowercase()
    });
    let proxy = proxy(&[(format!("unix:{}", path.display()), 1)], "");
    assert_eq!(get(&proxy, "/a", &[]).await.text(), "ok");
    let head = served.await.expect("a request");
    assert!(head.contains("\r\nhost: app.test\r\n"), "{head}");
}

#[tokio::test]
async fn without_an_available_server_the_client_gets_503() {
    let is_failing = Arc::new(AtomicBool::new(true));
    let one = server("one", is_failing);
    let health = "health = { path = '/health', interval_s = 60 }";
    let proxy = proxy(&[at(&one, 1)], health);
    until("the check has failed", || {
        let upstream = proxy.origins.upstream();
        let mut servers = upstream.servers();
        servers.any(|(.., is_available)| !is_available)
    })
    .await;
    let response = get(&proxy, "/a", &[]).await;
    assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE);
}

#[test]
fn wrong_servers_are_named() {
    let site = "[[site]]\nnames = ['a.test']\norigin = 'http://b.test'\n";
    for (more, expected) in [
        (
            "[[site.servers]]\naddress = '10.0.0.1'",
            "site.servers.address: expected an address and a port",
        ),
        (
            "[[site.servers]]\naddress = '10.0.0.1:80'\nweight = 0",
            "site.servers.weight: expected 1 to 1000, found 0",
        ),
        (
            "[[site.servers]]\naddress = '10.0.0.1:80'\n[[site.servers]]\naddress = '10.0.0.1:80'",
            "site.servers.address: expected each address once in a site",
        ),
        (
            "address = '10.0.0.1'\n[[site.servers]]\naddress = '10.0.0.1:80'",
            "site.address: expected no address beside servers",
        ),
        (
            "health = { path = '/h' }",
            "site.health: expected servers to check",
        ),
        (
            "health = { path = 'h' }\n[[site.servers]]\naddress = '10.0.0.1:80'",
            "site.health.path: expected a path that begins with /",
        ),
        (
            "health = { path = '/h', timeout_s = 0 }\n[[site.servers]]\naddress = '10.0.0.1:80'",
            "site.health.timeout_s: expected 1 to 60, found 0",
        ),
    ] {
        let error = Config::parse(&format!("{site}{more}\n")).expect_err(more);
        assert!(error.to_string().contains(expected), "{more}: {error}");
    }
}
