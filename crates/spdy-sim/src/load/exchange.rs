//! One exchange of a page load: the request as the client sends it, the cache, the response, and the check of its body.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use http_body::Body as _;
use spdy::body::Body;
use spdy_client::error::Error;
use spdy_client::origin::WithoutCredentials;
use spdy_client::timing::Timings;
use spdy_net::interim::interim_responses::InterimResponses;
use spdy_page::graph::Trigger;
use spdy_page::replica::{Exchange, Kind};

use crate::load::body_check::BodyCheck;
use crate::load::cancelled_transfer::CancelledTransfer;
use crate::load::client_cache::{self, CacheLookup};
use crate::load::proxied_content::{BodyDecoder, ProxiedContent};
use crate::load::{LoadDriver, WaterfallRow};
use crate::options::Cache;
use crate::page_load::{PageLoad, Request};

/// Runs `meanwhile` until `fetch` ends.
async fn while_waiting<T>(
    fetch: impl Future<Output = T>,
    meanwhile: impl Future<Output = ()>,
) -> T {
    let (mut fetch, mut meanwhile) = (pin!(fetch), pin!(meanwhile.fuse()));
    poll_fn(|cx| {
        let _ = meanwhile.as_mut().poll(cx);
        fetch.as_mut().poll(cx)
    })
    .await
}

impl<'a> LoadDriver<'a> {
    /// Runs one request and its response, from the page's request to the last byte.
    pub(super) async fn exchange(&self, mut request: Request, machine: &RefCell<PageLoad<'_>>) {
        let node_index = request.node;
        let node = &self.page.graph().nodes[node_index];
        let exchange = &self.page.replica().exchanges[node.exchange];
        let (mut http_request, held) = self.prepare_request(node.exchange);
        if let Ok(http_request) = &mut http_request {
            self.set_priority(&mut request, http_request.headers_mut(), exchange);
        }
        if node.trigger == Trigger::Start
            && let Ok(http_request) = &http_request
        {
            self.preconnect_navigation(request.node, http_request);
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
        let backup_origin = http_request.as_ref().ok();
        let backup_origin =
            backup_origin.and_then(|http_request| self.backup_origin(request.node, http_request));
        let backup = async {
            if let Some(origin) = &backup_origin {
                self.open_backup(self.client_of(node_index), origin).await;
            }
        };
        let fetch = self.fetch(request, exchange, http_request, held, &mut row, machine);
        let fetched = while_waiting(fetch, backup).await;
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

    /// Builds the request for the exchange with this index, and looks it up in the cache.
    fn prepare_request(&self, index: usize) -> (Result<http::Request<Body>, String>, CacheLookup) {
        let exchange = &self.page.replica().exchanges[index];
        let recorded = self.page.recorded(index);
        let mut http_request = recorded.request.build(self.protocol.is_secure());
        if let Ok(request) = &mut http_request
            && recorded.is_without_credentials
        {
            request.extensions_mut().insert(WithoutCredentials);
        }
        if let (Ok(request), Some(cancelled)) = (&mut http_request, self.cancelled(index)) {
            let range = cancelled.range.clone();
            request.headers_mut().insert(header::RANGE, range);
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

    /// The transfer of the exchange with this index, if the browser cancelled it. An accelerator requests whole resources.
    fn cancelled(&self, index: usize) -> Option<&'a CancelledTransfer> {
        let recorded = self.page.recorded(index).cancelled.as_ref();
        let is_proxied = |through: &ProxiedContent| through.body(index).is_some();
        recorded.filter(|_| !self.proxied_content.is_some_and(is_proxied))
    }

    /// How the body of `node` is decoded, and what it must equal: the replica's bytes, or their text behind an accelerator.
    fn body_check(
        &self,
        node: usize,
        exchange: &Exchange,
        headers: &HeaderMap,
    ) -> (Option<ProxiedBodyDecoder>, BodyCheck<'a>) {
        let number = self.page.graph().nodes[node].exchange;
        let exchanges = &self.page.replica().exchanges;
        let same_request = self.page.recorded(number).same_request.iter();
        let whole = self
            .proxied_content
            .and_then(|through| through.body(number));
        let text = whole.and_then(|whole| whole.text.as_ref());
        let decoder = self
            .proxied_content
            .and_then(|through| (through.decoder)(headers));
        let (Some(through), Some(whole), Some(text), Some(decoder)) =
            (self.proxied_content, whole, text, decoder)
        else {
            let answers = same_request.map(|&at| (&exchanges[at], self.page.recorded(at).status));
            return (None, BodyCheck::of(answers, exchange));
        };
        let plain = ProxiedBodyDecoder {
            decoder,
            counts_text: whole.is_rewritten,
        };
        let expected = match whole.is_replaced {
            true => BodyCheck::anything(),
            false => {
                let text_of = |index| through.body(index)?.text.as_deref();
                let texts = same_request.filter_map(|&at| Some((&exchanges[at], text_of(at)?)));
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
        let client = self.client_of(request.node);
        let Some(through) = self.proxied_content.filter(|_| self.options.hints) else {
            return client.send(http_request, request.priority).await;
        };
        let nodes = &self.page.graph().nodes;
        let node = &nodes[request.node];
        let is_page = node.parent().is_none_or(|parent| nodes[parent].is_redirect);
        if is_page && node.kind == Kind::Document {
            announce_navigation(http_request.headers_mut());
        }
        let (heads, mut heard) = InterimResponses::channel();
        http_request.extensions_mut().insert(heads);
        let mut answer = client.send(http_request, request.priority);
        poll_fn(|cx| {
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
        let cancelled = self.cancelled(self.page.graph().nodes[request.node].exchange);
        let until = cancelled.map_or(u64::MAX, |cancelled| cancelled.after_bytes);
        while row.body_bytes < until
            && let Some(piece) = next_piece(body.as_mut()).await
        {
            let mut piece = piece
                .map_err(|error| format!("after {} bytes of body: {error}", row.body_bytes))?;
            piece.truncate(usize::try_from(until - row.body_bytes).unwrap_or(usize::MAX));
            row.body_bytes += piece.len() as u64;
            let received_bytes = match &mut plain {
                Some(plain) => expected.compare(&plain.decoder.write(&piece)?),
                None => expected.compare(&piece),
            };
            let counts_text = plain.as_ref().is_some_and(|plain| plain.counts_text);
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
            expected.compare(&plain.decoder.finish()?);
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

/// The decoder of a body that came through an accelerator.
struct ProxiedBodyDecoder {
    decoder: Box<dyn BodyDecoder>,
    /// Offsets are those of the text, and not of the transferred bytes.
    counts_text: bool,
}

/// The next bytes of a body; trailers are skipped.
async fn next_piece(mut body: Pin<&mut Body>) -> Option<Result<Bytes, spdy::body::BoxError>> {
    loop {
        match poll_fn(|cx| body.as_mut().poll_frame(cx)).await? {
            Ok(frame) => {
                if let Ok(piece) = frame.into_data() {
                    return Some(Ok(piece));
                }
            }
            Err(error) => return Some(Err(error)),
        }
    }
}
