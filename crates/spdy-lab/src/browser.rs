//! One page load: the machine of [`page_load`](crate::page_load) over the client and the server that ship,
//! in virtual time.
//!
//! Only three things are exchanged for those of a real load: sockets, clock and chance. Every request is
//! built from the head that was recorded, every body is compared with the replica's byte by byte, and what
//! crossed the network is counted packet by packet.
//!
//! - **Scheme.** The protocol under test decides it: `http` is asked for in plain text, everything else in
//!   TLS, whatever the recording used. Host, port (where the URL names one), path and query stay.
//! - **Headers.** As recorded, in their order, but for what belongs to a connection and not to a request
//!   (RFC 9110 §7.6.1), and for `If-*` and `Range`: the cache of a load is empty. Only a resource that was
//!   answered with 206 is requested with a `Range`: the range that the response had.
//!   Bodies of requests are not in a replica; such a request goes out with none.
//! - **Hosts.** One address a host name: the recorded one (or the one that the URL names itself), else one of 198.18.0.0/15, the block for
//!   benchmarks (RFC 2544). Two names may share a recorded address; they share a connection
//!   where [`Options::ip_pooling`] lets them. Where [`Options::deployment`] makes them speak two protocols, each
//!   gets an address of its own: what a server speaks is decided before it learns a name.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

use spdy::runtime::{Runtime, SharedRuntime};
use spdy_client::client::Client;
use spdy_client::config::Config;
use spdy_net::protocol::Protocol;
use spdy_net::quic::{QuicEndpoint, QuicOptions};
use spdy_page::graph::PageGraph;
use spdy_page::head;
use spdy_page::replica::{Exchange, Replica};
use spdy_server::page_resources::PageResources;
use spdy_server::push_plan::{Budget, Sources};
use spdy_server::serve::{ServeConfig, serve_connection, serve_quic};
use spdy_server::site::Site;
use spdy_server::site_pusher::{PushConfig, SitePusher};

use crate::accelerator::choice::Accelerator;
use crate::accelerator::site::OperatorConfig;
use crate::accelerator::{self, AcceleratedPage};
use crate::ends;
use crate::measure::Load;
use crate::options::{Options, Push, RaceProtocol};
use crate::sim::executor::{Executor, ExecutorLimits};
use crate::sim::network::{Acceptor, NetworkConfig, SimNetwork};
use crate::sim::runtime::SimRuntime;
use crate::tab::LoadDriver;

/// A replica made ready for loading: its graph, and the site that answers for it. Shared by all its loads.
pub struct Page {
    replica: Replica,
    graph: PageGraph,
    site: Arc<Site>,
    hosts: Vec<(String, IpAddr)>,
    /// Hosts that are of the page's own site though their names need not say so.
    own_hosts: BTreeSet<String>,
    /// What is pushed by the graph, and what if it is everything; each made when the first load wants it.
    pushing: [OnceLock<Option<Arc<SitePusher>>>; 2],
    /// Exchanges by what a request can say of them: a page may ask twice for the same, and get two answers.
    by_request: BTreeMap<RequestKey, Vec<usize>>,
    /// Nodes of the graph that the head of the document hints at.
    hints: Vec<usize>,
    /// What an accelerator before it is told; without it, to move everything.
    operator_config: Option<OperatorConfig>,
    /// What a browser sees through an accelerator, in plain text and in TLS, and through one with the paper's URLs; each made when the
    /// first load wants it.
    seen: [OnceLock<Result<Box<AcceleratedPage>, String>>; 4],
}

/// A budget that nothing is over.
const UNLIMITED_PUSH: Budget = Budget {
    streams: usize::MAX,
    bytes: usize::MAX,
    hints: 0,
    candidates: usize::MAX,
};

/// Method, authority and target.
type RequestKey = (String, String, String);

impl Page {
    /// Makes `replica` ready.
    #[must_use]
    pub fn new(replica: Replica) -> Self {
        let graph = PageGraph::of(&replica);
        Self::with_graph(replica, graph)
    }

