//! Early data (0-RTT): requests before the handshake is complete, replays, and rejections (RFC 8446 §8, RFC 8470).
//!
//! The clients reach the server through a [`Relay`], which passes no packet of the server until a test says so: the handshake cannot be
//! complete before.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use http::{Method, Request, Response, StatusCode};
use parking_lot::Mutex;
use rustls::pki_types::CertificateDer;
use spdy::body::Body;
use spdy_frame::priority::Priority;
use spdy_h3::client::Http3Client;
use spdy_h3::quic::{self, QuicEndpoint};
use spdy_h3::serve::serve_quic;
use spdy_net_core::early_data::EarlyData;
use spdy_net_core::error::{ExchangeError, Retry};
use spdy_net_core::handler::Handler;
use spdy_net_core::latch::Latch;
use spdy_net_core::network::{Network, SystemNetwork};
use spdy_net_core::options::{ClientOptions, ServerOptions};
use spdy_net_core::protocol::Protocol;
use spdy_net_core::tls::certificates::{Identity, KeyKind, LocalCa};
use spdy_net_core::tls::verify::Trust;
use spdy_net_core::tls::{ClientTls, ServerTls};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;

use crate::support::http3::{CONTROL, LOOPBACK, announced, outcome, uni};
use crate::support::{get, post, read, runtime, without_key_log};

/// What a handler got: the method and the path of a request, and whether its handshake was not complete.
type Handled = (Method, String, bool);

/// Servers in one process with the same sessions, and the client's side of TLS.
struct World {
    server: ServerTls,
    client: ClientTls,
    ca: CertificateDer<'static>,
    identity: Identity,
    handler: Arc<dyn Handler>,
    handled: mpsc::UnboundedReceiver<Handled>,
}

impl World {
    fn new() -> Self {
        Self::answering(|_, _| StatusCode::OK)
    }

    /// Servers whose status depends on the request, and on whether it is early.
    fn answering(
        status: impl Fn(&Request<Body>, bool) -> StatusCode + Send + Sync + 'static,
    ) -> Self {
        let ca = LocalCa::generate(KeyKind::EcdsaP256).unwrap();
        let identity = ca.issue(&["localhost".to_owned()], &[]).unwrap();
        let trust = Trust::only(vec![ca.certificate().clone()]);
        let (sender, handled) = mpsc::unbounded_channel();
        let handler = move |request: Request<Body>| {
            let early = request.extensions().get::<EarlyData>();
            let is_early = early.is_some_and(EarlyData::is_pending);
            let path = request.uri().path().to_owned();
            let _ = sender.send((request.method().clone(), path, is_early));
            let mut response = Response::new(Body::full(format!("early: {is_early}")));
            *response.status_mut() = status(&request, is_early);
            async { response }
        };
        Self {
            server: ServerTls::new(&identity, &[Protocol::Http3], &without_key_log()).unwrap(),
            client: ClientTls::new(&trust, &without_key_log()).unwrap(),
            ca: ca.certificate().clone(),
            identity,
            handler: Arc::new(handler),
            handled,
        }
    }

    /// Serves `tls` at a port of loopback.
    fn serve(&self, tls: &ServerTls) -> SocketAddr {
        let (runtime, options) = (runtime(), ServerOptions::default());
        let socket = SystemNetwork.datagrams(LOOPBACK).unwrap();
        let endpoint = QuicEndpoint::new(socket, tls, &options, &runtime).unwrap();
        let address = endpoint.address().unwrap();
        let handler = self.handler.clone();
        tokio::spawn(async move {
            while let Some(incoming) = endpoint.accept().await {
                let (handler, options, runtime) =
                    (handler.clone(), options.clone(), runtime.clone());
                tokio::spawn(async move {
                    let _ = serve_quic(incoming, handler, &options, &runtime, &Latch::new()).await;
                });
            }
        });
        address
    }

    /// Connects to `address`, in early data if possible. Returns whether it is.
    async fn connect(&self, address: SocketAddr) -> (Http3Client, bool) {
        let (options, runtime) = (ClientOptions::default(), runtime());
        let (network, tls) = (SystemNetwork, &self.client);
        let connecting =
            quic::connect_early(&network, address, "localhost", tls, 0, &options, &runtime);
        let (quic, ..) = connecting.await.unwrap();
        let is_early = quic.pending_handshake().is_some();
        let client = Http3Client::start(quic, &options, None, &runtime);
        (client, is_early)
    }

