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
//!   (RFC 9110 §7.6.1), and for `If-*` and `Range`: the cache of a load is empty. Bodies of requests are not
//!   in a replica; such a request goes out with none.
//! - **Hosts.** One address a host name: the recorded one (or the one that the URL names itself), else one of 198.18.0.0/15, the block for
//!   benchmarks (RFC 2544). Two names may share a recorded address; they share a connection
//!   where [`Options::ip_pooling`] lets them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http_body::Body as _;
use spdy::body::Body;
use spdy::runtime::{BoxFuture, Runtime, SharedRuntime};
use spdy_client::client::Client;
use spdy_client::timing::Timings;
use spdy_clock::Instant;
use spdy_page::graph::PageGraph;
use spdy_page::head;
use spdy_page::replica::{Exchange, Replica};
use spdy_server::needs::Needs;
use spdy_server::push_plan::Sources;
use spdy_server::pushing::{PushConfig, Pushing};
use spdy_server::serve::{ServeConfig, serve_connection};
use spdy_server::site::Site;

use crate::ends;
use crate::expected::Expected;
use crate::measure::{Load, Row};
use crate::options::{Options, RaceProtocol};
use crate::page_load::{PageLoad, Request};
use crate::recorded_request::request_of;
use crate::sim::executor::{Executor, Limits, Stalled};
use crate::sim::network::{NetworkConfig, SimNetwork};
use crate::sim::runtime::SimRuntime;

