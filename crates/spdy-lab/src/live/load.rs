//! One page load in real time, like [`load()`](spdy_sim::load::load) in virtual time.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use spdy::runtime::SharedRuntime;
use spdy_client::client::Client;
use spdy_net::network::SharedNetwork;
use spdy_net::protocol::Protocol;
use spdy_server::serve::ServeConfig;
use spdy_sim::load::{Load, LoadDriver, Page, SiteClients};
use spdy_sim::network::Traffic;
use spdy_sim::options::{Options, RaceProtocol};
use spdy_tun::cpu::CpuTime;
use spdy_tun::error::RealTimeError;
use spdy_tun::host::SERVER;
use spdy_tun::network::{CountRestart, RealNetwork};
use spdy_tun::stats::LinkStats;

use crate::live::addresses;
use crate::live::clock::{LiveRuntime, block_on};
use crate::live::gateway::process::Gateway;
use crate::live::network::LiveNetwork;
use crate::live::resolver::{self, Resolver};
use crate::live::server_side::ServerSide;

/// Time without packets after which a load is over.
const QUIET_FOR: Duration = Duration::from_millis(20);
/// Timeout for that.
const QUIET_TIMEOUT: Duration = Duration::from_secs(30);

/// Specification of a load.
#[derive(Clone, Debug)]
pub struct LoadSpec {
    /// The protocol.
    pub protocol: RaceProtocol,
    /// Name of the network, for the result.
    pub network: String,
    /// The seed of the link, for the result.
    pub seed: u64,
    /// All other options; TCP is always the kernel's.
    pub options: Options,
    /// Datagrams that a server sends over QUIC before the first acknowledgement; `None` for its default. TCP's initial window is set
    /// by the link's hosts.
    pub initial_window: Option<u32>,
    /// Timeout of the load; a longer load is cancelled, and incomplete.
    pub timeout: Duration,
}

/// A load with its measurements.
#[derive(Clone, Debug)]
pub struct LiveLoad {
    /// The result. `packets_*` and `bytes_*` are those that the link carried, and the time on wire is the link's.
    pub load: Load,
    /// Measurements of the link.
    pub measured: LinkStats,
    /// True if it exceeded its timeout.
    pub was_given_up: bool,
    /// CPU time of the client, the servers and a gateway, and their waits for a core; `None` if the system does not report it.
    pub hosts: Option<CpuTime>,
}

/// Loads `page` over `network`, whose link the caller has [begun](RealNetwork::begin), from `gateway` or else from our own servers.
///
/// # Errors
///
/// The link or the sockets of a host failed. An incomplete load is no error: it has failures.
pub fn load(
    network: &mut RealNetwork,
    page: &Arc<Page>,
    which: &LoadSpec,
    gateway: Option<&Gateway>,
) -> Result<LiveLoad, RealTimeError> {
    let (protocol, options) = (which.protocol, &which.options);
    let reached = addresses::assign_addresses(page.hosts(protocol, options));
    let servers = match gateway {
        None => own_servers(page, which, &reached),
        Some(gateway) => BTreeMap::from([(gateway.upstream(), upstream_config(page, which))]),
    };
    let names = Resolver::new(reached);
    let far_side = ServerSide {
        site: page.site().clone(),
        servers,
        names: names.clone(),
    };
    let sockets = |what| move |source| RealTimeError::Start { what, source };
    let serving = far_side
        .start(&network.server)
        .map_err(sockets("the servers"))?;
    let gateway_before = gateway.and_then(Gateway::cpu_times);
    let (page, which, counts) = (page.clone(), which.clone(), network.count_restart());
    let loaded = network
        .client
        .run(move || client_side(&page, &which, names, &counts));
    network.wait_until_quiet(QUIET_FOR, QUIET_TIMEOUT)?;
    let measured = network.measure()?;
    let served = serving.stop().map_err(sockets("the servers"))?;
    let gateway_after = gateway.and_then(Gateway::cpu_times);
    let gateway_time = match gateway {
        None => Some(CpuTime::default()),
        Some(_) => gateway_after
            .zip(gateway_before)
            .map(|(after, before)| after.since(&before)),
    };
    let ClientResult {
        mut load,
        was_given_up,
        computed,
    } = loaded.map_err(sockets("the client"))?;
    (load.packets_up, load.packets_down) = (measured.up.offered, measured.down.packets);
    load.time_on_wire_ms = measured.on_wire_ms.unwrap_or(0.0);
    (load.bytes_up, load.bytes_down) = (measured.up.bytes, measured.down.bytes);
    Ok(LiveLoad {
        was_given_up,
        load,
        measured,
        hosts: computed
            .zip(served.computed)
            .zip(gateway_time)
            .map(|((client, servers), gateway)| client + servers + gateway),
    })
}

