//! Drives one load, in virtual or in real time: the machine of [`page_load`](crate::page_load) over a client.
//!
//! ```text
//!   PageLoad ── poll_request ──► Client ── Network ──► ..        virtual_time.rs: virtual time
//!      ▲ handle_head, handle_bytes, handle_done │                spdy-lab/src/live: real time
//!      └────────────────────────────────────────┘
//! ```
//!
//! It uses a [`Runtime`] and a client, and does not know which network is under them. It waits with the runtime's timers for the
//! computation that the page's graph states.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use parking_lot::{Mutex, MutexGuard};
use spdy::runtime::{BoxFuture, Runtime};
use spdy_client::client::{Client, Stats};
use spdy_client::origin::Origin;
use spdy_clock::Instant;

use crate::load::proxied_content::ProxiedContent;
use crate::load::urgency::urgency_plan;
use crate::load::visit::{PageClients, VisitState};
use crate::load::{Load, Page, SiteClients, WaterfallRow};
use crate::network::Traffic;
use crate::options::{Options, RaceProtocol, Scheduler};
use crate::page_load::PageLoad;

/// State that is recorded while the load runs. It outlives a run that does not end.
#[derive(Default)]
pub(super) struct LoadRecord {
    /// From the runtime's origin to the start of the load.
    begun: Duration,
    /// Counts of the client at that time.
    stats_before: Stats,
    dom_content_loaded: Option<Instant>,
    load: Option<Instant>,
    first_paint: Option<Instant>,
    largest_paint: Option<Instant>,
    pub(super) rows: Vec<(usize, WaterfallRow)>,
    /// The page is loaded; only connections are still closed.
    is_over: bool,
    pub(super) failures: Vec<String>,
    /// Where requests were sent, and whether a frame of another site sent them.
    pub(super) origins: BTreeSet<(Origin, bool)>,
    /// Nodes of failed requests.
    pub(super) failed: BTreeSet<usize>,
}

/// One load while it runs.
pub struct LoadDriver<'a> {
    pub(super) page: &'a Page,
    pub(super) protocol: RaceProtocol,
    pub(super) options: &'a Options,
    clients: &'a SiteClients,
    /// Those of them that load the page.
    pub(super) own_clients: PageClients<'a>,
    pub(super) runtime: &'a dyn Runtime,
    /// Content that comes through an accelerator, if there is one.
    pub(super) proxied_content: Option<&'a ProxiedContent>,
    /// What the earlier pages of its site left in a visit.
    pub(super) visited: OnceLock<VisitState>,
    record: Mutex<LoadRecord>,
}

impl<'a> LoadDriver<'a> {
    /// Creates a load that has not started. `clients` are those of `page`, and `runtime` is their own.
    #[must_use]
    pub fn new(
        page: &'a Page,
        protocol: RaceProtocol,
        options: &'a Options,
        clients: &'a SiteClients,
        runtime: &'a dyn Runtime,
    ) -> Self {
        Self {
            page,
            protocol,
            options,
            clients,
            own_clients: clients.of_loaded_page(),
            runtime,
            proxied_content: None,
            visited: OnceLock::new(),
            record: Mutex::default(),
        }
    }

    /// The same with this content through an accelerator.
    #[cfg(feature = "accelerator")]
    pub(crate) fn with_proxied_content(self, through: &'a ProxiedContent) -> Self {
        Self {
            proxied_content: Some(through),
            ..self
        }
    }

    /// Loads the earlier pages of the visit, then the page, until no request is left. Calls `on_begin` between these two, if there are
    /// earlier pages.
    pub async fn run(&self, on_begin: &(dyn Fn() + Sync)) {
        let earlier = self.page.earlier();
        let mut states: Vec<VisitState> = Vec::new();
        states.resize_with(self.clients.count(), VisitState::default);
        let began = self.runtime.now();
        for (number, page) in earlier.pages.iter().enumerate() {
            let site = self.clients.index_of_page(number);
            let mut visited = std::mem::take(&mut states[site]);
            visited.elapsed = self.runtime.now() - began;
            let tab = Self {
                visited: OnceLock::from(visited),
                own_clients: self.clients.of_page(number),
                ..Self::new(
                    page,
                    self.protocol,
                    self.options,
                    self.clients,
                    self.runtime,
                )
            };
            tab.drive_page().await;
            let record = tab.record.into_inner();
            let failures = record.failures.into_iter();
            let of_page = |failure| format!("page {} of the visit: {failure}", number + 1);
            self.record().failures.extend(failures.map(of_page));
            let mut visited = tab.visited.into_inner().unwrap_or_default();
            visited.extend(page, self.options, &record.rows, &record.failed);
            states[site] = visited;
            let next = self.runtime.now() + earlier.pause;
            self.runtime.sleep_until(next).await;
        }
        if !earlier.pages.is_empty() {
            on_begin();
        }
        let site = self.clients.index_of_page(earlier.pages.len());
        let mut visited = std::mem::take(&mut states[site]);
        visited.elapsed = self.runtime.now() - began;
        self.visited.get_or_init(|| visited);
        {
            let mut record = self.record();
            record.begun = self.runtime.now() - Instant::ZERO;
            record.stats_before = self.own_clients.stats();
        }
        self.drive_page().await;
        self.record().is_over = true;
    }