    /// A first visit of the server at `address`, after which the client has tickets.
    async fn visit(&mut self, address: SocketAddr) {
        let (client, is_early) = self.connect(address).await;
        assert!(!is_early, "there was no session yet");
        let answer = client.send(get("/first"), Priority::HIGHEST).await;
        assert_eq!(text(answer).await, "early: false");
        client.close();
        client.closed().await;
        assert_eq!(self.next().await, (Method::GET, "/first".to_owned(), false));
    }

    /// A server with the same identity and no sessions.
    fn other_server(&self) -> ServerTls {
        ServerTls::new(&self.identity, &[Protocol::Http3], &without_key_log()).unwrap()
    }

    /// A client of QUIC that stores tickets, for a test that writes its own bytes.
    fn raw_client(&self) -> quinn::ClientConfig {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.ca.clone()).unwrap();
        let mut tls = rustls::ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        tls.enable_early_data = true;
        let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(tls).unwrap();
        quinn::ClientConfig::new(Arc::new(crypto))
    }

    async fn next(&mut self) -> Handled {
        self.handled.recv().await.expect("the servers run")
    }
}

async fn text(response: Result<Response<Body>, ExchangeError>) -> String {
    let response = response.unwrap_or_else(|error| panic!("{error}"));
    String::from_utf8(read(response).await.unwrap().to_vec()).unwrap()
}

