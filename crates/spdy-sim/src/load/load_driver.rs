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
use std::pin::{Pin, pin};
use std::sync::OnceLock;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::Body as _;
use parking_lot::{Mutex, MutexGuard};
use spdy::body::Body;
use spdy::runtime::{BoxFuture, Runtime};
use spdy_client::client::{Client, Stats};
use spdy_client::error::Error;
use spdy_client::origin::WithoutCredentials;
use spdy_client::timing::Timings;
use spdy_clock::Instant;
use spdy_net::interim::interim_responses::InterimResponses;
use spdy_page::graph::Trigger;
use spdy_page::replica::{Exchange, Kind};
use spdy_proxy::body::content_coding::Coding;
use spdy_proxy::body::decoder::Decoder;

use crate::load::body_check::BodyCheck;
use crate::load::client_cache::{self, CacheLookup};
use crate::load::proxied_content::ProxiedContent;
use crate::load::recorded_request::is_without_credentials;
use crate::load::request_of;
use crate::load::urgency::urgency_plan;
use crate::load::visit::VisitState;
use crate::load::{Load, Page, WaterfallRow};
use crate::network::Traffic;
use crate::options::{Cache, Options, RaceProtocol, Scheduler};
use crate::page_load::{PageLoad, Request};

/// The most that a body may decode to, bytes.
const MAX_TEXT_BYTES: usize = 64 * 1024 * 1024;

/// State that is recorded while the load runs. It outlives a run that does not end.
#[derive(Default)]
struct LoadRecord {
    /// From the runtime's origin to the start of the load.
    begun: Duration,
    /// Counts of the client at that time.
    stats_before: Stats,
    dom_content_loaded: Option<Instant>,
    load: Option<Instant>,
    first_paint: Option<Instant>,
    largest_paint: Option<Instant>,
    rows: Vec<(usize, WaterfallRow)>,
    /// The page is loaded; only connections are still closed.
    is_over: bool,
    failures: Vec<String>,
    /// Nodes of failed requests.
    failed: BTreeSet<usize>,
}

/// One load while it runs.
pub struct LoadDriver<'a> {
    pub(super) page: &'a Page,
    pub(super) protocol: RaceProtocol,
    pub(super) options: &'a Options,
    pub(super) client: &'a Client,
    runtime: &'a dyn Runtime,
    /// Content that comes through an accelerator, if there is one.
    proxied_content: Option<&'a ProxiedContent>,
    /// What the earlier pages of a visit left.
    pub(super) visited: OnceLock<VisitState>,
    record: Mutex<LoadRecord>,
}

impl<'a> LoadDriver<'a> {
    /// Creates a load that has not started. `runtime` is the client's own.
    #[must_use]
    pub fn new(
        page: &'a Page,
        protocol: RaceProtocol,
        options: &'a Options,
        client: &'a Client,
        runtime: &'a dyn Runtime,
    ) -> Self {
        Self {
            page,
            protocol,
            options,
            client,
            runtime,
            proxied_content: None,
            visited: OnceLock::new(),
            record: Mutex::default(),
        }
    }

    /// The same with this content through an accelerator.
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
        let mut visited = VisitState::default();
        let began = self.runtime.now();
        for (number, page) in earlier.pages.iter().enumerate() {
            let tab = Self {
                visited: OnceLock::from(visited),
                ..Self::new(page, self.protocol, self.options, self.client, self.runtime)
            };
            tab.drive_page().await;
            let record = tab.record.into_inner();
            let failures = record.failures.into_iter();
            let of_page = |failure| format!("page {} of the visit: {failure}", number + 1);
            self.record().failures.extend(failures.map(of_page));
            visited = tab.visited.into_inner().unwrap_or_default();
            visited.extend(page, &record.rows, &record.failed);
            let next = self.runtime.now() + earlier.pause;
            self.runtime.sleep_until(next).await;
            visited.elapsed = self.runtime.now() - began;
        }
        if !earlier.pages.is_empty() {
            on_begin();
        }
        self.visited.get_or_init(|| visited);
        {
            let mut record = self.record();
            record.begun = self.runtime.now() - Instant::ZERO;
            record.stats_before = self.client.stats();
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
        let (stats, before) = (self.client.stats(), record.stats_before);
        record.rows.sort_by_key(|(node, row)| (row.needed, *node));
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
        }
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

