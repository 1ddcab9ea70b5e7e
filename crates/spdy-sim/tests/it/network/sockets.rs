//! Sockets, names and packets in virtual time.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use spdy::runtime::Runtime;
use spdy_clock::Instant;
use spdy_net::network::{BoxIo, Network};
use spdy_netem::loss::{LossModel, Probability};
use spdy_netem::path::PathConfig;
use spdy_netem::tcp::TcpConfig;
use spdy_sim::network::dns::NameLookups;
use spdy_sim::network::{NetworkConfig, SimNetwork};
use spdy_sim::runtime::Executor;
use spdy_sim::runtime::SimRuntime;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const RTT: Duration = Duration::from_millis(100);

/// Ten megabits both ways and 100 ms: a packet of 40 bytes takes 32 µs to send.
fn config() -> NetworkConfig {
    NetworkConfig {
        path: PathConfig::new(10_000_000, 10_000_000, RTT),
        client_tcp: TcpConfig::today(),
        server_tcp: TcpConfig::today(),
        name_lookups: NameLookups::RoundTrip,
        program_latency: Duration::ZERO,
    }
}

fn lossy(percent: u32) -> NetworkConfig {
    let mut config = config();
    let loss = LossModel::bernoulli(Probability::from_ppb(percent * 10_000_000).unwrap());
    (config.path.loss_up, config.path.loss_down) = (loss, loss);
    config
}

fn server() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 80))
}

/// Runs `client` against servers that run `serve` for each connection.
fn with_server<T, S, F, C>(config: NetworkConfig, seed: u64, serve: S, client: C) -> T
where
    S: Fn(BoxIo, SimRuntime) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
    C: AsyncFnOnce(&SimNetwork, &SimRuntime) -> T,
{
    let executor = Executor::default();
    let runtime = executor.runtime();
    let network = SimNetwork::new(runtime.clone(), config, seed);
    let spawner = runtime.clone();
    let acceptor = move |io| spawner.spawn(Box::pin(serve(io, spawner.clone())));
    network.listen(server(), Arc::new(acceptor));
    network.name("a.test", vec![server().ip()]);
    executor
        .run(client(&network, &runtime))
        .unwrap_or_else(|stalled| panic!("seed {seed}: {stalled}"))
}

async fn echo(io: BoxIo, _: SimRuntime) {
    let (mut reader, mut writer) = tokio::io::split(io);
    let mut buffer = vec![0; 10_000];
    loop {
        match reader.read(&mut buffer).await {
            Ok(len) if len > 0 => writer.write_all(&buffer[..len]).await.unwrap(),
            _ => break,
        }
    }
    writer.shutdown().await.unwrap();
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 7) as u8)
        .collect()
}

fn ms(instant: Instant) -> f64 {
    instant.as_millis_f64()
}

#[test]
fn a_connection_is_established_after_one_round_trip() {
    let at = with_server(config(), 1, echo, async |network, runtime| {
        network.connect(server()).await.unwrap();
        runtime.now()
    });
    assert!((100.0..100.2).contains(&ms(at)), "{at}");
}

#[test]
fn bytes_arrive_complete_and_in_order_despite_losses() {
    for (seed, percent) in [(1, 0), (2, 1), (3, 5), (4, 20)] {
        let sent = pattern(200_000);
        let (received, traffic) = with_server(lossy(percent), seed, echo, async |network, _| {
            let io = network.connect(server()).await.unwrap();
            let (mut reader, mut writer) = tokio::io::split(io);
            let mut received = Vec::new();
            let write = async {
                writer.write_all(&sent).await.unwrap();
                writer.shutdown().await.unwrap();
            };
            let (_, read) =
                futures_util::future::join(write, reader.read_to_end(&mut received)).await;
            read.unwrap();
            (received, network.traffic())
        });
        assert!(
            received == sent,
            "seed {seed}, {percent} % loss: {} bytes of {}",
            received.len(),
            sent.len()
        );
        assert_eq!(traffic.losses > 0, percent > 0, "seed {seed}: {traffic:?}");
    }
}