    /// Makes `replica` ready, with another graph over its exchanges than the one that it shows.
    ///
    /// # Panics
    ///
    /// In loads, if a node of `graph` names no exchange of `replica`.
    #[must_use]
    pub fn with_graph(replica: Replica, graph: PageGraph) -> Self {
        let site = Arc::new(Site::of_replica(&replica));
        let hosts = addresses(&site);
        let mut by_request: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (index, exchange) in replica.exchanges.iter().enumerate() {
            by_request.entry(key_of(exchange)).or_default().push(index);
        }
        Self {
            replica,
            graph,
            site,
            hosts,
            own_hosts: BTreeSet::new(),
            pushing: Default::default(),
            by_request,
            hints: Vec::new(),
            operator_config: None,
            seen: Default::default(),
        }
    }

    /// The same behind accelerators that move what `operator` says.
    #[must_use]
    pub fn with_operator_config(self, operator: OperatorConfig) -> Self {
        Self {
            operator_config: Some(operator),
            seen: Default::default(),
            ..self
        }
    }

    /// What accelerators before it are told, if not to move everything.
    pub(crate) fn operator_config(&self) -> Option<&OperatorConfig> {
        self.operator_config.as_ref()
    }

    /// The same with these nodes hinted at; see [`PageLoad::hint`](crate::page_load::PageLoad::hint).
    #[must_use]
    pub fn with_hints(self, hints: Vec<usize>) -> Self {
        Self { hints, ..self }
    }

    /// The same with these hosts of its own site, whatever their names say.
    pub(crate) fn with_own_hosts(self, owned: BTreeSet<String>) -> Self {
        Self {
            own_hosts: owned,
            ..self
        }
    }

    /// The replica.
    #[must_use]
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// What needs what.
    #[must_use]
    pub fn graph(&self) -> &PageGraph {
        &self.graph
    }

    /// The page through an accelerator whose clients come in TLS if `secure`, and which writes URLs as in its paper if `paper_urls`.
    pub(crate) fn seen(&self, secure: bool, paper_urls: bool) -> Result<&AcceleratedPage, &String> {
        let seen = &self.seen[usize::from(secure) + 2 * usize::from(paper_urls)];
        let seen = seen.get_or_init(|| AcceleratedPage::of(self, secure, paper_urls).map(Box::new));
        seen.as_deref()
    }

    /// Nodes that the head of the document hints at.
    pub(crate) fn hints(&self) -> &[usize] {
        &self.hints
    }

    /// What answers for it.
    pub(crate) fn site(&self) -> &Arc<Site> {
        &self.site
    }

    /// The plan of pushes that its graph makes. It learns nothing, so loads may share it.
    fn pushing(&self, push: Push) -> Option<Arc<SitePusher>> {
        let [by_graph, all] = &self.pushing;
        let (made, needs, budget): (_, fn(&Replica, &PageGraph) -> PageResources, _) = match push {
            Push::No => return None,
            Push::ByGraph => (by_graph, PageResources::of_graph, Budget::default()),
            Push::All => (all, PageResources::all_of_graph, UNLIMITED_PUSH),
        };
        let made = made.get_or_init(|| {
            let config = PushConfig {
                sources: Sources {
                    graph: true,
                    ..Sources::default()
                },
                budget,
                ..PushConfig::default()
            };
            let needs = needs(&self.replica, &self.graph);
            SitePusher::new(config, needs, &self.site).map(Arc::new)
        });
        made.clone()
    }

    /// How its servers serve that speak `spoken`.
    pub(crate) fn serve_config(
        &self,
        protocol: RaceProtocol,
        spoken: Protocol,
        options: &Options,
    ) -> ServeConfig {
        ServeConfig {
            pusher: self.pushing(options.push),
            ..ends::server(protocol, spoken, options)
        }
    }

    /// The client of its loads.
    pub(crate) fn client_config(&self, protocol: RaceProtocol, options: &Options) -> Config {
        let mut config = ends::client(protocol, options);
        for (host, _) in &self.hosts {
            let spoken = self.protocol_for(protocol, options, host);
            if !config.protocols.contains(&spoken) {
                config.protocols.push(spoken);
            }
            let name = host.trim_matches(['[', ']']);
            // A URL may write the dot of the root, and is then another origin of the same host.
            for name in [name.to_owned(), format!("{name}.")] {
                config.host_protocols.insert(name, spoken);
            }
        }
        config
    }

