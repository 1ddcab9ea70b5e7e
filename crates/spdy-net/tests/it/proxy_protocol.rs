//! A listener behind a proxy that announces its clients: the addresses that limits apply to, and the handling of other headers.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use spdy_net::admission::{Admission, AdmissionLimits, Conduct};
use spdy_net::latch::Latch;
use spdy_net::limit::{ConnectionLimit, LimitHits};
use spdy_net::listen::trusted_proxies::{
    ClientInfo, ProxyProtocolOptions, SharedTrustedProxies, TrustedProxies,
};
use spdy_net::listen::{ListenOptions, Listener};
use spdy_net::network::BoxIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

const PROXY: &str = "127.0.0.2";
const HEADER: &str = "PROXY TCP4 203.0.113.7 192.0.2.1 5000 443\r\n";

/// A listener that sends each client its own address. One address may have two connections.
struct TestListener {
    address: SocketAddr,
    in_front: SharedTrustedProxies,
    hits: LimitHits,
    stop: Latch,
    listener_task: tokio::task::JoinHandle<()>,
}

/// Proxies at 127.0.0.2 that announce their clients.
fn announcing() -> Arc<TrustedProxies> {
    let in_front = TrustedProxies::read(&[PROXY.to_owned()]).expect("an address");
    let tls_port = Some(443);
    let mut options = ProxyProtocolOptions::default();
    options.tls_port = tls_port;
    Arc::new(in_front.with_proxy_protocol(options))
}

impl TestListener {
    fn start(in_front: Arc<TrustedProxies>) -> Self {
        Self::start_with(in_front, |_| ())
    }

    fn start_with(
        in_front: Arc<TrustedProxies>,
        change: impl FnOnce(&mut AdmissionLimits),
    ) -> Self {
        let bind_address = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = Listener::bind(bind_address).expect("loopback has a free port");
        let (address, stop) = (listener.address(), Latch::new());
        let (in_front, hits) = (SharedTrustedProxies::new(in_front), LimitHits::default());
        let mut limits = AdmissionLimits::default();
        limits.per_address = 2;
        limits.abuses = 1;
        change(&mut limits);
        let mut options = ListenOptions::default();
        options.admission = Admission::new(limits, hits.clone());
        options.drain_timeout = Duration::from_secs(60);
        options.trusted_proxies = in_front.clone();
        let listener_task = tokio::spawn(listener.run(options, stop.clone(), |io, caller, _| {
            report_client(io, caller)
        }));
        Self {
            address,
            in_front,
            hits,
            stop,
            listener_task,
        }
    }

    /// A connection from `address` that begins with `bytes`.
    async fn connect(&self, from: &str, bytes: &str) -> TcpStream {
        let socket = TcpSocket::new_v4().expect("a socket");
        let from: IpAddr = from.parse().expect("an address");
        socket.bind((from, 0).into()).expect("a loopback address");
        let mut stream = socket.connect(self.address).await.expect("it listens");
        stream
            .write_all(bytes.as_bytes())
            .await
            .expect("the connection is accepted");
        stream
    }

    /// The response on a connection from address `from` that sends `bytes`.
    async fn response_to(&self, from: &str, bytes: &str) -> String {
        read_line(&mut self.connect(from, bytes).await).await
    }
}

/// Responds to each line with the client's address and whether it used TLS. The line `abuse` counts as abuse.
async fn report_client(mut io: BoxIo, caller: ClientInfo) -> Conduct {
    let mut line = Vec::new();
    while let Ok(byte) = io.read_u8().await {
        if byte != b'\n' {
            line.push(byte);
            continue;
        }
        let ClientInfo {
            address,
            is_tls: came_over_tls,
        } = caller;
        let text = String::from_utf8_lossy(&line).into_owned();
        let response = format!("{} {came_over_tls} {text}\n", address.ip());
        let _ = io.write_all(response.as_bytes()).await;
        if line == b"abuse" {
            return Conduct::Abusive;
        }
        line.clear();
    }
    Conduct::Fair
}

/// The next line, or the end.
async fn read_line(stream: &mut TcpStream) -> String {
    let mut line = Vec::new();
    while let Ok(byte) = stream.read_u8().await {
        line.push(byte);
        if byte == b'\n' {
            break;
        }
    }
    String::from_utf8(line).expect("the response is ASCII")
}

#[tokio::test]
async fn the_client_address_comes_from_the_trusted_proxy() {
    let listener = TestListener::start(announcing());
    let response = listener
        .response_to(PROXY, &format!("{HEADER}hello\n"))
        .await;
    assert_eq!(response, "203.0.113.7 true hello\n");
    let response = listener
        .response_to(PROXY, "PROXY UNKNOWN\r\nhello\n")
        .await;
    assert_eq!(response, "127.0.0.2 false hello\n");
    let plain = HEADER.replace(" 443\r", " 80\r");
    let response = listener
        .response_to(PROXY, &format!("{plain}hello\n"))
        .await;
    assert_eq!(response, "203.0.113.7 false hello\n");
}

