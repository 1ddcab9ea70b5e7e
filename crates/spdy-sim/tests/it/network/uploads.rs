//! Upload times over a link with a large bandwidth-delay product, by every protocol, and the amount of an upload that waits for a
//! reader that stops. In virtual time: TCP of `spdy-netem`, and quinn's QUIC.
#![allow(
    clippy::print_stdout,
    reason = "docs/measurements/throughput.md has what is printed"
)]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::stream;
use http::{Request, Response};
use http_body::Body as _;
use spdy::body::Body;
use spdy::runtime::{Runtime, SharedRuntime};
use spdy_frame::priority::Priority;
use spdy_frame::version::Version;
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::handler::Handler;
use spdy_net::latch::Latch;
use spdy_net::network::{BoxIo, Network, SharedNetwork};
use spdy_net::protocol::Protocol;
use spdy_net::quic::{self, QuicEndpoint};
use spdy_net::serve::{ServerOptions, serve_connection, serve_quic};
use spdy_net::tls::certificates::{KeyKind, LocalCa};
use spdy_net::tls::verify::Trust;
use spdy_net::tls::{ClientTls, KeyLogTarget, ServerTls, TlsOptions};
use spdy_net::wall_clock::WallClock;
use spdy_proxy::config::Config;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::sites::site_table::Sites;
use spdy_proxy::upstream::client::Upstream;
use spdy_rewrite::rules::capability::Keys;
use spdy_sim::network::SimNetwork;
use spdy_sim::options::Options;
use spdy_sim::race::RaceNetwork;
use spdy_sim::runtime::SimRuntime;
use spdy_sim::runtime::{Executor, ExecutorLimits};

/// Protocols with their own windows.
const WITH_WINDOWS: [Protocol; 4] = [
    Protocol::Http2,
    Protocol::Http3,
    Protocol::Spdy(Version::V31),
    Protocol::Spdy(Version::V3),
];
/// 500 kB in flight. The queue has the size of a round trip, so that no protocol has losses that another does not have.
const LINK: &str = "rate=40mbit,rtt=100ms,queue=512kib";
const MIB: usize = 1024 * 1024;
const LEN: usize = 8 * MIB;

fn quiet() -> TlsOptions {
    let mut options = TlsOptions::default();
    options.key_log = KeyLogTarget::Disabled;
    options
}

fn address() -> SocketAddr {
    SocketAddr::from(([198, 18, 0, 1], 443))
}

/// Serves every TCP connection to [`address`] in `network` by `handler`.
fn listen(
    network: &SimNetwork,
    sim: &SimRuntime,
    protocol: Protocol,
    handler: &Arc<dyn Handler>,
    options: &ServerOptions,
) {
    let (sim, handler, options) = (sim.clone(), handler.clone(), options.clone());
    let acceptor = move |io: BoxIo| {
        let (runtime, handler, options) = (
            SharedRuntime::new(sim.clone()),
            handler.clone(),
            options.clone(),
        );
        sim.spawn(Box::pin(async move {
            let (protocols, stop) = ([protocol], Latch::new());
            let served = serve_connection(io, handler, &protocols, None, &options, &runtime, &stop);
            let _ = served.await;
        }));
    };
    network.listen(address(), Arc::new(acceptor));
}

/// Runs `with` on a connection of `protocol` to `handler` over `link`; the handler is created in that run.
fn with_connection<T, F: Future<Output = T>>(
    protocol: Protocol,
    link: &str,
    handler: impl FnOnce(&SimRuntime) -> Arc<dyn Handler>,
    with: impl FnOnce(Connection, SharedRuntime) -> F,
) -> T {
    let executor = Executor::new(ExecutorLimits::default());
    let (sim, runtime) = (executor.runtime(), SharedRuntime::new(executor.runtime()));
    let links = RaceNetwork::parse(link).unwrap();
    let network = SimNetwork::new(sim.clone(), links.config(&Options::default()), 1);
    let (handler, options) = (handler(&sim), ServerOptions::default());
    let ca = LocalCa::generate(KeyKind::Ed25519).unwrap();
    if protocol == Protocol::Http3 {
        let identity = ca.issue(&["a.test".to_owned()], &[]).unwrap();
        let tls = ServerTls::new(&identity, &Protocol::ALL, &quiet()).unwrap();
        let socket = network.bind(address()).unwrap();
        let endpoint = QuicEndpoint::new(socket, &tls, &options, &runtime).unwrap();
        let clock = runtime.clone();
        sim.spawn(Box::pin(async move {
            let incoming = endpoint.accept().await.expect("a client comes");
            let stop = Latch::new();
            let _ = serve_quic(incoming, handler, &options, &clock, &stop).await;
            endpoint.accept().await; // no client connects, and the socket stays open
        }));
    } else {
        listen(&network, &sim, protocol, &handler, &options);
    }
    let trust = Trust::only(vec![ca.certificate().clone()]);
    let tls = ClientTls::new(&trust, &quiet()).unwrap();
    let root = async {
        let options = ClientOptions::default();
        let connection = if protocol == Protocol::Http3 {
            let to = address();
            let connecting = quic::connect(&network, to, "a.test", &tls, 0, &options, &runtime);
            let (quic, ..) = connecting.await.expect("the server is there");
            Connection::start_http3(quic, 0, &options, &runtime)
        } else {
            let io = network.connect(address()).await.unwrap();
            let starting = Connection::start(io, protocol, 0, &options, &runtime);
            starting.await.unwrap()
        };
        with(connection, runtime.clone()).await
    };
    executor.run(root).expect("it ends")
}

