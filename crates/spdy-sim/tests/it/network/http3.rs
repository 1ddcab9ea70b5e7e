//! HTTP/3 in virtual time: real QUIC over modelled links, compared with calculated values.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use spdy::body::Body;
use spdy::runtime::{Runtime, SharedRuntime};
use spdy_clock::Instant;
use spdy_frame::priority::Priority;
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::latch::Latch;
use spdy_net::limit::{ConnectionLimit, LimitHits};
use spdy_net::protocol::Protocol;
use spdy_net::quic::{self, QuicEndpoint};
use spdy_net::serve::{ServerOptions, serve_quic};
use spdy_net::tls::certificates::{KeyKind, LocalCa};
use spdy_net::tls::verify::Trust;
use spdy_net::tls::{ClientTls, KeyLogTarget, ServerTls, TlsOptions, TlsVersion};
use spdy_page::builtin;
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};
use spdy_sim::load::Load;
use spdy_sim::network::SimNetwork;
use spdy_sim::network::dns::NameLookups;
use spdy_sim::options::Options;
use spdy_sim::options::RaceProtocol;
use spdy_sim::race::{Race, RaceNetwork};
use spdy_sim::runtime::{Executor, ExecutorLimits};
use url::Url;

/// A page of one document of `len` bytes.
fn document(len: usize) -> Replica {
    let body: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
    let url = Url::parse("https://a.test/").unwrap();
    let document = Exchange::synthetic(url, Kind::Document, "text/plain", Bytes::from(body));
    Replica {
        name: "document".to_owned(),
        source: "made by a test".to_owned(),
        start: 0,
        exchanges: vec![Exchange {
            initiator: Initiator::Navigation,
            ..document
        }],
        ..builtin::flags()
    }
}

fn race(page: Replica, network: &str, protocol: RaceProtocol) -> Race {
    let mut race = Race::new(vec![page], vec![RaceNetwork::parse(network).unwrap()]);
    race.protocols = vec![protocol];
    race.options.name_lookups = NameLookups::HostsFile;
    race
}

fn one(race: &Race) -> Load {
    let load = race.run(|_| ()).remove(0);
    assert!(
        load.failures.is_empty(),
        "seed {}: {:?}",
        load.seed,
        load.failures
    );
    load
}

/// Loads as users see them: the JSON, and the waterfall, which is not in the JSON.
fn written(loads: &[Load]) -> Vec<String> {
    let json = |load: &Load| serde_json::to_string(load).unwrap();
    let loads = loads.iter();
    loads
        .map(|load| format!("{}\n{:?}", json(load), load.waterfall))
        .collect()
}

#[test]
fn first_byte_takes_two_round_trips_and_more_over_tcp() {
    for (protocol, tls, round_trips) in [
        (RaceProtocol::H3, TlsVersion::Tls13, 2.0),
        (RaceProtocol::H3, TlsVersion::Tls12, 2.0), // it has no choice
        (RaceProtocol::Http, TlsVersion::Tls13, 2.0),
        (RaceProtocol::H2, TlsVersion::Tls13, 3.0),
        (RaceProtocol::Https, TlsVersion::Tls12, 4.0),
    ] {
        let mut race = race(document(100), "rate=100mbit,rtt=100ms", protocol);
        race.options.tls = tls;
        let load = one(&race);
        let first_byte_ms = load.waterfall[0].first_byte.as_millis_f64();
        // At 100 Mbit/s a packet takes 0.12 ms. In each round trip at least one program waits for its 0.3 ms.
        let more = first_byte_ms - 100.3 * round_trips;
        assert!(
            (0.0..2.0).contains(&more),
            "{protocol} {tls}: {first_byte_ms} ms"
        );
    }
}

#[test]
fn a_large_object_fills_the_link() {
    const RTT_MS: f64 = 40.0;
    for mbit in [1.0, 10.0, 100.0] {
        let network = format!("rate={mbit}mbit,rtt={RTT_MS}ms");
        let load = one(&race(document(5_000_000), &network, RaceProtocol::H3));
        // Packets of 1,228 bytes, of which 1,200 are QUIC; after a header, a tag and a frame about 1,165 remain.
        assert!(
            load.bytes_down < 5_000_000 * 106 / 100,
            "{}",
            load.bytes_down
        );
        let line_ms = load.bytes_down as f64 * 8.0 / (mbit * 1000.0);
        // Two round trips to the first byte. Starting with ten packets, a window that doubles fills 100 Mbit/s after six.
        let more = load.load_ms - line_ms;
        assert!(
            (2.0 * RTT_MS..9.0 * RTT_MS).contains(&more),
            "{mbit} Mbit/s: {more} ms"
        );
        if mbit <= 10.0 {
            assert!(more < 4.0 * RTT_MS, "{mbit} Mbit/s: {more} ms");
        }
    }
}