/// A replica made ready for loading: its graph, and the site that answers for it. Shared by all its loads.
pub struct Page {
    replica: Replica,
    graph: PageGraph,
    site: Arc<Site>,
    hosts: Vec<(String, IpAddr)>,
    /// What is pushed, in loads with pushes; made when the first of them wants it.
    pushing: OnceLock<Option<Arc<Pushing>>>,
    /// Exchanges by what a request can say of them: a page may ask twice for the same, and get two answers.
    by_request: BTreeMap<RequestKey, Vec<usize>>,
    /// Nodes of the graph that the head of the document hints at.
    hints: Vec<usize>,
}

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
            pushing: OnceLock::new(),
            by_request,
            hints: Vec::new(),
        }
    }

    /// The same with these nodes hinted at; see [`PageLoad::hint`].
    #[must_use]
    pub fn hinting_at(self, hints: Vec<usize>) -> Self {
        Self { hints, ..self }
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

    /// The plan of pushes that its graph makes. It learns nothing, so loads may share it.
    fn pushing(&self) -> Option<Arc<Pushing>> {
        let made = self.pushing.get_or_init(|| {
            let config = PushConfig {
                sources: Sources {
                    graph: true,
                    ..Sources::default()
                },
                ..PushConfig::default()
            };
            Pushing::new(config, Needs::of_replica(&self.replica), &self.site).map(Arc::new)
        });
        made.clone()
    }

    /// Every exchange that asks for the same as `exchange`, itself among them.
    fn answers_to(&self, exchange: &Exchange) -> impl Iterator<Item = &Exchange> {
        self.by_request[&key_of(exchange)]
            .iter()
            .map(|&index| &self.replica.exchanges[index])
    }

    /// The ports that the page's URLs lead to, once their scheme is `https` (if `secure`) or `http`.
    fn ports(&self, secure: bool) -> Vec<u16> {
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
        let [.., high, low] = u32::try_from(number + 1).unwrap_or(u32::MAX).to_be_bytes();
        let made_up = || Ipv4Addr::new(198, 18, high, low).into();
        // An address in a URL is its own; what was recorded then may be that of a proxy.
        let literal = host.trim_matches(['[', ']']).parse().ok();
        let address = literal.or(address).unwrap_or_else(made_up);
        (host, address)
    };
    site.hosts()
        .into_iter()
        .enumerate()
        .map(with_address)
        .collect()
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
/// [`failures`](Load::failures), with the times of the instant at which it stopped.
#[must_use]
pub fn load(
    page: &Page,
    protocol: RaceProtocol,
    network_name: &str,
    network: &NetworkConfig,
    options: &Options,
    seed: u64,
) -> Load {
    let executor = Executor::new(Limits::default());
    let runtime = executor.runtime();
    let network = SimNetwork::new(runtime.clone(), network.clone(), seed);
    serve_page(page, protocol, options, &network, &runtime);
    let shared = SharedRuntime::new(runtime.clone());
    let client = Client::new(
        shared,
        Arc::new(network.clone()),
        ends::client(protocol, options),
    );
    let record = Mutex::new(Record::default());
    let tab = Tab {
        page,
        protocol,
        client: &client,
        runtime: &runtime,
        record: &record,
    };
    let ended = executor.run(async {
        tab.run().await;
        tab.record().is_over = true;
        client.close().await;
        network.quiet().await;
    });
    let record = record.into_inner().unwrap_or_else(PoisonError::into_inner);
    record.into_load(
        page,
        protocol,
        network_name,
        seed,
        ended,
        &client,
        &network,
        &runtime,
    )
}

/// Puts a server behind every address of the page.
fn serve_page(
    page: &Page,
    protocol: RaceProtocol,
    options: &Options,
    network: &SimNetwork,
    runtime: &SimRuntime,
) {
    let config = ServeConfig {
        pushing: if options.push { page.pushing() } else { None },
        ..ends::server(protocol, options)
    };
    let shared = SharedRuntime::new(runtime.clone());
    let site = page.site.clone();
    let spawner = runtime.clone();
    let acceptor = Arc::new(move |io| {
        let serving = serve_connection(io, site.clone(), config.clone(), shared.clone());
        spawner.spawn(Box::pin(async move {
            serving.await;
        }));
    });
    for (host, address) in &page.hosts {
        network.name(host, vec![*address]);
        for port in page.ports(protocol.is_secure()) {
            network.listen(SocketAddr::new(*address, port), acceptor.clone());
        }
    }
}

/// What is learned while the load runs; it outlives a run that stalls.
#[derive(Default)]
struct Record {
    dom_content_loaded: Option<Instant>,
    load: Option<Instant>,
    rows: Vec<(usize, Row)>,
    /// The page is done; what follows is the closing of connections.
    is_over: bool,
    failures: Vec<String>,
}

impl Record {
    #[expect(
        clippy::too_many_arguments,
        reason = "everything that a load came to meets here, once"
    )]
    fn into_load(
        mut self,
        page: &Page,
        protocol: RaceProtocol,
        network_name: &str,
        seed: u64,
        ended: Result<(), Stalled>,
        client: &Client,
        network: &SimNetwork,
        runtime: &SimRuntime,
    ) -> Load {
        // A connection that one side gave up may stay with the other until the end of time.
        if let (Err(stalled), false) = (ended, self.is_over) {
            self.failures
                .push(format!("the load did not end: {stalled}"));
        }
        let (stats, traffic) = (client.stats(), network.traffic());
        let at_latest =
            |instant: Option<Instant>| instant.unwrap_or_else(|| runtime.now()).as_millis_f64();
        self.rows.sort_by_key(|(node, row)| (row.wanted, *node));
        Load {
            replica: page.replica.name.clone(),
            protocol: protocol.to_string(),
            network: network_name.to_owned(),
            seed,
            dom_content_loaded_ms: at_latest(self.dom_content_loaded),
            load_ms: at_latest(self.load),
            time_on_wire_ms: traffic.time_on_wire().as_nanos() as f64 / 1e6,
            connections: traffic.connections,
            requests: stats.requests,
            packets_up: traffic.packets_up,
            packets_down: traffic.packets_down,
            bytes_up: traffic.bytes_up,
            bytes_down: traffic.bytes_down,
            request_header_bytes: stats.request_header_bytes,
            request_header_bytes_wire: stats.request_header_bytes_wire,
            response_header_bytes: stats.response_header_bytes,
            response_header_bytes_wire: stats.response_header_bytes_wire,
            failures: self.failures,
            waterfall: self.rows.into_iter().map(|(_, row)| row).collect(),
        }
    }
}

/// One load at work.
struct Tab<'a> {
    page: &'a Page,
    protocol: RaceProtocol,
    client: &'a Client,
    runtime: &'a SimRuntime,
    record: &'a Mutex<Record>,
}