/// Passes the packets of a client to a server, and those of the server back once it is opened.
struct Relay {
    address: SocketAddr,
    open: Latch,
    /// What the client sent.
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Relay {
    async fn to(server: SocketAddr) -> Self {
        let (front, back) = (
            UdpSocket::bind(LOOPBACK).await,
            UdpSocket::bind(LOOPBACK).await,
        );
        let (front, back) = (Arc::new(front.unwrap()), Arc::new(back.unwrap()));
        let relay = Self {
            address: front.local_addr().unwrap(),
            open: Latch::new(),
            sent: Arc::default(),
        };
        let client = Arc::new(Mutex::new(None));
        let (sent, came_from) = (relay.sent.clone(), client.clone());
        let (inwards, outwards) = (front.clone(), back.clone());
        tokio::spawn(async move {
            let mut packet = [0; 2048];
            loop {
                let (len, from) = inwards.recv_from(&mut packet).await.unwrap();
                *came_from.lock() = Some(from);
                sent.lock().push(packet[..len].to_vec());
                outwards.send_to(&packet[..len], server).await.unwrap();
            }
        });
        let open = relay.open.clone();
        tokio::spawn(async move {
            open.wait().await;
            let mut packet = [0; 2048];
            loop {
                let (len, _) = back.recv_from(&mut packet).await.unwrap();
                let to = client.lock().expect("the client sent the first packet");
                let _ = front.send_to(&packet[..len], to).await; // the client may be gone
            }
        });
        relay
    }

    /// Sends to `server`, from another address, all that the client has sent.
    async fn replay_to(&self, server: SocketAddr) {
        let attacker = UdpSocket::bind(LOOPBACK).await.unwrap();
        let sent = self.sent.lock().clone();
        for packet in sent {
            attacker.send_to(&packet, server).await.unwrap();
        }
    }
}

fn early(path: &str) -> Handled {
    (Method::GET, path.to_owned(), true)
}

fn late(method: Method, path: &str) -> Handled {
    (method, path.to_owned(), false)
}

#[tokio::test]
async fn a_returning_client_is_answered_before_the_handshake_is_complete() {
    let mut world = World::new();
    let server = world.serve(&world.server);
    world.visit(server).await;
    let relay = Relay::to(server).await;
    let (client, is_early) = world.connect(relay.address).await;
    assert!(is_early, "the client has a ticket");
    let answer = tokio::spawn(client.send(get("/second"), Priority::HIGHEST));
    // No packet of the server has arrived at the client.
    assert_eq!(world.next().await, early("/second"));
    relay.open.set();
    assert_eq!(text(answer.await.unwrap()).await, "early: true");
    // The connection goes on as any other.
    let answer = client
        .send(post("/third", "content"), Priority::HIGHEST)
        .await;
    assert_eq!(text(answer).await, "early: false");
    assert_eq!(world.next().await, late(Method::POST, "/third"));
    assert!(client.peer_certificates().is_some_and(|it| !it.is_empty()));
}

/// RFC 8446 §8.1: a ticket works once in a process, whatever the listener.
#[tokio::test]
async fn a_replayed_first_flight_is_not_early_data_again() {
    let mut world = World::new();
    let servers = [world.serve(&world.server), world.serve(&world.server)];
    world.visit(servers[0]).await;
    let relay = Relay::to(servers[0]).await;
    let (client, _) = world.connect(relay.address).await;
    let answer = tokio::spawn(client.send(get("/once"), Priority::HIGHEST));
    assert_eq!(world.next().await, early("/once"));
    for server in servers {
        relay.replay_to(server).await;
        // The server reads its socket in order, so it has read the replay before this.
        let (visitor, _) = world.connect(server).await;
        text(visitor.send(get("/visit"), Priority::HIGHEST).await).await;
        let (method, path, _) = world.next().await;
        assert_eq!((method, path.as_str()), (Method::GET, "/visit"));
    }
    relay.open.set();
    assert_eq!(text(answer.await.unwrap()).await, "early: true");
    assert!(world.handled.try_recv().is_err(), "a replay was handled");
}

#[tokio::test]
async fn requests_that_may_not_be_repeated_wait_at_the_server() {
    let mut world = World::new();
    let server = world.serve(&world.server);
    let config = world.raw_client();
    let endpoint = quinn::Endpoint::client(LOOPBACK).unwrap();
    let request = |method: u8, path: u8| {
        let block = [
            &[0, 0, method, 0xd7][..],
            b"\x50\x09localhost\x51\x02/",
            &[path],
        ]
        .concat();
        announced(1, block.len(), &block)
    };
    let (get, post) = (|path| request(0xd1, path), |path| request(0xd4, path));
    let first = endpoint.connect_with(config.clone(), server, "localhost");
    let first = first.unwrap().await.unwrap();
    assert_eq!(outcome(&first, &get(b'0')).await, None);
    assert_eq!(world.next().await, late(Method::GET, "/0"));

    let relay = Relay::to(server).await;
    let again = endpoint.connect_with(config, relay.address, "localhost");
    let (again, accepted) = again.unwrap().into_0rtt().expect("the client has a ticket");
    let _control = uni(&again, CONTROL, false).await;
    let mut streams = Vec::new();
    for (request, ends) in [
        (post(b'1'), true),
        ([post(b'2'), announced(0, 4, b"data")].concat(), true),
        (get(b'3'), false),
        ([get(b'4'), announced(0, 4, b"data")].concat(), true),
        (get(b'5'), true),
    ] {
        let (mut send, recv) = again.open_bi().await.unwrap();
        send.write_all(&request).await.unwrap();
        if ends {
            send.finish().unwrap();
        }
        streams.push((send, recv));
    }
    assert_eq!(world.next().await, early("/5"));
    assert!(world.handled.try_recv().is_err(), "the others wait");
    relay.open.set();
    assert!(accepted.await);
    let mut others = Vec::new();
    for _ in 1..5 {
        others.push(world.next().await);
    }
    others.sort_by(|a, b| a.1.cmp(&b.1));
    let expected = [
        late(Method::POST, "/1"),
        late(Method::POST, "/2"),
        late(Method::GET, "/3"),
        late(Method::GET, "/4"),
    ];
    assert_eq!(others, expected);
}

#[tokio::test]
async fn a_client_sends_other_methods_and_content_after_the_handshake() {
    let mut world = World::new();
    let server = world.serve(&world.server);
    world.visit(server).await;
    let relay = Relay::to(server).await;
    let (client, _) = world.connect(relay.address).await;
    let upload = tokio::spawn(client.send(post("/post", "content"), Priority::HIGHEST));
    let mut delete = get("/delete");
    *delete.method_mut() = Method::DELETE;
    let delete = tokio::spawn(client.send(delete, Priority::HIGHEST));
    let answer = tokio::spawn(client.send(get("/get"), Priority::new(7)));
    assert_eq!(world.next().await, early("/get"));
    relay.open.set();
    for sent in [upload, delete] {
        assert_eq!(text(sent.await.unwrap()).await, "early: false");
        assert!(!world.next().await.2);
    }
    assert_eq!(text(answer.await.unwrap()).await, "early: true");
}

/// A server that was started again has no sessions: it does a full handshake.
#[tokio::test]
async fn requests_whose_early_data_is_rejected_are_sent_again() {
    let mut world = World::new();
    let server = world.serve(&world.server);
    world.visit(server).await;
    let restarted = world.serve(&world.other_server());
    let relay = Relay::to(restarted).await;
    let (client, is_early) = world.connect(relay.address).await;
    assert!(is_early, "the client has a ticket");
    let cancelled = tokio::spawn(client.send(get("/cancelled"), Priority::HIGHEST));
    let sent: Vec<_> = (0..20)
        .map(|at| tokio::spawn(client.send(get(&format!("/{at}")), Priority::HIGHEST)))
        .collect();
    let upload = tokio::spawn(client.send(post("/post", "content"), Priority::HIGHEST));
    tokio::task::yield_now().await;
    cancelled.abort();
    relay.open.set();
    for answer in join_all(sent.into_iter().chain([upload])).await {
        assert_eq!(text(answer.unwrap()).await, "early: false");
    }
    for _ in 0..21 {
        assert!(!world.next().await.2);
    }
    assert!(
        world.handled.try_recv().is_err(),
        "each request is handled once"
    );
    assert!(client.peer_certificates().is_some_and(|it| !it.is_empty()));
    let again = client.send(get("/again"), Priority::HIGHEST).await;
    assert_eq!(text(again).await, "early: false");
}

/// RFC 8470 §5.2.
#[tokio::test]
async fn a_response_of_425_is_retried_once_the_handshake_is_complete() {
    let mut world = World::answering(|request, is_early| match is_early {
        true if request.uri().path() != "/first" => StatusCode::TOO_EARLY,
        _ => StatusCode::OK,
    });
    let server = world.serve(&world.server);
    world.visit(server).await;
    let relay = Relay::to(server).await;
    let (client, _) = world.connect(relay.address).await;
    let mut marked = get("/marked");
    let one = "1".parse().unwrap();
    marked.headers_mut().insert("early-data", one);
    let answer = tokio::spawn(client.send(get("/retried"), Priority::HIGHEST));
    assert_eq!(world.next().await, early("/retried"));
    let forwarded = tokio::spawn(client.send(marked, Priority::HIGHEST));
    assert_eq!(world.next().await, early("/marked"));
    relay.open.set();
    assert_eq!(text(answer.await.unwrap()).await, "early: false");
    assert_eq!(world.next().await, late(Method::GET, "/retried"));
    // An earlier hop must decide that.
    let forwarded = forwarded.await.unwrap().unwrap();
    assert_eq!(forwarded.status(), StatusCode::TOO_EARLY);
}

#[tokio::test]
async fn requests_of_a_handshake_that_takes_too_long_fail() {
    let mut world = World::new();
    let server = world.serve(&world.server);
    world.visit(server).await;
    let silent = UdpSocket::bind(LOOPBACK).await.unwrap();
    let (options, runtime) = (ClientOptions::default(), runtime());
    let to = silent.local_addr().unwrap();
    let (network, tls) = (SystemNetwork, &world.client);
    let connecting = quic::connect_early(&network, to, "localhost", tls, 0, &options, &runtime);
    let (quic, ..) = connecting.await.unwrap();
    let handshake = quic.pending_handshake().expect("the client has a ticket");
    let client = Http3Client::start(quic, &options, None, &runtime);
    let answers = [get("/early"), post("/late", "content")]
        .map(|request| tokio::spawn(client.send(request, Priority::HIGHEST)));
    assert!(
        !handshake
            .complete_within(Some(Duration::ZERO), &runtime)
            .await
    );
    for answer in answers {
        let error = answer.await.unwrap().unwrap_err();
        assert!(error.retry != Retry::Never, "{error}");
    }
    client.closed().await;
}