#[test]
fn a_seed_gives_the_same_times_on_any_number_of_threads() {
    let network = "down=5mbit,up=1mbit,rtt=60ms,loss=2%";
    let loads = |threads, seed| {
        let mut race = race(builtin::portal(), network, RaceProtocol::H3);
        race.replicas.push(builtin::flags());
        (race.threads, race.runs, race.seed) = (NonZeroUsize::new(threads), 3, seed);
        written(&race.run(|_| ()))
    };
    let first = loads(1, 7);
    assert_eq!(first, loads(2, 7));
    for (first, other) in first.iter().zip(loads(2, 100)) {
        assert_ne!(*first, other);
    }
}

#[test]
fn every_byte_arrives_over_a_link_that_loses_and_over_one_that_is_slow() {
    for network in [
        "down=5mbit,up=1mbit,rtt=60ms,loss=5%",
        "rate=2mbit,rtt=300ms,loss=1%,jitter=20ms",
        "rate=20kbit,rtt=100ms",
    ] {
        let load = one(&race(builtin::flags(), network, RaceProtocol::H3));
        assert_eq!(load.requests, load.waterfall.len() as u64, "{network}");
    }
}

#[test]
fn connections_packets_and_bytes_are_counted_as_of_tcp() {
    let load = one(&race(
        builtin::portal(),
        "rate=10mbit,rtt=40ms",
        RaceProtocol::H3,
    ));
    let hosts: std::collections::BTreeSet<_> =
        load.waterfall.iter().map(|row| row.connection).collect();
    assert_eq!(load.connections, hosts.len() as u64);
    let bodies: u64 = load.waterfall.iter().map(|row| row.body_bytes).sum();
    assert!(load.bytes_down > bodies + 28 * load.packets_down);
    assert!(load.bytes_down < bodies * 12 / 10 + 5_000 * load.connections);
    assert!(load.packets_up > load.packets_down / 4, "acknowledgements");
    assert!(load.request_header_bytes_wire < load.request_header_bytes);
    assert!(load.response_header_bytes_wire < load.response_header_bytes);
    // Each connection ends with one packet.
    assert!(load.time_on_wire_ms < load.load_ms + 100.0);
}

/// The server's report on the end of its connection, and its time.
type ConnectionEnd = Arc<Mutex<Option<(bool, Instant)>>>;

/// Runs `with` on a client's connection to a server with 5 MB at every URL, 40 ms away over 10 Mbit/s. The queue has the size of a
/// round trip: quinn's slow start would fill a larger one up to the client's windows.
fn with_connection<F: Future>(
    options: ServerOptions,
    with: impl FnOnce(Connection, SharedRuntime, Latch, ConnectionEnd) -> F,
) -> F::Output {
    let executor = Executor::new(ExecutorLimits::default());
    let (sim, runtime) = (executor.runtime(), SharedRuntime::new(executor.runtime()));
    let links = RaceNetwork::parse("rate=10mbit,rtt=40ms,queue=33p").unwrap();
    let network = SimNetwork::new(sim.clone(), links.config(&Options::default()), 1);
    let ca = LocalCa::generate(KeyKind::Ed25519).unwrap();
    let mut tls_options = TlsOptions::default();
    tls_options.key_log = KeyLogTarget::Disabled;
    let identity = ca.issue(&["a.test".to_owned()], &[]).unwrap();
    let tls = ServerTls::new(&identity, &Protocol::ALL, &tls_options).unwrap();
    let address = SocketAddr::from(([198, 18, 0, 1], 443));
    let socket = network.bind(address).unwrap();
    let endpoint = QuicEndpoint::new(socket, &tls, &options, &runtime).unwrap();
    let (ended, stop) = (ConnectionEnd::default(), Latch::new());
    let (end, until, clock) = (ended.clone(), stop.clone(), runtime.clone());
    sim.spawn(Box::pin(async move {
        let incoming = endpoint.accept().await.expect("a client comes");
        let answer = |_: Request<Body>| async { Response::new(Body::full(vec![0; 5_000_000])) };
        let served = serve_quic(incoming, Arc::new(answer), &options, &clock, &until).await;
        *end.lock().unwrap() = Some((served.is_ok(), clock.now()));
        endpoint.accept().await; // no client connects, and the socket stays open
    }));
    let trust = Trust::only(vec![ca.certificate().clone()]);
    let tls = ClientTls::new(&trust, &tls_options).unwrap();
    let root = async {
        let options = ClientOptions::default();
        let connecting = quic::connect(&network, address, "a.test", &tls, 0, &options, &runtime);
        let (quic, ..) = connecting.await.expect("the server is there");
        let connection = Connection::start_http3(quic, 0, &options, &runtime);
        with(connection, runtime.clone(), stop, ended).await
    };
    executor.run(root).expect("it ends")
}

