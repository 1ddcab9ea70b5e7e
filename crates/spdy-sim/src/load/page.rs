//! A replica prepared for loading: its graph, its hosts, and the site with its responses.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use spdy_client::config::Config;
use spdy_net::protocol::Protocol;
use spdy_page::graph::{PageGraph, Trigger};
use spdy_page::head::{self, Head};
use spdy_page::preconnects::{Preconnect, preconnects};
use spdy_page::replica::{Exchange, Kind, Replica};
use spdy_server::page_resources::PageResources;
use spdy_server::push_plan::{Budget, Sources};
use spdy_server::serve::ServeConfig;
use spdy_server::site::Site;
use spdy_server::site_pusher::{PushConfig, SitePusher};
use url::Url;

#[cfg(feature = "accelerator")]
use crate::accelerator::PageAccelerators;
use crate::load::cancelled_transfer::{CancelledTransfer, MAX_REST_BYTES};
use crate::load::endpoints;
use crate::load::event_delays::EventDelays;
use crate::load::paint_plan::paint_plan;
use crate::load::recorded_request::RecordedRequest;
use crate::load::visit::EarlierPages;
use crate::options::{Options, Push, RaceProtocol, is_same_site};
use crate::page_load::PaintPlan;

/// A replica prepared for loading: its graph, and the site with its responses. All its loads share it.
pub struct Page {
    replica: Replica,
    graph: PageGraph,
    site: Arc<Site>,
    /// The think time of the servers for each exchange.
    think_times: Vec<Duration>,
    hosts: Vec<(String, IpAddr)>,
    /// Hosts of the page's own site whose names do not show it.
    own_hosts: BTreeSet<String>,
    /// Plans of pushes by the graph, and of all resources; each is created when the first load needs it.
    pushing: [OnceLock<Option<Arc<SitePusher>>>; 2],
    /// Exchanges by their requests: a page may make the same request twice and receive two responses.
    by_request: BTreeMap<RequestKey, Arc<[usize]>>,
    /// What loads need of each exchange; created when the first load needs it.
    recorded: OnceLock<Vec<RecordedExchange>>,
    /// Nodes of the graph that the head of the document hints at.
    hints: Vec<usize>,
    /// The pages of the same visit before it.
    earlier: EarlierPages,
    /// The connections that each document asks for, by its node; created when the first load needs them.
    preconnects: OnceLock<BTreeMap<usize, Vec<Preconnect>>>,
    /// For each node whether it is in a frame of another site; empty if there is no such frame. Created when first needed.
    in_cross_site_frames: OnceLock<Vec<bool>>,
    /// `None` without a document in the graph.
    paint_plan: Option<PaintPlan>,
    /// See [`EventDelays::load`].
    load_delay: Duration,
    #[cfg(feature = "accelerator")]
    pub(crate) accelerators: PageAccelerators,
}

/// What every load needs of an exchange, so that it is read once.
pub(super) struct RecordedExchange {
    pub(super) request: RecordedRequest,
    pub(super) cancelled: Option<CancelledTransfer>,
    /// The page requests it [without credentials](Exchange::is_without_credentials).
    pub(super) is_without_credentials: bool,
    /// The status of the response.
    pub(super) status: Option<u16>,
    /// The indexes of all exchanges with the same request.
    pub(super) same_request: Arc<[usize]>,
}

/// A budget that no plan exceeds.
const UNLIMITED_PUSH: Budget = Budget {
    streams: usize::MAX,
    bytes: usize::MAX,
    hints: 0,
    candidates: usize::MAX,
};

/// Method, authority and target.
pub(super) type RequestKey = (String, String, String);

impl Page {
    /// Prepares `replica`.
    #[must_use]
    pub fn new(replica: Replica) -> Self {
        let graph = PageGraph::of(&replica);
        Self::with_graph(replica, graph)
    }