/// Reads a request's body, and responds with as many bytes as `x-answer` states.
async fn read_all(request: Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let Ok(body) = body.collect_up_to(1 << 30).await else {
        return Response::builder().status(400).body(Body::empty()).unwrap();
    };
    let field = head.headers.get("x-answer");
    let answer = match field.and_then(|field| field.to_str().ok()?.parse().ok()) {
        Some(len) => Body::full(vec![7; len]),
        None => Body::full(body.len().to_string()),
    };
    Response::new(answer)
}

fn post(body: Body) -> Request<Body> {
    let request = Request::post("http://www.site.test/");
    request.body(body).unwrap()
}

/// Seconds from the request to the last byte of the response, with an upload of `LEN` bytes.
fn upload_seconds(
    protocol: Protocol,
    handler: impl FnOnce(&SimRuntime) -> Arc<dyn Handler>,
) -> f64 {
    with_connection(protocol, LINK, handler, async |connection, runtime| {
        let begun = runtime.now();
        let request = post(Body::full(vec![7; LEN]));
        let answer = connection.send(request, Priority::HIGHEST).await.unwrap();
        let answer = answer.into_body().collect_up_to(1000).await.unwrap();
        assert_eq!(answer, LEN.to_string(), "{protocol}");
        (runtime.now() - begun).as_secs_f64()
    })
}

fn assert_as_fast_as_http1(seconds: impl Fn(Protocol) -> f64) {
    let http1 = seconds(Protocol::Http1);
    let all = WITH_WINDOWS.map(|protocol| (protocol.to_string(), seconds(protocol)));
    println!("http/1.1 {http1:.2} s, {all:.2?}");
    for (protocol, seconds) in &all {
        assert!(
            *seconds < 1.3 * http1,
            "{protocol} took {seconds:.2} s, http/1.1 {http1:.2} s; all: {all:.2?}"
        );
    }
}

/// Regression: uploads took a round trip for each 64 KiB: h2 16 s where HTTP/1.1 took 2.6 s.
#[test]
fn an_upload_over_a_long_link_takes_no_longer_than_by_http1() {
    assert_as_fast_as_http1(|protocol| upload_seconds(protocol, |_| Arc::new(read_all)));
}

#[test]
fn a_download_over_a_long_link_takes_no_longer_than_by_http1() {
    assert_as_fast_as_http1(|protocol| {
        let handler = |_: &SimRuntime| -> Arc<dyn Handler> { Arc::new(read_all) };
        with_connection(protocol, LINK, handler, async |connection, runtime| {
            let begun = runtime.now();
            let request = Request::get("http://www.site.test/").header("x-answer", LEN);
            let request = request.body(Body::empty()).unwrap();
            let answer = connection.send(request, Priority::HIGHEST).await.unwrap();
            let answer = answer.into_body().collect_up_to(LEN).await.unwrap();
            assert_eq!(answer.len(), LEN, "{protocol}");
            (runtime.now() - begun).as_secs_f64()
        })
    });
}

/// An accelerator with an HTTP/1.1 `origin` 1 ms behind it.
fn accelerator(sim: &SimRuntime, origin: &Arc<dyn Handler>) -> Arc<dyn Handler> {
    let text = "[[site]]\nnames = ['www.site.test']\norigin = 'http://198.18.0.1:443'\n";
    let config = Config::parse(text).expect("a good one");
    let keys = Keys::from_secrets(&[7; 32], None).expect("long enough");
    let sites = Sites::compile(&config, &keys).expect("good sites");
    let runtime = SharedRuntime::new(sim.clone());
    let behind = RaceNetwork::parse("rate=1gbit,rtt=1ms").unwrap();
    let behind = SimNetwork::new(sim.clone(), behind.config(&Options::default()), 2);
    let options = ServerOptions::default();
    listen(&behind, sim, Protocol::Http1, origin, &options);
    let network: SharedNetwork = Arc::new(behind);
    let guarded = network.clone();
    let upstream = Upstream::new(&config.upstream, None, &sites, network, guarded, &runtime);
    let calendar = WallClock::FromEpoch(std::time::UNIX_EPOCH + Duration::from_secs(1_800_000_000));
    let (cache, learn) = (&config.cache, &config.learn);
    let proxy = Proxy::new(sites, upstream, cache, learn, runtime, calendar);
    let client = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    Arc::new(move |request| {
        let proxy = proxy.clone();
        async move { proxy.answer(request, Some(client)).await }
    })
}

