//! The guard and the resolver of `spdy-resolver`, and the name server of `spdy-dns`, over modelled links in virtual time.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use spdy::runtime::{Runtime, SharedRuntime};
use spdy_clock::Instant;
use spdy_dns::serve::{DnsServer, ServeLimits};
use spdy_dns::zone_config::{NameConfig, ZoneConfig};
use spdy_dns::zones::{SharedZones, Zones};
use spdy_net::latch::Latch;
use spdy_net::network::Network;
use spdy_netem::loss::{LossModel, Probability};
use spdy_netem::path::PathConfig;
use spdy_netem::tcp::TcpConfig;
use spdy_resolver::address_rules::{AddressRules, OriginDenial};
use spdy_resolver::config::ResolverConfig;
use spdy_resolver::guarded_network::GuardedNetwork;
use spdy_resolver::own_names::OwnNames;
use spdy_resolver::resolver::Resolver;
use spdy_sim::network::dns::NameLookups;
use spdy_sim::network::{NetworkConfig, SimNetwork};
use spdy_sim::runtime::Executor;
use spdy_sim::runtime::SimRuntime;

/// Runs `client` on a path of 100 ms with this loss.
fn run<T>(
    loss_percent: u32,
    seed: u64,
    client: impl AsyncFnOnce(SimNetwork, SimRuntime) -> T,
) -> T {
    let mut path = PathConfig::new(10_000_000, 10_000_000, Duration::from_millis(100));
    let loss = Probability::from_ppb(loss_percent * 10_000_000).unwrap();
    path.loss_up = LossModel::bernoulli(loss);
    path.loss_down = LossModel::bernoulli(loss);
    let config = NetworkConfig {
        path,
        client_tcp: TcpConfig::today(),
        server_tcp: TcpConfig::today(),
        name_lookups: NameLookups::RoundTrip,
        program_latency: Duration::ZERO,
    };
    let executor = Executor::default();
    let runtime = executor.runtime();
    let network = SimNetwork::new(runtime.clone(), config, seed);
    executor
        .run(client(network, runtime))
        .unwrap_or_else(|stalled| panic!("seed {seed}: {stalled}"))
}

/// Public addresses by their number; in virtual time no other host has them.
const ORIGIN: [u8; 4] = [8, 0, 0, 1];

fn reason(error: &io::Error) -> &'static str {
    let denied = error
        .get_ref()
        .and_then(|reason| reason.downcast_ref::<OriginDenial>());
    denied.map_or("none", OriginDenial::reason)
}

#[test]
fn the_address_guard_refuses_the_same_in_virtual_time() {
    run(0, 1, async |network, runtime| {
        network.name("good.test", vec![ORIGIN.into()]);
        network.name("mixed.test", vec![ORIGIN.into(), [10, 0, 0, 1].into()]);
        let accept = |_| {};
        network.listen(SocketAddr::from((ORIGIN, 80)), Arc::new(accept));
        let canary = |_| panic!("connected to an address that the guard forbids");
        network.listen(SocketAddr::from(([10, 0, 0, 1], 80)), Arc::new(canary));
        let guarded = GuardedNetwork::new(Arc::new(network), AddressRules::default());

        let found = guarded.resolve("good.test").await.unwrap();
        assert_eq!(found, [IpAddr::from(ORIGIN)]);
        guarded.connect((ORIGIN, 80).into()).await.unwrap();
        let before = runtime.now();
        let refused = guarded.resolve("mixed.test").await.unwrap_err();
        assert_eq!(reason(&refused), "private");
        assert!(
            runtime.now() - before >= Duration::from_millis(100),
            "it was looked up"
        );
        let before = runtime.now();
        let refused = guarded.connect(([10, 0, 0, 1], 80).into()).await;
        assert_eq!(
            refused.map(drop).map_err(|error| reason(&error)),
            Err("private")
        );
        assert_eq!(runtime.now(), before); // without a packet
    });
}

/// Looks up a name over a lossy path, from a name server on it.
fn lookup(seed: u64) -> (Vec<IpAddr>, Instant) {
    run(20, seed, async |network, runtime| {
        let zone = ZoneConfig {
            apex: "origin.test".to_owned(),
            name_servers: vec!["ns.nowhere.test".to_owned()],
            contact: None,
            ttl: 60,
            negative_ttl: 30,
            names: vec![NameConfig {
                name: "www".to_owned(),
                addresses: vec![ORIGIN.into()],
                ..NameConfig::default()
            }],
        };
        let zones = SharedZones::new(Zones::new(&[zone]).unwrap());
        let shared = SharedRuntime::new(runtime.clone());
        let at = SocketAddr::from(([9, 9, 9, 9], 53));
        let socket = network.bind(at).unwrap();
        let (limits, stop) = (ServeLimits::default(), Latch::new());
        let server = DnsServer::over_datagrams(vec![socket], zones, limits, shared.clone());
        runtime.spawn(Box::pin(server.run(stop.clone())));

        let config = ResolverConfig {
            servers: vec![at],
            rounds: 10,
            ..ResolverConfig::default()
        };
        let own = OwnNames::default();
        let resolver = Resolver::new(Arc::new(network), shared, config, own, [7; 32]);
        let guarded = GuardedNetwork::new(Arc::new(resolver), AddressRules::default());
        let found = guarded.resolve("www.origin.test").await.unwrap();
        let took = runtime.now();
        // A cached answer costs no time, and expires with its TTL.
        assert_eq!(guarded.resolve("www.origin.test").await.unwrap(), found);
        assert_eq!(runtime.now(), took);
        runtime.sleep_until(took + Duration::from_secs(61)).await;
        let before = runtime.now();
        assert_eq!(guarded.resolve("www.origin.test").await.unwrap(), found);
        assert!(runtime.now() > before);
        stop.set();
        (found, took)
    })
}

#[test]
fn lookups_over_a_lossy_path_repeat_with_the_same_seed() {
    let mut times = Vec::new();
    for seed in 1..=8 {
        let (found, took) = lookup(seed);
        assert_eq!(found, [IpAddr::from(ORIGIN)], "seed {seed}");
        assert!(
            took >= Instant::ZERO + Duration::from_millis(100),
            "seed {seed}"
        );
        assert_eq!(lookup(seed), (found, took), "seed {seed}");
        times.push(took);
    }
    // In at least one run a packet was lost, and the query was sent again two seconds later.
    let lost = Instant::ZERO + Duration::from_secs(2);
    assert!(times.iter().any(|took| *took > lost), "{times:?}");
}