    /// Prepares `replica` with another graph over its exchanges than its own.
    ///
    /// # Panics
    ///
    /// In loads, if a node of `graph` has no exchange in `replica`.
    #[must_use]
    pub fn with_graph(replica: Replica, graph: PageGraph) -> Self {
        let think_times = replica.think_times();
        let site = site_of(&replica, &think_times);
        let hosts = addresses(&site);
        let mut paint_plan = paint_plan(&replica, &graph);
        let delays = paint_plan
            .as_ref()
            .map(|plan| EventDelays::of(&replica, &graph, plan));
        let delays = delays.unwrap_or_default();
        if let Some(plan) = &mut paint_plan {
            plan.render_delay = delays.render;
        }
        Self {
            by_request: by_request(&replica),
            recorded: OnceLock::new(),
            paint_plan,
            load_delay: delays.load,
            replica,
            graph,
            site,
            think_times,
            hosts,
            own_hosts: BTreeSet::new(),
            pushing: Default::default(),
            hints: Vec::new(),
            earlier: EarlierPages::default(),
            preconnects: OnceLock::new(),
            in_cross_site_frames: OnceLock::new(),
            #[cfg(feature = "accelerator")]
            accelerators: PageAccelerators::default(),
        }
    }

    /// The same page with these think times of its servers, one for each exchange, in place of those that its recording implies.
    #[must_use]
    pub fn with_think_times(self, think_times: &[Duration]) -> Self {
        Self {
            site: site_of(&self.replica, think_times),
            think_times: think_times.to_vec(),
            pushing: Default::default(),
            #[cfg(feature = "accelerator")]
            accelerators: self.accelerators.without_pages(),
            ..self
        }
    }

    /// The same with hints at these nodes; see [`PageLoad::hint`](crate::page_load::PageLoad::hint).
    #[must_use]
    pub fn with_hints(self, hints: Vec<usize>) -> Self {
        Self { hints, ..self }
    }

    /// The same page as a part of a visit: `replica` has the exchanges of all its pages, its own from `offset`, and `site` serves them
    /// after `think_times`.
    pub(super) fn in_visit(
        self,
        replica: Replica,
        offset: usize,
        site: Arc<Site>,
        think_times: Vec<Duration>,
        earlier: EarlierPages,
    ) -> Self {
        let mut graph = self.graph;
        for node in &mut graph.nodes {
            node.exchange += offset;
        }
        Self {
            by_request: by_request(&replica),
            recorded: OnceLock::new(),
            hosts: addresses(&site),
            replica,
            graph,
            site,
            think_times,
            earlier,
            pushing: Default::default(),
            in_cross_site_frames: OnceLock::new(),
            #[cfg(feature = "accelerator")]
            accelerators: self.accelerators.without_pages(),
            ..self
        }
    }

    /// The pages of the same visit before it.
    #[must_use]
    pub fn earlier(&self) -> &EarlierPages {
        &self.earlier
    }

    /// The same with the largest image and the delays of `page`, which has the same nodes.
    #[cfg(feature = "accelerator")]
    pub(crate) fn with_paints_of(mut self, page: &Self) -> Self {
        if let (Some(plan), Some(other)) = (&mut self.paint_plan, &page.paint_plan) {
            plan.largest = other.largest;
            plan.render_delay = other.render_delay;
        }
        self.load_delay = page.load_delay;
        self
    }

    /// How long the load event comes after all that it waits for.
    pub(crate) const fn load_delay(&self) -> Duration {
        self.load_delay
    }

    /// What a browser draws of it.
    pub(crate) fn paint_plan(&self) -> Option<&PaintPlan> {
        self.paint_plan.as_ref()
    }

    /// The same with these hosts as parts of its own site, independent of their names.
    pub(crate) fn with_own_hosts(self, owned: BTreeSet<String>) -> Self {
        Self {
            own_hosts: owned,
            ..self
        }
    }

    /// Those hosts.
    pub(super) fn own_hosts(&self) -> &BTreeSet<String> {
        &self.own_hosts
    }

    /// The connections and names that the document of `node` asks for.
    pub(super) fn preconnects(&self, node: usize) -> &[Preconnect] {
        let all = self.preconnects.get_or_init(|| {
            let nodes = self.graph.nodes.iter().enumerate();
            let found = nodes.map(|(number, node)| {
                let exchange = &self.replica.exchanges[node.exchange];
                (number, preconnects(exchange))
            });
            found.filter(|(_, found)| !found.is_empty()).collect()
        });
        all.get(&node).map_or(&[], |found| &found[..])
    }