#[tokio::test]
async fn untrusted_headers_are_data_and_missing_headers_close() {
    let listener = TestListener::start(announcing());
    let response = listener.response_to("127.0.0.3", HEADER).await;
    assert_eq!(response, format!("127.0.0.3 false {HEADER}"));
    assert_eq!(
        listener.response_to(PROXY, "GET / HTTP/1.1\r\n\r\n").await,
        ""
    );
}

#[tokio::test]
async fn limits_apply_to_the_announced_client_not_the_proxy() {
    let listener = TestListener::start(announcing());
    let hello = format!("{HEADER}hello\n");
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut stream = listener.connect(PROXY, &hello).await;
        assert_eq!(read_line(&mut stream).await, "203.0.113.7 true hello\n");
        open.push(stream);
    }
    assert_eq!(listener.response_to(PROXY, &hello).await, "");
    let hit_count = |limit| listener.hits.of(limit);
    assert_eq!(hit_count(ConnectionLimit::ConnectionsPerAddress), 1);
    let other_hello = hello.replace("203.0.113.7", "203.0.113.8");
    for _ in 0..2 {
        let mut stream = listener.connect(PROXY, &other_hello).await;
        assert_eq!(read_line(&mut stream).await, "203.0.113.8 true hello\n");
        open.push(stream);
    }
    let third = hello.replace("203.0.113.7", "203.0.113.9");
    let abuse = third.replace("hello", "abuse");
    assert_eq!(
        listener.response_to(PROXY, &abuse).await,
        "203.0.113.9 true abuse\n"
    );
    // The conduct of a connection is recorded shortly after its last byte.
    for _ in 0..1000 {
        if listener.response_to(PROXY, &third).await.is_empty() {
            break;
        }
    }
    assert!(hit_count(ConnectionLimit::AbusesPerAddress) > 0);
    let fourth = hello.replace("203.0.113.7", "203.0.113.10");
    assert_eq!(
        listener.response_to(PROXY, &fourth).await,
        "203.0.113.10 true hello\n"
    );
}

#[tokio::test]
async fn a_local_proxy_header_has_no_limits_per_address() {
    let trusted = TrustedProxies::read(&[PROXY.to_owned()]).expect("an address");
    let listener = TestListener::start(Arc::new(trusted));
    let mut open = Vec::new();
    for _ in 0..5 {
        let mut stream = listener.connect(PROXY, "hello\n").await;
        assert_eq!(read_line(&mut stream).await, "127.0.0.2 false hello\n");
        open.push(stream);
    }
    // The limits apply to a proxy that is no longer trusted.
    listener.in_front.replace(Arc::default());
    for _ in 0..2 {
        let mut stream = listener.connect(PROXY, "hello\n").await;
        assert_eq!(read_line(&mut stream).await, "127.0.0.2 false hello\n");
        open.push(stream);
    }
    assert_eq!(listener.response_to(PROXY, "hello\n").await, "");
}

#[tokio::test]
async fn a_silent_proxy_does_not_delay_shutdown() {
    let listener = TestListener::start(announcing());
    let mut halfway = listener.connect(PROXY, "PROXY TCP4 ").await;
    let mut announced = listener.connect(PROXY, &format!("{HEADER}hello\n")).await;
    assert_eq!(read_line(&mut announced).await, "203.0.113.7 true hello\n");
    listener.stop.set();
    // No header timeout expires so soon.
    let line = timeout(Duration::from_secs(5), read_line(&mut halfway)).await;
    assert_eq!(line.expect("it ends"), "");
    drop(announced);
    listener.listener_task.await.expect("no panic");
}

#[tokio::test]
async fn a_silent_proxy_is_evicted_for_a_waiting_connection() {
    let listener = TestListener::start_with(announcing(), |limits| limits.connections = 3);
    let mut silent_connections = Vec::new();
    for _ in 0..3 {
        silent_connections.push(listener.connect(PROXY, "").await);
    }
    // It would be 10 s until the first has none any more.
    let hello = format!("{HEADER}hello\n");
    let response = timeout(Duration::from_secs(5), listener.response_to(PROXY, &hello));
    assert_eq!(response.await.expect("in time"), "203.0.113.7 true hello\n");
    assert_eq!(listener.hits.of(ConnectionLimit::IdleEviction), 1);
    assert_eq!(read_line(&mut silent_connections[0]).await, "");
}

/// A balancer that does not name the client of a connection counts as a client itself, as any shared address does.
#[tokio::test]
async fn unnamed_clients_count_for_the_proxy_address() {
    for header in [
        "PROXY UNKNOWN\r\n",
        "PROXY TCP4 127.0.0.2 192.0.2.1 5000 443\r\n",
    ] {
        let listener = TestListener::start(announcing());
        let hello = format!("{header}hello\n");
        let mut open = Vec::new();
        for _ in 0..2 {
            let mut stream = listener.connect(PROXY, &hello).await;
            assert!(read_line(&mut stream).await.starts_with("127.0.0.2 "));
            open.push(stream);
        }
        assert_eq!(listener.response_to(PROXY, &hello).await, "", "{header:?}");
    }
}