#[test]
fn an_upload_through_the_accelerator_takes_no_longer_than_by_http1() {
    let before = |sim: &SimRuntime| {
        let origin: Arc<dyn Handler> = Arc::new(read_all);
        accelerator(sim, &origin)
    };
    assert_as_fast_as_http1(|protocol| upload_seconds(protocol, before));
}

/// A body without an end, and the number of bytes read from it.
fn endless() -> (Body, Arc<AtomicUsize>) {
    const PIECE: Bytes = Bytes::from_static(&[7; 1024]);
    let taken = Arc::new(AtomicUsize::new(0));
    let count = taken.clone();
    let pieces = stream::repeat_with(move || {
        count.fetch_add(PIECE.len(), Ordering::Relaxed);
        Ok::<_, std::io::Error>(PIECE)
    });
    (Body::from_stream(pieces), taken)
}

/// Bytes of `uploads` that have left their client and that no reader has read, after each reader has stopped after `read` bytes.
/// `before` puts something between the clients and the readers.
fn unread_bytes(
    protocol: Protocol,
    uploads: usize,
    read: usize,
    before: impl FnOnce(&SimRuntime, &Arc<dyn Handler>) -> Arc<dyn Handler>,
) -> usize {
    let taken_by_readers = Arc::new(AtomicUsize::new(0));
    let count = taken_by_readers.clone();
    let reader = move |request: Request<Body>| {
        let count = count.clone();
        async move {
            let (mut body, mut had) = (request.into_body(), 0);
            while had < read {
                let next = std::future::poll_fn(|cx| std::pin::Pin::new(&mut body).poll_frame(cx));
                let data = next.await.unwrap().unwrap().into_data().unwrap();
                had += data.len();
                count.fetch_add(data.len(), Ordering::Relaxed);
            }
            std::future::pending().await
        }
    };
    // So fast that all of it arrives before any timeout.
    let link = "rate=400mbit,rtt=100ms";
    let handler = |sim: &SimRuntime| {
        let reader: Arc<dyn Handler> = Arc::new(reader);
        before(sim, &reader)
    };
    with_connection(protocol, link, handler, async |connection, runtime| {
        let (bodies, taken): (Vec<_>, Vec<_>) = (0..uploads).map(|_| endless()).unzip();
        let sending = bodies
            .into_iter()
            .map(|body| connection.send(post(body), Priority::HIGHEST));
        let until = runtime.sleep_until(runtime.now() + Duration::from_secs(50));
        let sending = Box::pin(join_all(sending));
        futures_util::future::select(sending, until).await;
        let taken: usize = taken
            .iter()
            .map(|taken| taken.load(Ordering::Relaxed))
            .sum();
        taken - taken_by_readers.load(Ordering::Relaxed)
    })
}

fn nothing(_: &SimRuntime, handler: &Arc<dyn Handler>) -> Arc<dyn Handler> {
    handler.clone()
}

/// Bytes that the client itself buffers of each upload that it cannot send.
const OWN: usize = 128 * 1024;

#[test]
fn an_unread_upload_stops_at_the_initial_window() {
    for protocol in WITH_WINDOWS {
        let first = match protocol {
            Protocol::Http3 => MIB, // QUIC's windows do not grow
            _ => 64 * 1024,
        };
        let unread = unread_bytes(protocol, 1, 0, nothing);
        // Over HTTP/3 the head of the request is in the window, too.
        assert!(
            (first - 4096..=first + OWN).contains(&unread),
            "{protocol}: {unread}"
        );
    }
}

#[test]
fn a_stalled_upload_stops_at_the_grown_window() {
    for protocol in WITH_WINDOWS {
        let unread = unread_bytes(protocol, 1, 4 * MIB, nothing);
        // Credit of less than half a window is not sent.
        assert!(
            (MIB / 2..=MIB + OWN).contains(&unread),
            "{protocol}: {unread}"
        );
    }
}

#[test]
fn stalled_uploads_share_the_growth_of_one_connection() {
    const UPLOADS: usize = 20;
    for protocol in WITH_WINDOWS {
        let unread = unread_bytes(protocol, UPLOADS, MIB, nothing);
        // 64 KiB of each, and 4 MiB in all; with HTTP/2 and HTTP/3 as much as the connection allows.
        let most = match protocol {
            Protocol::Spdy(_) => UPLOADS * 64 * 1024 + 4 * MIB,
            _ => 100 * 64 * 1024 + 4 * MIB,
        };
        println!("{protocol}: {unread} bytes of {most}");
        assert!(unread <= most + UPLOADS * OWN, "{protocol}: {unread}");
    }
}

#[test]
fn an_origin_that_stops_reading_stops_the_upload_to_the_accelerator() {
    // Buffers of the connection to the origin, which the accelerator has filled by then: both TCP buffers, and its HTTP/1.1 client.
    const TO_ORIGIN: usize = 4 * MIB;
    for protocol in WITH_WINDOWS {
        let unread = unread_bytes(protocol, 1, 4 * MIB, accelerator);
        println!("{protocol}: {unread} bytes");
        assert!(unread <= TO_ORIGIN + MIB + OWN, "{protocol}: {unread}");
    }
}