    /// Its hosts, each with the address that its name leads to.
    pub(crate) fn hosts(&self, protocol: RaceProtocol, options: &Options) -> Vec<(String, IpAddr)> {
        let speaks =
            |host: &str| self.protocol_for(protocol, options, host) == protocol.wire_protocol();
        let spoken: Vec<bool> = self.hosts.iter().map(|(host, _)| speaks(host)).collect();
        // An address in a URL stays; else the page's own hosts keep theirs.
        let must_yield = |number: usize| {
            let (host, address) = &self.hosts[number];
            let others = self.hosts.iter().zip(&spoken);
            let mut others = others.filter(|((_, at), _)| at == address);
            !is_literal(host)
                && others.any(|((other, _), &speaks)| {
                    speaks != spoken[number] && (speaks || is_literal(other))
                })
        };
        let hosts = self.hosts.iter().enumerate();
        hosts
            .map(|(number, (host, address))| match must_yield(number) {
                true => (host.clone(), synthetic_address(number)),
                false => (host.clone(), *address),
            })
            .collect()
    }

    /// What is spoken with `host`.
    pub(crate) fn protocol_for(
        &self,
        protocol: RaceProtocol,
        options: &Options,
        host: &str,
    ) -> Protocol {
        let own = self.replica.document().url.host_str().unwrap_or_default();
        if self.own_hosts.contains(host) || options.deployment.reaches(own, host) {
            protocol.wire_protocol()
        } else {
            Protocol::Http1
        }
    }

    /// Every exchange with the same request as `exchange`, itself among them.
    pub(crate) fn matching_exchanges(
        &self,
        exchange: &Exchange,
    ) -> impl Iterator<Item = &Exchange> {
        let indexes = self.matching_indexes(exchange);
        indexes.map(|index| &self.replica.exchanges[index])
    }

    /// The indexes of these exchanges.
    pub(crate) fn matching_indexes(&self, exchange: &Exchange) -> impl Iterator<Item = usize> {
        self.by_request[&key_of(exchange)].iter().copied()
    }

    /// The ports that the page's URLs lead to, once their scheme is `https` (if `secure`) or `http`.
    pub(crate) fn ports(&self, secure: bool) -> Vec<u16> {
        let default = if secure { 443 } else { 80 };
        let mut ports: Vec<u16> = self
            .replica
            .exchanges
            .iter()
            .filter_map(|it| it.url.port())
            .collect();
        ports.push(default);
        ports.sort_unstable();
        ports.dedup();
        ports
    }
}

/// An address for each host of `site`.
fn addresses(site: &Site) -> Vec<(String, IpAddr)> {
    let with_address = |(number, (host, address)): (usize, (String, Option<IpAddr>))| {
        // An address in a URL is its own; what was recorded then may be that of a proxy.
        let address = literal_address(&host).or(address);
        let address = address.unwrap_or_else(|| synthetic_address(number));
        (host, address)
    };
    site.hosts()
        .into_iter()
        .enumerate()
        .map(with_address)
        .collect()
}

/// The address that stands in place of a name.
fn literal_address(host: &str) -> Option<IpAddr> {
    host.trim_matches(['[', ']']).parse().ok()
}

fn is_literal(host: &str) -> bool {
    literal_address(host).is_some()
}

/// An address for the host of that number.
fn synthetic_address(number: usize) -> IpAddr {
    let [.., high, low] = u32::try_from(number + 1).unwrap_or(u32::MAX).to_be_bytes();
    Ipv4Addr::new(198, 18, high, low).into()
}

fn key_of(exchange: &Exchange) -> RequestKey {
    (
        exchange.method.to_string(),
        head::authority(&exchange.url),
        head::target(&exchange.url),
    )
}

