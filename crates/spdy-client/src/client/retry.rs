//! Sends one request, and decides if it is retried: on another connection, on a connection to the origin itself, or not at all.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use spdy::body::Body;
use spdy::client::PushInfo;
use spdy::runtime::BoxFuture;
use spdy_frame::priority::Priority;
use spdy_http::http1_text::{request_head_bytes, response_head_bytes};
use spdy_net::error::{ExchangeError, Retry};

use crate::client::connections::{Inner, Lease, LiveConnection, QueuedRequest};
use crate::connect::Phases;
use crate::error::{Error, TimeoutPhase};
use crate::exchange_body::{BodyReplay, BodyTimeout, leased_body};
use crate::origin::Origin;
use crate::route::Route;
use crate::timing::Timings;
use crate::upload_progress::UploadProgress;

/// A connection is no longer used this long before the server's announced close.
const KEEP_ALIVE_MARGIN: Duration = Duration::from_secs(1);

/// Minimum interval at which a queued request checks if its connection was opened.
const POOL_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// True for methods that may be retried (RFC 9110 §9.2.2).
fn is_idempotent(method: &Method) -> bool {
    [
        Method::GET,
        Method::HEAD,
        Method::PUT,
        Method::DELETE,
        Method::OPTIONS,
        Method::TRACE,
    ]
    .contains(method)
}

/// How long a connection may be idle before it is reused, by the server's Keep-Alive header (RFC 2068 §19.7.1.1): one second less,
/// or half if that is shorter, since a request takes time to arrive.
fn keep_alive(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get("keep-alive")?.to_str().ok()?;
    let mut parameters = value.split(',').filter_map(|one| one.split_once('='));
    let (_, timeout) = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("timeout"))?;
    let timeout = Duration::from_secs(timeout.trim().trim_matches('"').parse().ok()?);
    Some(timeout - KEEP_ALIVE_MARGIN.min(timeout / 2))
}

fn is_misdirected(response: &Response<Body>) -> bool {
    response.status() == StatusCode::MISDIRECTED_REQUEST
}

/// True if the answer shows that the server rejects this origin on this connection.
fn is_origin_rejected(answer: &Result<Response<Body>, Error>) -> bool {
    match answer {
        Ok(response) => is_misdirected(response),
        Err(error) => matches!(error, Error::Exchange { .. }),
    }
}

