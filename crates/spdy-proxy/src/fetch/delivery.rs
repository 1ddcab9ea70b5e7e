//! The end of an exchange: delivers the origin's body to the client, to the requests that share it, and to the cache.

use std::sync::Arc;

use http::{HeaderMap, Response, StatusCode, response};
use spdy::body::Body;
use spdy_cache::cache_status::CacheStatus;
use spdy_cache::lookup::Failure;
use spdy_cache::stored::Stored;
use tokio::sync::watch;

use crate::body::body_memory::MemoryReservation;
use crate::body::shared_body::{self, SharedBody, SharedBodyWriter};
use crate::cache::shared_response::{SharedBodySource, SharedResponse};
use crate::fetch::fetch_state::FetchState;
use crate::fetch::finished_page;
use crate::fetch::pump::{PageProgress, Pump};
use crate::fetch::range_fill::credit::RangeFill;
use crate::request::status_class::{is_origin_error, is_overloaded};
use crate::response::from_stored::{from_shared_body, mark_public};
use crate::response::respond;
use crate::rewrite::response_rewriter::{ResponseRewriter, RewritePlan};
use crate::telemetry::counters::Outcome;

/// The outcome of an exchange, for the client if one waits.
pub(crate) enum ExchangeOutcome {
    /// A response without the origin's body: an error, a redirect, or a stored response.
    Response(Box<Response<Body>>),
    /// A response in place of the origin's, which has this status and is not served.
    Rejected(Box<Response<Body>>, StatusCode),
    /// The origin's response, with a body that has not been read yet.
    Delivery(Box<Delivery>),
}

impl ExchangeOutcome {
    /// A response without the origin's body.
    pub(crate) fn response(response: Response<Body>) -> Self {
        Self::Response(Box::new(response))
    }
}

/// The result of a fetch that no client waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PrefetchResult {
    /// It is stored, and fresh for a while: the next request needs no origin.
    Stored,
    /// It may not be stored, or it is stale already.
    None,
    /// The origin failed.
    Failed,
}

/// In the extensions of a response with a page: signals that its body is complete, or aborted.
#[derive(Clone, Debug)]
pub(crate) struct TextEnd(watch::Receiver<()>);

impl TextEnd {
    /// Completes then.
    pub(crate) async fn reached(mut self) {
        while self.0.changed().await.is_ok() {}
    }
}

/// An origin's response that is not read yet.
pub(crate) struct Delivery {
    fetch: FetchState,
    origin: OriginResponse,
    client: ClientHead,
    /// Present if the response is shared with requests that wait for it.
    shared: Option<Arc<Stored>>,
    /// Whether it is then stored.
    is_stored: bool,
    /// The head, if it is a page that any client may have.
    public_page: Option<Arc<Stored>>,
    plan: RewritePlan,
    writer: SharedBodyWriter,
    recorded: SharedBody,
    /// The body for the client. A body that is neither stored nor read is not fetched.
    own: Body,
    range_fill: Option<RangeFill>,
}

/// A response as the origin sent it.
pub(crate) struct OriginResponse {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
    /// No redirect led to it.
    pub(crate) is_redirect_free: bool,
}

/// What is shared and stored of a response.
pub(crate) struct Storage {
    /// The response, if requests that wait for it share it.
    pub(crate) shared: Option<(Arc<Stored>, MemoryReservation)>,
    /// Whether it then goes to the cache.
    pub(crate) is_stored: bool,
    /// The head, if it is a page that any client may have.
    pub(crate) public_page: Option<Stored>,
}

/// A response as the client gets it, without the body.
pub(crate) struct ClientHead {
    pub(crate) head: response::Parts,
    /// Whether the body may have a content coding.
    pub(crate) may_encode: bool,
    pub(crate) status: CacheStatus,
}

impl Delivery {
    /// Delivers the response of `origin`, rewritten by `plan`.
    pub(crate) fn new(
        fetch: FetchState,
        origin: OriginResponse,
        client: ClientHead,
        storage: Storage,
        plan: RewritePlan,
    ) -> Self {
        let is_stored = storage.is_stored;
        let (mut shared, reservation) = storage.shared.unzip();
        let mut public_page = None;
        if let Some(page) = storage.public_page {
            let context = &fetch.context;
            let line = context.pages.texts.new_line(context.clock.wall_now());
            let page = shared.as_deref().cloned().unwrap_or(page);
            let note = [page.note(), line.as_bytes()].concat();
            let page = Arc::new(page.with_note(note));
            shared = shared.map(|_| page.clone());
            public_page = Some(page);
        }
        if let RewritePlan::SkipPage(reason) = &plan {
            let stored = shared.as_deref().filter(|_| is_stored);
            let (context, request) = (&fetch.context, &fetch.request);
            finished_page::record_skipped(context, request, *reason, stored, client.head.status);
        }
        let announced = http_body::Body::size_hint(&origin.body).exact();
        let announced = announced.filter(|_| plan.passes());
        let (writer, recorded) = match reservation {
            Some(reservation) => {
                let max_bytes = fetch.context.cache.limits.max_object_bytes;
                shared_body::retained(max_bytes, reservation, announced)
            }
            None => shared_body::streamed(announced),
        };
        // Before the body begins.
        let own = recorded.read().unwrap_or_default();
        Self {
            fetch,
            origin,
            client,
            shared,
            is_stored,
            public_page,
            plan,
            writer,
            recorded,
            own,
            range_fill: None,
        }
    }