    /// True if it has a frame of another site.
    pub(super) fn has_cross_site_frames(&self) -> bool {
        !self.in_cross_site_frames().is_empty()
    }

    /// True if `node` is a document of a frame of another site, or in one, and browsers with `options` separate them from the page.
    pub(super) fn is_separate(&self, node: usize, options: &Options) -> bool {
        options.site_partitions && self.in_cross_site_frames().get(node) == Some(&true)
    }

    fn in_cross_site_frames(&self) -> &[bool] {
        self.in_cross_site_frames.get_or_init(|| {
            let own_host = self.own_host();
            let is_own = |url: &Url| is_same_site(url.host_str().unwrap_or_default(), own_host);
            let is_in_frame = in_cross_site_frames(&self.graph, &self.replica.exchanges, is_own);
            match is_in_frame.contains(&true) {
                true => is_in_frame,
                false => Vec::new(),
            }
        })
    }

    /// The host of its document.
    pub(super) fn own_host(&self) -> &str {
        self.replica.document().url.host_str().unwrap_or_default()
    }

    /// The replica.
    #[must_use]
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// The dependencies between its resources.
    #[must_use]
    pub fn graph(&self) -> &PageGraph {
        &self.graph
    }

    /// Nodes that the head of the document hints at.
    pub(crate) fn hints(&self) -> &[usize] {
        &self.hints
    }

    /// The think time of the servers for each exchange of its [replica](Self::replica).
    #[must_use]
    pub fn think_times(&self) -> &[Duration] {
        &self.think_times
    }

    /// The site with its responses.
    #[must_use]
    pub fn site(&self) -> &Arc<Site> {
        &self.site
    }

    /// The plan of pushes of its graph. It learns nothing, so loads may share it.
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

    /// The configuration of its servers that speak `spoken`.
    #[must_use]
    pub fn serve_config(
        &self,
        protocol: RaceProtocol,
        spoken: Protocol,
        options: &Options,
    ) -> ServeConfig {
        ServeConfig {
            pusher: self.pushing(options.push),
            ..endpoints::server(protocol, spoken, options)
        }
    }

    /// The configuration of the client of its loads.
    #[must_use]
    pub fn client_config(&self, protocol: RaceProtocol, options: &Options) -> Config {
        let mut config = endpoints::client(protocol, options);
        for (host, _) in &self.hosts {
            let spoken = self.protocol_for(protocol, options, host);
            if !config.protocols.contains(&spoken) {
                config.protocols.push(spoken);
            }
            let name = host.trim_matches(['[', ']']);
            // A URL may end its host with a dot, and is then another origin of the same host.
            for name in [name.to_owned(), format!("{name}.")] {
                config.host_protocols.insert(name, spoken);
            }
        }
        config
    }

