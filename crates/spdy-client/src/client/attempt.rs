//! One request on its way: sent, sent again where it may be, and its answer told from where it came.

use std::sync::Arc;

use futures_util::future::{Either, select};
use http::{Method, Request, Response, StatusCode};
use spdy::body::Body;
use spdy::client::Pushed;
use spdy_frame::priority::Priority;
use spdy_http::http1_text::{request_head_bytes, response_head_bytes};
use spdy_net::error::{ExchangeError, Retry};

use super::{Inner, Lease, Live, Queued};
use crate::connect::Phases;
use crate::error::Error;
use crate::exchange::{LeasedBody, Patience};
use crate::origin::Origin;
use crate::route::Route;
use crate::timing::Timings;

/// Methods that may be sent twice (RFC 9110 §9.2.2).
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

fn is_misdirected(response: &Response<Body>) -> bool {
    response.status() == StatusCode::MISDIRECTED_REQUEST
}

/// Whether what came says that the server does not want this origin on this connection.
fn is_turned_away(answer: &Result<Response<Body>, Error>) -> bool {
    match answer {
        Ok(response) => is_misdirected(response),
        Err(error) => matches!(error, Error::Exchange { .. }),
    }
}

impl Inner {
    /// One request, sent as often as it may and must be.
    pub(super) async fn exchange(
        self: Arc<Self>,
        origin: Origin,
        request: Request<Body>,
        priority: Priority,
        mut queued: Queued,
    ) -> Result<Response<Body>, Error> {
        let (head, mut body) = request.into_parts();
        let mut attempts_left = self.config.retries;
        loop {
            let lease = match (&mut queued.lease).await {
                Ok(lease) => lease?,
                Err(_) => return Err(Error::Closed),
            };
            let spare = body.try_clone();
            let request = Request::from_parts(head.clone(), body);
            let (id, is_guest) = (lease.id, *lease.opened_for != origin);
            let answer = self.attempt(&origin, request, priority, lease).await;
            if is_guest && is_turned_away(&answer) {
                let mut state = self.lock();
                // A connection that was lost turned nobody away.
                let stands = |live: &Live| !live.connection.is_closing();
                if state.live.get(&id).is_some_and(stands) {
                    state.pool.part(self.runtime.now(), id, &origin);
                }
                self.settle(state);
            }
            let (error, spare) = match (answer, spare) {
                // Nothing was done there, whatever the method (RFC 9110 §15.5.20).
                (Ok(response), Some(spare)) if is_guest && is_misdirected(&response) => {
                    tracing::debug!(uri = %head.uri, "asking again on a connection of its own");
                    body = spare;
                    queued = self.enqueue(&origin, priority)?;
                    continue;
                }
                (Ok(response), _) => return Ok(response),
                (Err(error), spare) => (error, spare),
            };
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
            body = match spare {
                Some(spare) if again && attempts_left > 0 => spare,
                _ => return Err(error),
            };
            attempts_left -= 1;
            tracing::debug!(%error, uri = %head.uri, attempts_left, "sending again");
            queued = self.enqueue(&origin, priority)?;
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
        let answer = lease
            .connection
            .send(Request::from_parts(head, body), priority);
        let answer = match self.config.head_timeout {
            None => answer.await,
            Some(after) => match select(answer, self.runtime.sleep_until(sent + after)).await {
                Either::Left((answer, _)) => answer,
                Either::Right(_) => {
                    let origin = origin.clone();
                    return Err(Error::TimedOut {
                        what: "response",
                        origin,
                        after,
                    });
                }
            },
        };
        let failed = |source: ExchangeError| {
            if source.refused {
                self.lock().pool.refused(lease.id); // before the lease is free again
            }
            Error::Exchange {
                origin: origin.clone(),
                source,
            }
        };
        let (mut head, body) = answer.map_err(failed)?.into_parts();
        {
            let mut state = self.lock();
            state.stats.response_header_bytes += response_head_bytes(&head) as u64;
            if head.extensions.get::<Pushed>().is_some() {
                // It was answered without being sent.
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
        let patience = self.config.body_timeout;
        let patience =
            patience.map(|after| Patience::new(self.runtime.clone(), after, origin.clone()));
        let body = Body::wrap(LeasedBody::new(body, lease, patience));
        Ok(Response::from_parts(head, body))
    }
}