fn get() -> Request<Body> {
    Request::get("https://a.test/").body(Body::empty()).unwrap()
}

#[test]
fn a_connection_without_requests_is_ended_in_order() {
    let mut options = ServerOptions::default();
    options.timeouts.idle_timeout = Duration::from_secs(20);
    with_connection(options, |connection, runtime, _stop, ended| async move {
        let response = connection.send(get(), Priority::HIGHEST).await.unwrap();
        response.into_body().collect_up_to(1 << 30).await.unwrap();
        let idle_from = runtime.now();
        connection.closed().await;
        let idle = runtime.now() - idle_from;
        let seconds = idle.as_secs_f64();
        assert!((19.9..20.2).contains(&seconds), "{seconds} s");
        runtime
            .sleep_until(runtime.now() + Duration::from_millis(200))
            .await;
        let (is_fair, _) = ended.lock().unwrap().expect("it ended");
        assert!(is_fair);
    });
}

#[test]
fn an_unread_response_is_cancelled_and_counted() {
    let hits = LimitHits::default();
    let mut options = ServerOptions::default();
    options.hits = hits.clone();
    with_connection(options, |connection, runtime, _stop, _ended| async move {
        let unread = connection.send(get(), Priority::HIGHEST).await.unwrap();
        // The client's window for a stream is 1 MiB. It is full after a second, and then nothing moves.
        runtime.sleep_until(Instant::from_millis(59_000)).await;
        assert_eq!(hits.of(ConnectionLimit::WriteTimeout), 0);
        runtime.sleep_until(Instant::from_millis(63_000)).await;
        assert_eq!(hits.of(ConnectionLimit::WriteTimeout), 1);
        assert!(unread.into_body().collect_up_to(1 << 30).await.is_err());
        assert!(!connection.is_closing(), "it was one exchange's fault");
    });
}

#[test]
fn a_stopping_server_finishes_responses_and_rejects_new_requests() {
    with_connection(
        ServerOptions::default(),
        |connection, runtime, stop, ended| async move {
            let begun = connection.send(get(), Priority::HIGHEST).await.unwrap();
            stop.set();
            // This request crosses GOAWAY.
            let late = connection.send(get(), Priority::HIGHEST).await.unwrap_err();
            assert_eq!(late.retry, spdy_net::error::Retry::Always);
            let body = begun.into_body().collect_up_to(1 << 30).await.unwrap();
            assert_eq!(body.len(), 5_000_000);
            connection.closed().await;
            assert!(runtime.now() < Instant::from_millis(5_000));
            runtime
                .sleep_until(runtime.now() + Duration::from_millis(200))
                .await;
            assert!(ended.lock().unwrap().expect("it ended").0);
        },
    );
}

#[test]
fn urgent_responses_overtake_earlier_requests() {
    with_connection(
        ServerOptions::default(),
        |connection, runtime, _stop, _ended| async move {
            let done = |priority| {
                let (response, runtime) = (connection.send(get(), priority), runtime.clone());
                async move {
                    let body = response.await.unwrap().into_body();
                    body.collect_up_to(1 << 30).await.unwrap();
                    runtime.now()
                }
            };
            let (later, urgent) = futures_util::future::join(done(Priority::LOWEST), async {
                runtime.sleep_until(Instant::from_millis(500)).await;
                done(Priority::HIGHEST).await
            })
            .await;
            // 5 MB take 4.2 s. The first response had 0.4 s of them, and then waits for the other.
            let (later, urgent) = (later.as_millis_f64(), urgent.as_millis_f64());
            assert!((4_600.0..5_400.0).contains(&urgent), "{urgent} ms");
            assert!((8_200.0..9_000.0).contains(&later), "{later} ms");
        },
    );
}