    fn record(&self) -> MutexGuard<'_, LoadRecord> {
        self.record.lock()
    }

    /// Runs one request and its response, from the page's request to the last byte.
    async fn exchange(&self, mut request: Request, machine: &RefCell<PageLoad<'_>>) {
        let node = &self.page.graph().nodes[request.node];
        let exchange = &self.page.replica().exchanges[node.exchange];
        let (mut http_request, held) = self.prepare_request(exchange);
        if let Ok(http_request) = &mut http_request {
            self.set_priority(&mut request, http_request.headers_mut(), exchange);
        }
        if node.trigger == Trigger::Start
            && let Ok(http_request) = &http_request
        {
            self.preconnect_navigation(http_request);
        }
        if let CacheLookup::Fresh(bytes) = held {
            let (now, mut machine) = (self.runtime.now(), machine.borrow_mut());
            machine.handle_head(now, request.node);
            machine.handle_bytes(now, request.node, bytes);
            self.preconnect(request.node, 0, bytes);
            return machine.handle_done(now, request.node);
        }
        let mut row = WaterfallRow {
            url: exchange.url.to_string(),
            kind: node.kind,
            status: 0,
            connection: 0,
            priority: request.priority.level(),
            body_bytes: 0,
            needed: request.needed,
            dns: None,
            connect: None,
            tls: None,
            sent: request.needed,
            first_byte: request.needed,
            done: request.needed,
        };
        let fetched = self
            .fetch(request, exchange, http_request, held, &mut row, machine)
            .await;
        let now = self.runtime.now();
        row.done = now;
        let mut record = self.record();
        record.rows.push((request.node, row));
        let failed =
            fetched.map_err(|reason| record.failures.push(format!("{}: {reason}", exchange.url)));
        if failed.is_err() {
            record.failed.insert(request.node);
        }
        drop(record);
        match failed {
            Ok(()) => machine.borrow_mut().handle_done(now, request.node),
            Err(()) => machine.borrow_mut().handle_failed(now, request.node),
        }
    }

    /// Builds the request for `exchange`, and looks it up in the cache.
    fn prepare_request(
        &self,
        exchange: &Exchange,
    ) -> (Result<http::Request<Body>, String>, CacheLookup) {
        let mut http_request = request_of(exchange, self.protocol.is_secure());
        let document = &self.page.replica().document().url;
        if let Ok(request) = &mut http_request
            && is_without_credentials(exchange, document)
        {
            request.extensions_mut().insert(WithoutCredentials);
        }
        let visited = self.visited.get();
        let stored = visited.and_then(|visited| visited.stored(exchange));
        // From an earlier page of the visit, or from an earlier load of this page.
        let (stored, age) = match (stored, self.options.cache) {
            (Some((index, received)), _) => (index, self.runtime.now() - received),
            (None, Cache::Warm { after }) => {
                let elapsed = visited.map_or(Duration::ZERO, |visited| visited.elapsed);
                (self.page.sent_index(exchange), after + elapsed)
            }
            (None, Cache::Cold) => return (http_request, CacheLookup::Miss),
        };
        let Ok(request) = &mut http_request else {
            return (http_request, CacheLookup::Miss);
        };
        for name in client_cache::CACHE_REQUEST_HEADERS {
            request.headers_mut().remove(name);
        }
        let replica = self.page.replica();
        let held = client_cache::held(replica, &replica.exchanges[stored], request, age);
        if let CacheLookup::Stale(_, validators) = &held {
            request.headers_mut().extend(validators.clone());
        }
        (http_request, held)
    }

    /// How the body of `node` is decoded, and what it must equal: the replica's bytes, or their text behind an accelerator.
    fn body_check(
        &self,
        node: usize,
        exchange: &Exchange,
        headers: &HeaderMap,
    ) -> (Option<ProxiedBodyDecoder>, BodyCheck<'a>) {
        let number = self.page.graph().nodes[node].exchange;
        let whole = self
            .proxied_content
            .and_then(|through| through.body(number));
        let text = whole.and_then(|whole| whole.text.as_ref());
        let (Some(through), Some(whole), Some(text), Some(coding)) =
            (self.proxied_content, whole, text, Coding::of(headers))
        else {
            let answers = self.page.matching_exchanges(exchange);
            return (None, BodyCheck::of(answers, exchange));
        };
        let plain = ProxiedBodyDecoder {
            decoder: Decoder::new(coding, MAX_TEXT_BYTES),
            is_rewritten: whole.is_rewritten,
        };
        let expected = match whole.is_replaced {
            true => BodyCheck::anything(),
            false => {
                let text_of = |index| through.body(index)?.text.as_deref();
                let exchanges = &self.page.replica().exchanges;
                let answers = self.page.matching_indexes(exchange);
                let texts = answers.filter_map(|at| Some((&exchanges[at], text_of(at)?)));
                BodyCheck::texts(texts, text.len())
            }
        };
        (Some(plain), expected)
    }

    /// Waits for the response to `http_request`. The page requests early hints that arrive before it.
    async fn answered(
        &self,
        request: Request,
        mut http_request: http::Request<Body>,
        machine: &RefCell<PageLoad<'_>>,
    ) -> Result<http::Response<Body>, Error> {
        let Some(through) = self.proxied_content.filter(|_| self.options.hints) else {
            return self.client.send(http_request, request.priority).await;
        };
        let nodes = &self.page.graph().nodes;
        let node = &nodes[request.node];
        let is_page = node.parent().is_none_or(|parent| nodes[parent].is_redirect);
        if is_page && node.kind == Kind::Document {
            announce_navigation(http_request.headers_mut());
        }
        let (heads, mut heard) = InterimResponses::channel();
        http_request.extensions_mut().insert(heads);
        let mut answer = self.client.send(http_request, request.priority);
        std::future::poll_fn(|cx| {
            let answer = answer.as_mut().poll(cx);
            while let Poll::Ready(Some(head)) = heard.poll_recv(cx) {
                let hinted = through.hinted_nodes(&head.headers);
                let now = self.runtime.now();
                let mut machine = machine.borrow_mut();
                machine.handle_early_hints(now, request.node, hinted);
            }
            answer
        })
        .await
    }

    async fn fetch(
        &self,
        request: Request,
        exchange: &Exchange,
        http_request: Result<http::Request<Body>, String>,
        held: CacheLookup,
        row: &mut WaterfallRow,
        machine: &RefCell<PageLoad<'_>>,
    ) -> Result<(), String> {
        let response = self.answered(request, http_request?, machine).await;
        let (head, body) = response.map_err(|error| error.to_string())?.into_parts();
        row.status = head.status.as_u16();
        match head.extensions.get::<Timings>() {
            Some(timings) => {
                row.connection = timings.connection;
                (row.dns, row.connect, row.tls) = (timings.dns, timings.connect, timings.tls);
                (row.sent, row.first_byte) = (timings.sent, timings.first_byte);
            }
            None => row.first_byte = self.runtime.now(),
        }
        if let Some(through) = self.proxied_content.filter(|_| self.options.hints) {
            machine
                .borrow_mut()
                .hint(through.hinted_nodes(&head.headers));
        }
        {
            let mut machine = machine.borrow_mut();
            let handshake = row.connect.map(|(from, until)| until - from);
            let handshake = handshake.filter(|_| !self.protocol.wire_protocol().is_over_quic());
            let answer = row.first_byte - row.sent;
            for time in handshake.into_iter().chain([answer]) {
                machine.handle_round_trip(request.node, time);
            }
            machine.handle_head(self.runtime.now(), request.node);
        }
        if let (CacheLookup::Stale(bytes, _), 304) = (held, row.status) {
            let now = self.runtime.now();
            machine.borrow_mut().handle_bytes(now, request.node, bytes);
            self.preconnect(request.node, 0, bytes);
            return Ok(());
        }
        let (mut plain, mut expected) = self.body_check(request.node, exchange, &head.headers);
        let mut body = pin!(body);
        let mut scanned_bytes = 0;
        while let Some(piece) = next_piece(body.as_mut()).await {
            let piece = piece
                .map_err(|error| format!("after {} bytes of body: {error}", row.body_bytes))?;
            row.body_bytes += piece.len() as u64;
            let received_bytes = match &mut plain {
                Some(plain) => expected.compare(&plain.write(&piece)?),
                None => expected.compare(&piece),
            };
            let counts_text = plain.as_ref().is_some_and(ProxiedBodyDecoder::counts_text);
            let received_bytes = if counts_text {
                received_bytes
            } else {
                row.body_bytes
            };
            machine
                .borrow_mut()
                .handle_bytes(self.runtime.now(), request.node, received_bytes);
            self.preconnect(request.node, scanned_bytes, received_bytes);
            scanned_bytes = received_bytes;
        }
        if let Some(plain) = plain {
            expected.compare(&plain.finish()?);
        }
        expected.finish(row.status)
    }
}

/// Sets the headers that a browser sends with a navigation (Fetch Metadata). A server sends hints by 103 only to clients that send
/// them.
fn announce_navigation(headers: &mut HeaderMap) {
    for (name, word) in [
        ("sec-fetch-dest", "document"),
        ("sec-fetch-mode", "navigate"),
    ] {
        let word = HeaderValue::from_static(word);
        headers.insert(HeaderName::from_static(name), word);
    }
}

/// Decodes a body that came through an accelerator, which chooses its own codings.
struct ProxiedBodyDecoder {
    decoder: Decoder,
    is_rewritten: bool,
}

impl ProxiedBodyDecoder {
    /// True if offsets are those of the text, and not of the transferred bytes.
    fn counts_text(&self) -> bool {
        self.is_rewritten
    }

    fn write(&mut self, piece: &[u8]) -> Result<Vec<u8>, String> {
        self.decoder.write(piece).map_err(|error| error.to_string())
    }

    fn finish(self) -> Result<Vec<u8>, String> {
        self.decoder.finish().map_err(|error| error.to_string())
    }
}

/// The next bytes of a body; trailers are skipped.
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