#[test]
fn the_same_seed_repeats_to_the_nanosecond_and_another_does_not() {
    let run = |seed| {
        with_server(lossy(3), seed, echo, async |network, runtime| {
            let mut io = network.connect(server()).await.unwrap();
            io.write_all(&pattern(50_000)).await.unwrap();
            io.shutdown().await.unwrap();
            io.read_to_end(&mut Vec::new()).await.unwrap();
            (runtime.now(), network.traffic())
        })
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn connecting_without_a_listener_fails_after_one_round_trip() {
    let (error, at) = with_server(config(), 1, echo, async |network, runtime| {
        let unused_address = SocketAddr::from(([192, 0, 2, 99], 80));
        let error = network
            .connect(unused_address)
            .await
            .err()
            .map(|error| error.kind());
        (error, runtime.now())
    });
    assert_eq!(error, Some(io::ErrorKind::ConnectionRefused));
    assert!((100.0..100.2).contains(&ms(at)), "{at}");
}

#[test]
fn a_name_costs_one_round_trip_and_two_packets() {
    let (found, at, traffic) = with_server(config(), 1, echo, async |network, runtime| {
        (
            network.resolve("A.test").await.unwrap(),
            runtime.now(),
            network.traffic(),
        )
    });
    assert_eq!(found, [server().ip()]);
    assert!((100.0..100.2).contains(&ms(at)), "{at}");
    assert_eq!(
        (traffic.packets_up, traffic.packets_down, traffic.lookups),
        (1, 1, 1)
    );
    // 46 bytes and the six letters of the name; the response has one address more.
    assert_eq!((traffic.bytes_up, traffic.bytes_down), (52, 68));
}

#[test]
fn a_dns_answer_after_the_first_retry_is_accepted() {
    let mut slow = config();
    slow.path.rtt = Duration::from_millis(2_500);
    let (found, at, traffic) = with_server(slow, 1, echo, async |network, runtime| {
        (
            network.resolve("a.test").await.unwrap(),
            runtime.now(),
            network.traffic(),
        )
    });
    assert_eq!(found, [server().ip()]);
    assert!((2_500.0..2_500.2).contains(&ms(at)), "{at}");
    assert_eq!((traffic.packets_up, traffic.lookups), (2, 1));
}

#[test]
fn a_hosts_file_name_costs_nothing_and_an_address_is_its_own_name() {
    let config = NetworkConfig {
        name_lookups: NameLookups::HostsFile,
        ..config()
    };
    let (found, unknown, at, traffic) = with_server(config, 1, echo, async |network, runtime| {
        let found = [
            network.resolve("a.test").await.unwrap(),
            network.resolve("[2001:db8::1]").await.unwrap(),
        ];
        let unknown = network.resolve("b.test").await.unwrap_err().kind();
        (found, unknown, runtime.now(), network.traffic())
    });
    assert_eq!(
        found,
        [vec![server().ip()], vec!["2001:db8::1".parse().unwrap()]]
    );
    assert_eq!(unknown, io::ErrorKind::NotFound);
    assert_eq!((at, traffic.packets_up), (Instant::ZERO, 0));
}

#[test]
fn an_unknown_name_fails_after_one_round_trip() {
    let (error, at) = with_server(config(), 1, echo, async |network, runtime| {
        (network.resolve("b.test").await.unwrap_err(), runtime.now())
    });
    assert_eq!(error.to_string(), "unknown host \"b.test\"");
    assert!((100.0..100.2).contains(&ms(at)), "{at}");
}

#[test]
fn the_resolver_and_the_program_that_waits_for_it_need_their_latency() {
    let resolved_at = |program_latency| {
        let config = NetworkConfig {
            program_latency,
            ..config()
        };
        with_server(config, 1, echo, async |network, runtime| {
            network.resolve("a.test").await.unwrap();
            runtime.now()
        })
    };
    let latency = Duration::from_micros(300);
    let expected = resolved_at(Duration::ZERO) + latency + latency;
    assert_eq!(resolved_at(latency), expected);
}

#[test]
fn an_answer_of_the_resolver_follows_the_response_to_an_earlier_request() {
    // Seven packets, which take 8 ms on the link.
    async fn respond(mut io: BoxIo, _: SimRuntime) {
        io.read_exact(&mut [0]).await.unwrap();
        io.write_all(&pattern(10_000)).await.unwrap();
    }
    let lookup = |has_request: bool| {
        let config = NetworkConfig {
            program_latency: Duration::from_micros(300),
            ..config()
        };
        with_server(config, 1, respond, async move |network, runtime| {
            let mut io = network.connect(server()).await.unwrap();
            let began = runtime.now();
            if has_request {
                io.write_all(b"x").await.unwrap();
            }
            network.resolve("a.test").await.unwrap();
            runtime.now() - began
        })
    };
    let waited = lookup(true) - lookup(false);
    assert!(waited > Duration::from_millis(8), "{waited:?}");
}

#[test]
fn a_lost_dns_query_is_sent_five_times() {
    let (error, at, traffic) = with_server(lossy(100), 1, echo, async |network, runtime| {
        (
            network.resolve("a.test").await.unwrap_err().kind(),
            runtime.now(),
            network.traffic(),
        )
    });
    assert_eq!(error, io::ErrorKind::TimedOut);
    assert_eq!(
        (at, traffic.packets_up, traffic.losses),
        (Instant::from_millis(31_000), 5, 5)
    );
}

#[test]
fn a_peer_that_does_not_read_stops_the_writer() {
    let written = Arc::new(AtomicUsize::new(0));
    let count = written.clone();
    let pour = move |mut io: BoxIo, _| {
        let count = count.clone();
        async move {
            let piece = pattern(10_000);
            while let Ok(len) = io.write(&piece).await {
                count.fetch_add(len, Ordering::Relaxed);
            }
        }
    };
    let (before, after) = with_server(config(), 1, pour, async |network, runtime| {
        let mut io = network.connect(server()).await.unwrap();
        runtime.sleep_until(Instant::from_millis(30_000)).await;
        let before = written.load(Ordering::Relaxed);
        runtime.sleep_until(Instant::from_millis(60_000)).await;
        let after = written.load(Ordering::Relaxed);
        io.read_exact(&mut vec![0; before]).await.unwrap();
        (before, after)
    });
    // Unread data does not make the receive buffer of about 64 KiB grow. The rest waits to be sent: the send buffer grows with the
    // congestion window, which slow start may raise to twice the bytes in flight.
    assert!((60_000..1_000_000).contains(&before), "{before} bytes");
    assert_eq!(before, after);
}

#[test]
fn one_side_may_end_while_the_other_still_writes() {
    async fn answer_at_the_end(mut io: BoxIo, _: SimRuntime) {
        let mut received = Vec::new();
        io.read_to_end(&mut received).await.unwrap();
        io.write_all(&received.len().to_be_bytes()).await.unwrap();
        io.shutdown().await.unwrap();
    }
    let answer = with_server(config(), 1, answer_at_the_end, async |network, _| {
        let mut io = network.connect(server()).await.unwrap();
        io.write_all(&pattern(12_345)).await.unwrap();
        io.shutdown().await.unwrap();
        assert_eq!(
            io.write(b"x").await.unwrap_err().kind(),
            io::ErrorKind::BrokenPipe
        );
        let mut answer = Vec::new();
        io.read_to_end(&mut answer).await.unwrap();
        answer
    });
    assert_eq!(answer, 12_345_usize.to_be_bytes());
}

#[test]
fn a_socket_dropped_with_bytes_unread_resets_its_peer() {
    async fn drop_unread(mut io: BoxIo, runtime: SimRuntime) {
        io.write_all(b"hello").await.unwrap();
        runtime.sleep_until(Instant::from_millis(1_000)).await;
    }
    let error = with_server(config(), 1, drop_unread, async |network, _| {
        let mut io = network.connect(server()).await.unwrap();
        io.write_all(b"bytes left unread").await.unwrap();
        let mut hello = [0; 5];
        io.read_exact(&mut hello).await.unwrap();
        io.read_exact(&mut hello).await.unwrap_err().kind()
    });
    assert_eq!(error, io::ErrorKind::ConnectionReset);
}

#[test]
fn the_network_is_quiet_when_both_sides_have_closed() {
    let (at, traffic) = with_server(config(), 1, echo, async |network, runtime| {
        let mut io = network.connect(server()).await.unwrap();
        io.write_all(b"ping").await.unwrap();
        io.read_exact(&mut [0; 4]).await.unwrap();
        drop(io);
        network.quiet().await;
        (runtime.now(), network.traffic())
    });
    // Connect, ping, close: three round trips, and the last acknowledgement half of one more.
    assert!((350.0..350.5).contains(&ms(at)), "{at}");
    assert_eq!(traffic.connections, 1);
    assert!(
        traffic.packets_up >= 5 && traffic.packets_down >= 3,
        "{traffic:?}"
    );
    // The client's own traffic ends with the acknowledgement that it sends.
    let on_wire_ms = traffic.time_on_wire().as_nanos() as f64 / 1e6;
    assert!((300.0..300.5).contains(&on_wire_ms), "{on_wire_ms}");
}

/// A program reads what arrived within its latency together.
#[test]
fn a_program_handles_what_arrived_within_its_latency_together() {
    let latency = Duration::from_micros(300);
    let pieces = |program_latency| {
        let config = NetworkConfig {
            program_latency,
            ..config()
        };
        let send = |mut io: BoxIo, _| async move {
            for _ in 0..3 {
                io.write_all(&[0; 60]).await.unwrap(); // 90 µs to send, with its headers
            }
            let _closed = io.read(&mut [0]).await;
        };
        with_server(config, 1, send, async |network, runtime| {
            let mut io = network.connect(server()).await.unwrap();
            let mut pieces = Vec::new();
            let mut buffer = [0; 1000];
            while pieces
                .iter()
                .map(|piece: &(usize, Instant)| piece.0)
                .sum::<usize>()
                < 180
            {
                let length = io.read(&mut buffer).await.unwrap();
                pieces.push((length, runtime.now()));
            }
            pieces
        })
    };
    let lengths =
        |pieces: &[(usize, Instant)]| pieces.iter().map(|piece| piece.0).collect::<Vec<_>>();
    let at_once = pieces(Duration::ZERO);
    assert_eq!(lengths(&at_once), [60, 60, 60]);
    let later = pieces(latency);
    assert_eq!(lengths(&later), [180]);
    // The server accepts, and the client reads.
    assert_eq!(later[0].1, at_once[0].1 + 2 * latency);
}