    /// Returns the result. An `Err` in `ended` is the reason why the run did not end. It is a failure only if the load was not over:
    /// a connection that one side abandoned may stay open at the other side for ever.
    pub fn into_load(
        self,
        network_name: &str,
        seed: u64,
        ended: Result<(), String>,
        traffic: &Traffic,
    ) -> Load {
        let mut record = self.record.into_inner();
        let begun = record.begun;
        let since_start = |instant: Instant| {
            let since = instant - Instant::ZERO;
            (Instant::ZERO + since.saturating_sub(begun)).as_millis_f64()
        };
        let at_latest =
            |instant: Option<Instant>| since_start(instant.unwrap_or_else(|| self.runtime.now()));
        if let (Err(reason), false) = (ended, record.is_over) {
            record
                .failures
                .push(format!("the page load did not end: {reason}"));
        }
        let (stats, before) = (self.own_clients.stats(), record.stats_before);
        record.rows.sort_by_key(|(node, row)| (row.needed, *node));
        if self.own_clients.are_separate() {
            let is_of_frame = |node| self.page.is_separate(node, self.options);
            number_connections_of_frames(&mut record.rows, is_of_frame);
        }
        Load {
            replica: self.page.replica().name.clone(),
            protocol: self.protocol.to_string(),
            network: network_name.to_owned(),
            seed,
            dom_content_loaded_ms: at_latest(record.dom_content_loaded),
            load_ms: at_latest(record.load),
            fcp_ms: record.first_paint.map(since_start),
            lcp_ms: record.largest_paint.map(since_start),
            time_on_wire_ms: traffic.time_on_wire().as_nanos() as f64 / 1e6,
            connections: traffic.connections,
            requests: stats.requests - before.requests,
            packets_up: traffic.packets_up,
            packets_down: traffic.packets_down,
            bytes_up: traffic.bytes_up,
            bytes_down: traffic.bytes_down,
            request_header_bytes: stats.request_header_bytes - before.request_header_bytes,
            request_header_bytes_wire: stats.request_header_bytes_wire
                - before.request_header_bytes_wire,
            response_header_bytes: stats.response_header_bytes - before.response_header_bytes,
            response_header_bytes_wire: stats.response_header_bytes_wire
                - before.response_header_bytes_wire,
            failures: record.failures,
            waterfall: record
                .rows
                .into_iter()
                .map(|(_, row)| row.since(begun))
                .collect(),
            qlogs: Vec::new(),
        }
    }

    /// The client of the requests of `node`.
    pub(super) fn client_of(&self, node: usize) -> &'a Client {
        let is_separate = self.page.is_separate(node, self.options);
        self.own_clients.client(is_separate)
    }

    async fn drive_page(&self) {
        let mut machine = PageLoad::new(self.page.graph());
        machine.hint(self.page.hints().iter().copied());
        if self.options.hints && self.proxied_content.is_none() {
            let graph = self.page.graph();
            machine.hint(graph.preload_candidates(self.page.replica()));
        }
        if self.options.scheduler != Scheduler::None {
            let mut plan = urgency_plan(self.page, self.protocol, self.options);
            plan.known_hosts = self.known_hosts(&plan);
            machine.schedule(self.options.scheduler, plan);
        }
        if let Some(plan) = self.page.paint_plan() {
            machine.draw(plan.clone());
        }
        machine.delay_load(self.page.load_delay());
        machine.start(self.runtime.now());
        let machine = RefCell::new(machine);
        let mut exchanges = FuturesUnordered::new();
        let mut sleep: Option<(Instant, BoxFuture<()>)> = None;
        std::future::poll_fn(|cx| {
            loop {
                while let Some(request) = { machine.borrow_mut().poll_request() } {
                    exchanges.push(self.exchange(request, &machine));
                }
                // Completed or not: the events that an exchange passed to the machine may lead to new requests.
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

    /// Lets the machine handle its timers; `true` if one was due.
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
        record.first_paint = machine.first_contentful_paint();
        record.largest_paint = machine.largest_contentful_paint();
    }

    pub(super) fn record(&self) -> MutexGuard<'_, LoadRecord> {
        self.record.lock()
    }
}

/// Gives the connections of frames of other sites the numbers after those of the page: each client counts its own from 0.
fn number_connections_of_frames(
    rows: &mut [(usize, WaterfallRow)],
    is_of_frame: impl Fn(usize) -> bool,
) {
    let of_page = rows.iter().filter(|(node, _)| !is_of_frame(*node));
    let numbers = of_page.map(|(_, row)| row.connection);
    let first = numbers.max().map_or(0, |last| last + 1);
    for (node, row) in rows {
        if row.status != 0 && is_of_frame(*node) {
            row.connection += first;
        }
    }
}