    /// Its hosts, each with the address of its name.
    #[must_use]
    pub fn hosts(&self, protocol: RaceProtocol, options: &Options) -> Vec<(String, IpAddr)> {
        let speaks =
            |host: &str| self.protocol_for(protocol, options, host) == protocol.wire_protocol();
        let spoken: Vec<bool> = self.hosts.iter().map(|(host, _)| speaks(host)).collect();
        // The address in a URL stays; else the page's own hosts keep theirs.
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

    /// The protocol that `host` speaks in a load by `protocol`.
    #[must_use]
    pub fn protocol_for(&self, protocol: RaceProtocol, options: &Options, host: &str) -> Protocol {
        if self.own_hosts.contains(host) || options.deployment.reaches(self.own_host(), host) {
            protocol.wire_protocol()
        } else {
            Protocol::Http1
        }
    }

    /// What loads need of the exchange with this index.
    pub(super) fn recorded(&self, index: usize) -> &RecordedExchange {
        let recorded = self.recorded.get_or_init(|| {
            let document = &self.replica.document().url;
            let exchanges = self.replica.exchanges.iter();
            let read = |exchange| RecordedExchange {
                request: RecordedRequest::of(exchange),
                cancelled: CancelledTransfer::of(exchange),
                is_without_credentials: exchange.is_without_credentials(document),
                status: exchange.status(),
                same_request: self.by_request[&key_of(exchange)].clone(),
            };
            exchanges.map(read).collect()
        });
        &recorded[index]
    }

    /// The index of the exchange whose response the site sends for the request of `exchange`.
    pub(super) fn sent_index(&self, exchange: &Exchange) -> usize {
        let indexes = &self.by_request[&key_of(exchange)];
        let is_sent = |&&index: &&usize| self.replica.exchanges[index].status() != Some(304);
        *indexes.iter().find(is_sent).unwrap_or(&indexes[0])
    }

    /// The ports of the page's URLs if their scheme is `https` (if `secure`) or `http`.
    #[must_use]
    pub fn ports(&self, secure: bool) -> Vec<u16> {
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

/// The document that requested `exchange`, or the style sheet.
fn referer(exchange: &Exchange) -> Option<Url> {
    let referer = Head::parse(&exchange.request_head)?.value("referer")?;
    Url::parse(referer).ok()
}

/// For each node whether it is in a frame of another site. `is_own` is true for URLs of the page's site.
fn in_cross_site_frames(
    graph: &PageGraph,
    exchanges: &[Exchange],
    is_own: impl Fn(&Url) -> bool,
) -> Vec<bool> {
    let mut is_in_frame = vec![false; graph.nodes.len()];
    // The redirects to the page's own document, and this.
    let mut is_navigation = vec![false; graph.nodes.len()];
    for (number, node) in graph.nodes.iter().enumerate() {
        // A request that no accelerator passes on has no parent in its graph.
        let parent = node.parent().filter(|&parent| parent < number);
        is_navigation[number] = node.trigger == Trigger::Start
            || parent
                .is_some_and(|parent| is_navigation[parent] && graph.nodes[parent].is_redirect);
        let exchange = &exchanges[node.exchange];
        is_in_frame[number] = match node.kind {
            Kind::Document => !is_navigation[number] && !is_own(&exchange.url),
            // The graph may have a wrong parent. `Referer` has the document, or its origin.
            _ => {
                parent.is_some_and(|parent| is_in_frame[parent])
                    && !referer(exchange).is_some_and(|referer| is_own(&referer))
            }
        };
    }
    is_in_frame
}

/// The responses of `replica`, each after its think time.
pub(super) fn site_of(replica: &Replica, think_times: &[Duration]) -> Arc<Site> {
    let site = Site::with_think_times(replica, think_times);
    Arc::new(site.with_range_rests(MAX_REST_BYTES))
}

/// An address for each host of `site`.
fn addresses(site: &Site) -> Vec<(String, IpAddr)> {
    let with_address = |(number, (host, address)): (usize, (String, Option<IpAddr>))| {
        // The address in a URL is the host's own; the recorded one may be that of a proxy.
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

/// The address of a host that is an address and not a name.
fn literal_address(host: &str) -> Option<IpAddr> {
    host.trim_matches(['[', ']']).parse().ok()
}

fn is_literal(host: &str) -> bool {
    literal_address(host).is_some()
}

/// An address for the host with this number.
fn synthetic_address(number: usize) -> IpAddr {
    let [.., high, low] = u32::try_from(number + 1).unwrap_or(u32::MAX).to_be_bytes();
    Ipv4Addr::new(198, 18, high, low).into()
}

/// The exchanges of `replica` by their requests.
fn by_request(replica: &Replica) -> BTreeMap<RequestKey, Arc<[usize]>> {
    let mut by_request: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (index, exchange) in replica.exchanges.iter().enumerate() {
        by_request.entry(key_of(exchange)).or_default().push(index);
    }
    let shared = |(key, indexes): (_, Vec<usize>)| (key, indexes.into());
    by_request.into_iter().map(shared).collect()
}

pub(super) fn key_of(exchange: &Exchange) -> RequestKey {
    (
        exchange.method.to_string(),
        head::authority(&exchange.url),
        head::target(&exchange.url),
    )
}