/// Our own servers: one at each address of the page, on each of its ports.
fn own_servers(
    page: &Page,
    which: &LoadSpec,
    reached: &BTreeMap<String, Ipv4Addr>,
) -> BTreeMap<SocketAddrV4, ServeConfig> {
    let (protocol, options) = (which.protocol, &which.options);
    let ports = page.ports(protocol.is_secure());
    let mut servers = BTreeMap::new();
    for (host, &address) in reached {
        let spoken = page.protocol_for(protocol, options, host);
        let mut config = page.serve_config(protocol, spoken, options);
        if let Some(window) = which.initial_window {
            config.options.quic.initial_window = window;
        }
        let at = |&port: &u16| (SocketAddrV4::new(address, port), config.clone());
        servers.extend(ports.iter().map(at));
    }
    servers
}

/// The configuration of our site behind a gateway.
fn upstream_config(page: &Page, which: &LoadSpec) -> ServeConfig {
    ServeConfig {
        behind_tls: which.protocol.is_secure(),
        pusher: None,
        ..page.serve_config(RaceProtocol::Http, Protocol::Http1, &which.options)
    }
}

/// What the client's thread reports of a load.
struct ClientResult {
    load: Load,
    was_given_up: bool,
    computed: Option<CpuTime>,
}

/// Runs on the client's thread: the load, and its CPU time.
fn client_side(
    page: &Page,
    which: &LoadSpec,
    names: Resolver,
    counts: &CountRestart,
) -> io::Result<ClientResult> {
    let before = Mutex::new(CpuTime::of_this_thread());
    let loaded = block_on(async {
        let clock = LiveRuntime::start();
        let runtime = SharedRuntime::new(clock);
        let connections = Arc::new(AtomicU64::new(0));
        let network = LiveNetwork {
            runtime: runtime.clone(),
            resolver: SocketAddr::from((SERVER, resolver::PORT)),
            names,
            name_lookups: which.options.name_lookups,
            connections: connections.clone(),
        };
        let network: SharedNetwork = Arc::new(network);
        let clients = SiteClients::new(page, &which.options, |_| {
            let config = page.client_config(which.protocol, &which.options);
            Client::new(runtime.clone(), network.clone(), config)
        });
        let tab = LoadDriver::new(page, which.protocol, &which.options, &clients, &clock);
        let whole = async {
            tab.run(&|| {
                counts.restart();
                connections.store(0, Ordering::Relaxed);
                *before.lock() = CpuTime::of_this_thread();
            })
            .await;
            clients.close().await;
        };
        let ended = tokio::time::timeout(which.timeout, whole).await;
        let ended = ended.map_err(|_| format!("it was cancelled after {:?}", which.timeout));
        let traffic = Traffic {
            connections: connections.load(Ordering::Relaxed),
            ..Traffic::default()
        };
        let was_given_up = ended.is_err();
        let load = tab.into_load(&which.network, which.seed, ended, &traffic);
        Ok((load, was_given_up))
    });
    let computed = CpuTime::of_this_thread().zip(before.into_inner());
    let (load, was_given_up) = loaded?;
    Ok(ClientResult {
        load,
        was_given_up,
        computed: computed.map(|(after, before)| after - before),
    })
}