/// Loads `page` once over `protocol` and the network that `network` describes. `network_name` and `seed` go
/// into the result; everything random comes from `seed`.
///
/// A load that cannot end (a deadlock, or an hour of virtual time) is told in its
/// `failures`, with the times of the instant at which it stopped.
#[must_use]
pub fn load(
    page: &Page,
    protocol: RaceProtocol,
    network_name: &str,
    network: &NetworkConfig,
    options: &Options,
    seed: u64,
) -> Load {
    if options.accelerator != Accelerator::Off {
        return accelerator::load(page, protocol, network_name, network, options, seed);
    }
    let executor = Executor::new(ExecutorLimits::default());
    let runtime = executor.runtime();
    let mut config = page.client_config(protocol, options);
    config.connection.quic = ends::quic(&network.client_tcp, seed);
    let quic = ends::quic(&network.server_tcp, seed);
    let network = SimNetwork::new(runtime.clone(), network.clone(), seed);
    serve_page(page, protocol, options, quic, &network, &runtime);
    let client = Client::new(
        SharedRuntime::new(runtime.clone()),
        Arc::new(network.clone()),
        config,
    );
    let tab = LoadDriver::new(page, protocol, options, &client, &runtime);
    let ended = executor.run(async {
        tab.run().await;
        client.close().await;
        network.quiet().await;
    });
    let ended = ended.map_err(|stalled| stalled.to_string());
    tab.into_load(network_name, seed, ended, &network.traffic())
}

/// Puts a server behind every address of the page.
pub(crate) fn serve_page(
    page: &Page,
    protocol: RaceProtocol,
    options: &Options,
    quic: QuicOptions,
    network: &SimNetwork,
    runtime: &SimRuntime,
) {
    let ports = page.ports(protocol.is_secure());
    let shared = SharedRuntime::new(runtime.clone());
    let acceptor = |spoken| -> Acceptor {
        let config = page.serve_config(protocol, spoken, options);
        let (site, spawner, shared) = (page.site.clone(), runtime.clone(), shared.clone());
        Arc::new(move |io| {
            let serving = serve_connection(io, site.clone(), config.clone(), shared.clone());
            spawner.spawn(Box::pin(async move {
                serving.await;
            }));
        })
    };
    let mut acceptors: Vec<(Protocol, Acceptor)> = Vec::new();
    let mut by_quic = BTreeSet::new(); // two names of one address share its socket
    for (host, address) in page.hosts(protocol, options) {
        network.name(&host, vec![address]);
        network.set_extra_rtt(address, options.backhaul);
        let addresses = ports.iter().map(|&port| SocketAddr::new(address, port));
        let spoken = page.protocol_for(protocol, options, &host);
        if spoken.is_over_quic() {
            by_quic.extend(addresses);
            continue;
        }
        let at = acceptors.iter().position(|(other, _)| *other == spoken);
        let at = at.unwrap_or_else(|| {
            acceptors.push((spoken, acceptor(spoken)));
            acceptors.len() - 1
        });
        for address in addresses {
            network.listen(address, acceptors[at].1.clone());
        }
    }
    if by_quic.is_empty() {
        return;
    }
    let mut config = page.serve_config(protocol, protocol.wire_protocol(), options);
    config.options.quic = quic;
    for address in by_quic {
        let serving = serve_address(address, page.site.clone(), &config, network, &shared);
        runtime.spawn(Box::pin(serving));
    }
}

/// Serves everybody who comes to `address` by QUIC.
fn serve_address(
    address: SocketAddr,
    site: Arc<Site>,
    config: &ServeConfig,
    network: &SimNetwork,
    runtime: &SharedRuntime,
) -> impl Future<Output = ()> + use<> {
    let tls = config.tls.as_ref().expect("QUIC is always secure");
    let socket = network.bind(address);
    let endpoint =
        socket.and_then(|socket| QuicEndpoint::new(socket, tls, &config.options, runtime));
    let endpoint = endpoint.expect("an address of its own, and TLS of fixed choices");
    let (config, runtime) = (config.clone(), runtime.clone());
    async move {
        while let Some(incoming) = endpoint.accept().await {
            let serving = serve_quic(incoming, site.clone(), config.clone(), runtime.clone());
            runtime.spawn(Box::pin(async move {
                serving.await;
            }));
        }
    }
}
