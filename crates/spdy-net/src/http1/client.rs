//! The client's side of HTTP/1.1: one exchange at a time on a connection.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::{Either, select};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use parking_lot::{Mutex, MutexGuard};
use spdy::body::{Body, BoxError};
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_net_core::error::{ConnectionError, ExchangeError, Retry, error_chain};
use spdy_net_core::header_bytes::{HeaderByteCounters, HeaderBytes};
use spdy_net_core::interim::expect_continue::Expectation;
use spdy_net_core::interim::interim_responses::InterimResponses;
use spdy_net_core::latch::Latch;
use spdy_net_core::network::BoxIo;
use spdy_net_core::options::ClientOptions;
use spdy_net_core::tap::ConnectionTap;
use spdy_net_core::timing::write_timeout_io::with_write_timeout;

use crate::http1::send::{
    MIN_BUFFER_BYTES, check_head_size, declare_body, exchange_error, in_origin_form,
};
use crate::shims::wire_observer::{Http1HeadCounter, ObservedIo};

/// Limit of 1xx heads before the response of a server, as over HTTP/3: a server may send them faster than they are used.
const MAX_INTERIM_HEADS: usize = 16;

/// A client's HTTP/1.1 connection: one exchange at a time.
#[derive(Clone)]
pub(crate) struct Http1Client {
    /// `None` after this side has closed it.
    sender: Arc<Mutex<Option<SendRequest<Body>>>>,
    watch: Http1HeadCounter,
    counters: Arc<HeaderByteCounters>,
    ended: Latch,
    max_head_bytes: usize,
    runtime: SharedRuntime,
}

impl std::fmt::Debug for Http1Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Http1Client")
    }
}

impl Http1Client {
    pub(crate) async fn start(
        io: BoxIo,
        options: &ClientOptions,
        tap: Option<ConnectionTap>,
        runtime: &SharedRuntime,
    ) -> Result<Self, ConnectionError> {
        let counters = Arc::new(HeaderByteCounters::default());
        let watch = Http1HeadCounter::new(counters.clone(), tap);
        let io = with_write_timeout(io, options, runtime);
        let io = TokioIo::new(ObservedIo::new(io, watch.clone()));
        let mut builder = hyper::client::conn::http1::Builder::new();
        builder.max_buf_size(options.max_head_bytes.max(MIN_BUFFER_BYTES));
        let (sender, connection) = builder
            .handshake(io)
            .await
            .map_err(|error| ConnectionError::Http1(error.into()))?;
        let ended = Latch::new();
        let end = ended.clone();
        runtime.spawn(Box::pin(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error = error_chain(&error), "http/1.1 connection ended");
            }
            end.set();
        }));
        let sender = Arc::new(Mutex::new(Some(sender)));
        Ok(Self {
            sender,
            watch,
            counters,
            ended,
            max_head_bytes: options.max_head_bytes,
            runtime: runtime.clone(),
        })
    }

    fn sender(&self) -> MutexGuard<'_, Option<SendRequest<Body>>> {
        self.sender.lock()
    }

    pub(crate) fn send(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<Result<Response<Body>, ExchangeError>> {
        let request = match in_origin_form(request) {
            Ok(request) => declare_body(request),
            Err(error) => return Box::pin(async { Err(error) }),
        };
        let listens: Option<InterimResponses> = request.extensions().get().cloned();
        let (mut request, expectation) = Expectation::of(request, &self.runtime);
        let signal = expectation.as_ref().map(Expectation::signal);
        let too_many_heads = Latch::new();
        let (too_many, heads) = (too_many_heads.clone(), AtomicUsize::new(0));
        hyper::ext::on_informational(&mut request, move |interim| {
            if heads.fetch_add(1, Ordering::Relaxed) >= MAX_INTERIM_HEADS {
                too_many.set();
                return;
            }
            if let Some(signal) = &signal {
                signal.handle_interim(interim.status());
            }
            if let Some(listens) = &listens {
                let (mut head, ()) = Response::new(()).into_parts();
                (head.status, head.headers) = (interim.status(), interim.headers().clone());
                listens.send(head);
            }
        });
        let method = request.method().clone();
        let this = self.clone();
        let max_head_bytes = self.max_head_bytes;
        self.watch.begin_exchange();
        let sent = self
            .sender()
            .as_mut()
            .map(|sender| sender.try_send_request(request));
        Box::pin(async move {
            let closed = || ExchangeError::unsent("the connection was closed");
            let sent = pin!(sent.ok_or_else(closed)?);
            let has_too_many = pin!(too_many_heads.wait());
            let sent = select(sent, has_too_many).await;
            let response = match sent {
                // Too many 1xx heads and the response may have arrived together.
                Either::Left((response, _)) if !too_many_heads.is_set() => {
                    response.map_err(|mut error| {
                        let is_unsent = error.take_message().is_some();
                        exchange_error(is_unsent, error.error(), max_head_bytes)
                    })?
                }
                _ => {
                    this.close();
                    let reason =
                        format!("http/1.1: more than {MAX_INTERIM_HEADS} interim responses");
                    return Err(ExchangeError::new(Retry::Never, reason));
                }
            };
            // A server that did not request the body may read it as its next request.
            if let Some(expectation) = &expectation
                && !expectation.handle_final_head()
            {
                this.close();
            }
            check_head_size(&response, max_head_bytes)?;
            let (head, body) = response.into_parts();
            if head.status == StatusCode::SWITCHING_PROTOCOLS {
                let reason = "http/1.1: the server switched to a protocol that was not requested";
                return Err(ExchangeError::new(Retry::Never, reason));
            }
            // hyper itself ends the body of a response to HEAD; this only avoids a boxed body.
            let body = match spdy_http::response::has_no_body(&method, head.status) {
                true => Body::empty(),
                // The text of hyper's error omits the cause.
                false => Body::wrap(body.map_err(|error| BoxError::from(error_chain(&error)))),
            };
            let response = Response::from_parts(head, body);
            Ok(match expectation {
                Some(expectation) => expectation.until_end_of(response),
                None => response,
            })
        })
    }

    pub(crate) fn ready(&self) -> BoxFuture<bool> {
        let this = self.clone();
        Box::pin(poll_fn(move |cx| match this.sender().as_mut() {
            Some(sender) => sender.poll_ready(cx).map(|ready| ready.is_ok()),
            None => std::task::Poll::Ready(false),
        }))
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.ended.is_set() || self.sender().as_ref().is_none_or(SendRequest::is_closed)
    }

    pub(crate) fn close(&self) {
        // hyper ends an idle connection when no sender is left, a busy one after its exchange.
        drop(self.sender().take());
    }

    pub(crate) fn closed(&self) -> BoxFuture<()> {
        Box::pin(self.ended.wait())
    }

    pub(crate) fn header_bytes(&self) -> HeaderBytes {
        self.counters.read()
    }
}