impl Tab<'_> {
    /// Follows the page until nothing is left to ask for.
    async fn run(&self) {
        let mut machine = PageLoad::new(&self.page.graph);
        machine.hint(self.page.hints.iter().copied());
        machine.start(self.runtime.now());
        let machine = RefCell::new(machine);
        let mut exchanges = FuturesUnordered::new();
        let mut sleep: Option<(Instant, BoxFuture<()>)> = None;
        std::future::poll_fn(|cx| {
            loop {
                while let Some(request) = { machine.borrow_mut().poll_request() } {
                    exchanges.push(self.exchange(request, &machine));
                }
                // Completed or not: whatever an exchange told the machine may have named new requests.
                let step = exchanges.poll_next_unpin(cx);
                let due = self.poll_timeout(cx, &machine, &mut sleep);
                let machine = machine.borrow();
                self.note_events(&machine);
                if machine.is_finished() {
                    return Poll::Ready(());
                }
                if !due && !matches!(step, Poll::Ready(Some(()))) && !machine.has_requests() {
                    return Poll::Pending;
                }
            }
        })
        .await;
    }

    /// Lets the machine act if its time has come; `true` if it did.
    fn poll_timeout(
        &self,
        cx: &mut Context<'_>,
        machine: &RefCell<PageLoad<'_>>,
        sleep: &mut Option<(Instant, BoxFuture<()>)>,
    ) -> bool {
        let Some(due) = machine.borrow().poll_timeout() else {
            *sleep = None;
            return false;
        };
        if sleep.as_ref().is_none_or(|(until, _)| *until != due) {
            *sleep = Some((due, self.runtime.sleep_until(due)));
        }
        let is_due = sleep
            .as_mut()
            .is_some_and(|(_, sleep)| sleep.as_mut().poll(cx).is_ready());
        if is_due {
            *sleep = None;
            machine.borrow_mut().handle_timeout(self.runtime.now());
        }
        is_due
    }

    fn note_events(&self, machine: &PageLoad<'_>) {
        let mut record = self.record();
        record.dom_content_loaded = machine.dom_content_loaded();
        record.load = machine.load();
    }

    fn record(&self) -> std::sync::MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One request and its response, from the page's wish to the last byte.
    async fn exchange(&self, request: Request, machine: &RefCell<PageLoad<'_>>) {
        let node = &self.page.graph.nodes[request.node];
        let exchange = &self.page.replica.exchanges[node.exchange];
        let mut row = Row {
            url: exchange.url.to_string(),
            kind: node.kind,
            status: 0,
            connection: 0,
            priority: request.priority.level(),
            body_bytes: 0,
            wanted: request.wanted,
            dns: None,
            connect: None,
            tls: None,
            sent: request.wanted,
            first_byte: request.wanted,
            done: request.wanted,
        };
        let fetched = self.fetch(request, exchange, &mut row, machine).await;
        let now = self.runtime.now();
        row.done = now;
        let mut record = self.record();
        record.rows.push((request.node, row));
        let failed =
            fetched.map_err(|why| record.failures.push(format!("{}: {why}", exchange.url)));
        drop(record);
        match failed {
            Ok(()) => machine.borrow_mut().handle_done(now, request.node),
            Err(()) => machine.borrow_mut().handle_failed(now, request.node),
        }
    }

    async fn fetch(
        &self,
        request: Request,
        exchange: &Exchange,
        row: &mut Row,
        machine: &RefCell<PageLoad<'_>>,
    ) -> Result<(), String> {
        let asked = request_of(exchange, self.protocol.is_secure())?;
        let response = self
            .client
            .send(asked, request.priority)
            .await
            .map_err(|error| error.to_string())?;
        let (head, body) = response.into_parts();
        row.status = head.status.as_u16();
        match head.extensions.get::<Timings>() {
            Some(timings) => {
                row.connection = timings.connection;
                (row.dns, row.connect, row.tls) = (timings.dns, timings.connect, timings.tls);
                (row.sent, row.first_byte) = (timings.sent, timings.first_byte);
            }
            None => row.first_byte = self.runtime.now(),
        }
        machine
            .borrow_mut()
            .handle_head(self.runtime.now(), request.node);
        let mut expected = Expected::of(self.page.answers_to(exchange), exchange);
        let mut body = pin!(body);
        while let Some(piece) = next_piece(body.as_mut()).await {
            let piece = piece
                .map_err(|error| format!("after {} bytes of body: {error}", row.body_bytes))?;
            expected.compare(&piece);
            row.body_bytes += piece.len() as u64;
            machine
                .borrow_mut()
                .handle_bytes(self.runtime.now(), request.node, row.body_bytes);
        }
        expected.finish(row.status)
    }
}

/// The next bytes of a body; trailers are passed over.
async fn next_piece(mut body: Pin<&mut Body>) -> Option<Result<Bytes, spdy::body::BoxError>> {
    loop {
        match std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await? {
            Ok(frame) => {
                if let Ok(piece) = frame.into_data() {
                    return Some(Ok(piece));
                }
            }
            Err(error) => return Some(Err(error)),
        }
    }
}