    /// What the client reads counts for the credit of `fill`.
    pub(crate) fn with_range_fill(mut self, fill: Option<RangeFill>) -> Self {
        self.range_fill = fill;
        self
    }

    /// Starts to move the body. Gives the response for the client that waits.
    pub(crate) fn deliver_to_client(mut self) -> Response<Body> {
        let response = self.stream_shared();
        self.share(FailureSharing::Share);
        let own = std::mem::take(&mut self.own);
        let response = response.unwrap_or_else(|| {
            let mut head = Response::new(()).into_parts().0;
            head.status = self.client.head.status;
            head.headers = std::mem::take(&mut self.client.head.headers);
            let (request, client) = (&self.fetch.request, &self.client);
            if let Some(page) = &self.public_page {
                mark_public(request, page, &mut head);
            }
            respond::streaming(request, head, own, client.may_encode, &client.status)
        });
        let outcome = match self.is_stored {
            true => Outcome::MISS,
            false => Outcome::UNCACHEABLE,
        };
        let fill = self.range_fill.take();
        let is_page = self.public_page.is_some();
        let text_end = self.start_pump();
        let mut response = respond::with_outcome(response, outcome);
        if is_page {
            response.extensions_mut().insert(text_end);
        }
        match fill {
            Some(fill) => response.map(|body| fill.refund_on_read(body)),
            None => response,
        }
    }

    /// Starts to move the body. No client waits.
    pub(crate) fn deliver_to_cache(mut self) -> PrefetchResult {
        // The failure of a prefetch does not show what a client's own request would get.
        self.share(FailureSharing::Withhold);
        let now = self.fetch.context.clock.wall_now();
        let result = match &self.shared {
            Some(shared) if shared.ttl(now) > 0 => PrefetchResult::Stored,
            _ if is_origin_error(self.client.head.status) => PrefetchResult::Failed,
            _ => PrefetchResult::None,
        };
        // A client that does not want the response is no reader.
        drop(std::mem::take(&mut self.own));
        self.start_pump();
        result
    }

    /// The client's response while the shared one arrives.
    fn stream_shared(&self) -> Option<Response<Body>> {
        let (fetch, stored) = (&self.fetch, self.shared.as_ref()?);
        let (own, recorded) = (Some(&self.client.head.headers), &self.recorded);
        let (request, now) = (&fetch.request, fetch.context.clock.wall_now());
        from_shared_body(
            &fetch.context.cache,
            request,
            stored,
            own,
            recorded,
            now,
            &self.client.status,
        )
    }

    /// Shares the response with the requests that wait for it, or lets them make their own.
    fn share(&mut self, failure: FailureSharing) {
        let (fetch, code) = (&mut self.fetch, self.client.head.status);
        match (&self.shared, fetch.leader.as_mut()) {
            (Some(shared), Some(leader)) => leader.share(Arc::new(SharedResponse {
                stored: shared.clone(),
                source: SharedBodySource::Incoming(self.recorded.clone()),
            })),
            // The other leaders may succeed, and the followers would all contact an overloaded origin.
            (None, Some(leader)) if is_origin_error(code) && leader.has_other_leaders() => {
                fetch.leader = None;
            }
            (None, Some(_)) if is_overloaded(code) => {
                let leader = fetch.leader.take();
                if let (Some(leader), FailureSharing::Share) = (leader, failure) {
                    leader.fail(Failure::Status(code));
                }
            }
            _ => fetch.stop_coalescing(),
        }
    }

    /// Starts to move the body. Returns the signal of its end.
    fn start_pump(self) -> TextEnd {
        let Self {
            mut fetch,
            origin,
            client,
            shared,
            is_stored,
            public_page,
            plan,
            writer,
            recorded,
            ..
        } = self;
        let (context, request) = (fetch.context.clone(), fetch.request.clone());
        let observations = Arc::new(fetch.observations());
        let rewriter =
            ResponseRewriter::new(plan, &request, &origin.headers, Some(observations.clone()));
        let span = rewriter.kind().and_then(|_| {
            let within = request.span_context.as_ref();
            context.telemetry.rewrite_span(within)
        });
        let (until_end, end) = watch::channel(());
        let pump = Pump {
            until_end,
            page: PageProgress::new(context.observer.begin(&request), span),
            context,
            shared,
            is_stored,
            public_page,
            status: client.head.status,
            leader: fetch.leader.take(),
            rewriter,
            observations,
            is_redirect_free: origin.is_redirect_free,
            writer,
            since: fetch.since,
            request,
        };
        pump.start(origin.body);
        drop(recorded);
        TextEnd(end)
    }
}

/// Whether requests that wait get the failure of an overloaded origin.
#[derive(Clone, Copy)]
enum FailureSharing {
    Share,
    Withhold,
}