impl Inner {
    /// Sends one request, with retries.
    pub(super) async fn exchange(
        self: Arc<Self>,
        origin: Origin,
        request: Request<Body>,
        priority: Priority,
        mut queued: QueuedRequest,
    ) -> Result<Response<Body>, Error> {
        let (head, mut body) = request.into_parts();
        let mut attempts_left = self.config.retries;
        let budget = self.config.retry_budget.as_ref();
        if let Some(budget) = budget {
            budget.sent(&origin, self.runtime.now());
        }
        loop {
            let lease = self.place(&origin, &mut queued).await?;
            let (sent, spare) = BodyReplay::of(body);
            let request = Request::from_parts(head.clone(), sent);
            let (id, is_joined) = (lease.id, *lease.opened_for != origin);
            let is_used = lease.phases.connect.is_none();
            let answer = self.attempt(&origin, request, priority, lease).await;
            if is_joined && is_origin_rejected(&answer) {
                let mut state = self.lock();
                // A lost connection is not a rejection of the origin.
                let stands = |live: &LiveConnection| !live.connection.is_closing();
                if state.live.get(&id).is_some_and(stands) {
                    state.pool.part(self.runtime.now(), id, &origin);
                }
                self.apply_pool_actions(state);
            }
            let error = match answer {
                // The server did not process the request, so any method may be retried (RFC 9110 §15.5.20).
                Ok(response) if is_joined && is_misdirected(&response) => match spare.take() {
                    Some(spare) => {
                        tracing::debug!(uri = %head.uri, "retrying on a dedicated connection");
                        body = spare;
                        queued = self.enqueue(&origin, priority)?;
                        continue;
                    }
                    None => return Ok(response),
                },
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            // The server closed the connection before any of the request was sent. This does not count as an
            // attempt: the number of such connections is limited.
            let is_unsent = matches!(
                &error,
                Error::Exchange { source, .. } if is_used && source.unsent
            );
            let again = match &error {
                Error::Exchange {
                    source: ExchangeError { retry, .. },
                    ..
                } => match retry {
                    Retry::Always => true,
                    Retry::IfIdempotent => is_idempotent(&head.method),
                    Retry::Never => false,
                },
                _ => false,
            };
            body = match spare.take() {
                Some(spare) if again && (is_unsent || attempts_left > 0) => spare,
                _ => return Err(error),
            };
            if !is_unsent {
                attempts_left -= 1;
                let now = self.runtime.now();
                if budget.is_some_and(|budget| !budget.try_spend(&origin, now)) {
                    tracing::debug!(%error, uri = %head.uri, "retry budget exhausted");
                    return Err(error);
                }
            }
            tracing::debug!(%error, uri = %head.uri, attempts_left, "retrying");
            queued = self.enqueue(&origin, priority)?;
        }
    }

    /// Waits for a connection for the request.
    async fn place(&self, origin: &Origin, queued: &mut QueuedRequest) -> Result<Lease, Error> {
        let unwrap_lease = |lease: Result<_, _>| lease.unwrap_or(Err(Error::Closed));
        let Some(after) = self.config.queue_timeout else {
            return unwrap_lease((&mut queued.lease).await);
        };
        if let Some(lease) = (&mut queued.lease).now_or_never() {
            return unwrap_lease(lease);
        }
        let mut after = after;
        loop {
            let timer = self.runtime.sleep_until(self.runtime.now() + after);
            match select(&mut queued.lease, timer).await {
                Either::Left((lease, _)) => return unwrap_lease(lease),
                Either::Right(_) if self.lock().pool.is_connected(origin) => {
                    return Err(Error::Full {
                        origin: origin.clone(),
                        reason: "all connections stayed busy",
                    });
                }
                // No connection is open; opening one has its own timeout.
                Either::Right(_) => after = after.max(POOL_POLL_INTERVAL),
            }
        }
    }

    /// Waits for `answer` until the timeout `after`, which starts again with each piece of the request that is sent.
    async fn with_timeout<T>(
        &self,
        origin: &Origin,
        mut answer: BoxFuture<T>,
        progress: &UploadProgress,
        after: Duration,
    ) -> Result<T, Error> {
        let mut due = progress.due(self.runtime.now(), after);
        loop {
            answer = match select(answer, self.runtime.sleep_until(due)).await {
                Either::Left((answer, _)) => return Ok(answer),
                Either::Right((_, waiting)) => waiting,
            };
            let now = self.runtime.now();
            due = progress.due(now, after);
            if due > now {
                continue;
            }
            let origin = origin.clone();
            return Err(match progress.is_awaiting_body() {
                true => Error::NoBody { origin, after },
                false => Error::TimedOut {
                    phase: TimeoutPhase::Response,
                    origin,
                    after,
                },
            });
        }
    }

    async fn attempt(
        self: &Arc<Self>,
        origin: &Origin,
        request: Request<Body>,
        priority: Priority,
        lease: Lease,
    ) -> Result<Response<Body>, Error> {
        let (head, body) = request.into_parts();
        let head_bytes = request_head_bytes(&head) as u64;
        {
            let mut state = self.lock();
            state.stats.requests += 1;
            state.stats.request_header_bytes += head_bytes;
        }
        let sent = self.runtime.now();
        let request = Request::from_parts(head, body);
        let answer = match self.config.head_timeout {
            None => lease.connection.send(request, priority).await,
            Some(after) => {
                let progress = UploadProgress::since(sent);
                let request = match http_body::Body::is_end_stream(request.body()) {
                    true => request,
                    false => request.map(|body| progress.of(body, self.runtime.clone())),
                };
                let answer = lease.connection.send(request, priority);
                self.with_timeout(origin, answer, &progress, after).await?
            }
        };
        let failed = |source: ExchangeError| {
            if source.refused {
                self.lock().pool.refused(lease.id); // before the lease is returned
            }
            Error::Exchange {
                origin: origin.clone(),
                source,
            }
        };
        let (mut head, body) = answer.map_err(failed)?.into_parts();
        {
            let mut state = self.lock();
            if self.config.http1_idle_timeout.is_some()
                && !lease.route.protocol.is_multiplexed()
                && let Some(timeout) = keep_alive(&head.headers)
            {
                state.pool.set_idle_timeout(lease.id, timeout);
            }
            state.stats.response_header_bytes += response_head_bytes(&head) as u64;
            if head.extensions.get::<PushInfo>().is_some() {
                // The server answered before the request was sent.
                state.stats.requests -= 1;
                state.stats.request_header_bytes -= head_bytes;
            }
        }
        let Phases { dns, connect, tls } = lease.phases;
        let connection = usize::try_from(lease.id).unwrap_or(usize::MAX);
        let first_byte = self.runtime.now();
        head.extensions.insert(Timings {
            connection,
            dns,
            connect,
            tls,
            sent,
            first_byte,
        });
        head.extensions.insert(Route {
            shared: *lease.opened_for != *origin,
            ..lease.route
        });
        if http_body::Body::is_end_stream(&body) {
            return Ok(Response::from_parts(head, body));
        }
        let body_timeout = self.config.body_timeout;
        let body_timeout =
            body_timeout.map(|after| BodyTimeout::new(self.runtime.clone(), after, origin.clone()));
        let body = leased_body(body, Some(lease), body_timeout);
        Ok(Response::from_parts(head, body))
    }
}
