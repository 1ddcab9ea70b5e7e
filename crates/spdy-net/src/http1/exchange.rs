//! HTTP/1.1 on both sides, by hyper (RFC 9112).
//!
//! hyper keeps the state of the connection; here its clock is the run's, heads are counted as they
//! pass, and a request that it never took can be told from one that was lost.

use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;

use futures_util::future::{Either, select};
use http::uri::{self, Authority, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version, header};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::ext::ReasonPhrase;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::{Mutex, MutexGuard};
use spdy::body::{Body, BoxError};
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_frame::priority::Priority;

use crate::connection::ClientOptions;
use crate::error::{ConnectionError, ExchangeError, Retry, error_chain};
use crate::handler::{Handler, RequestInfo};
use crate::http1::upgrade::PendingUpgrade;
use crate::interim::expect_continue::Expectation;
use crate::latch::Latch;
use crate::network::BoxIo;
use crate::protocol::Protocol;
use crate::refusal::{Flaw, Refusal};
use crate::serve::{ServeContext, over};
use crate::shims::head_size;
use crate::shims::head_timeout::{HeadTimeoutIo, TimedExchange};
use crate::shims::wire_observer::{HeaderByteCounters, HeaderBytes, Http1HeadCounter, ObservedIo};
use crate::tap::ConnectionTap;
use crate::timing::progress_timeout::{is_progress_timeout, with_write_timeout};

/// `HTTP/1.1 200 `, and the end of the line.
const STATUS_LINE_OVERHEAD: usize = 15;
/// ` ` and ` HTTP/1.1` beside method and target, and the end of the line.
const REQUEST_LINE_OVERHEAD: usize = 12;
const HOST_ADVICE: &str =
    "want one Host, of a name or an address and maybe a port (RFC 9112 section 3.2)\n";
const TRANSFER_ENCODING_ADVICE: &str =
    "want no Transfer-Encoding but chunked, once (RFC 9112 section 6.1)\n";
/// The least buffer hyper takes, bytes.
pub(crate) const MIN_BUFFER_BYTES: usize = 8192;

/// A client's HTTP/1.1 connection: one exchange at a time.
#[derive(Clone)]
pub(crate) struct Http1Client {
    /// `None` once closed here.
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
            .map_err(ConnectionError::Http1)?;
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
        let (mut request, expectation) = Expectation::of(request, &self.runtime);
        if let Some(signal) = expectation.as_ref().map(Expectation::signal) {
            hyper::ext::on_informational(&mut request, move |interim| {
                signal.handle_interim(interim.status());
            });
        }
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
            let response = sent.ok_or_else(closed)?.await.map_err(|mut error| {
                let untouched = error.take_message().is_some();
                exchange_error(untouched, error.error(), max_head_bytes)
            })?;
            // A server that did not ask for the body may take it for its next request.
            if let Some(expectation) = &expectation
                && !expectation.handle_final_head()
            {
                this.close();
            }
            check_size(&response, max_head_bytes)?;
            let (head, body) = response.into_parts();
            if head.status == StatusCode::SWITCHING_PROTOCOLS {
                let why = "http/1.1: the server switches to a protocol that nobody asked for";
                return Err(ExchangeError::new(Retry::Never, why));
            }
            // hyper ends the body of an answer to HEAD by itself; this only spares a boxed body.
            let body = match spdy_http::response::has_no_body(&method, head.status) {
                true => Body::empty(),
                // hyper's own words leave out the cause.
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

/// Origin form on the request line and the host in its header (RFC 9112 §3.2).
pub(crate) fn in_origin_form(request: Request<Body>) -> Result<Request<Body>, ExchangeError> {
    let (mut head, body) = request.into_parts();
    // First of all headers, as RFC 9110 §7.2 would like it.
    let host = match head.headers.remove(header::HOST) {
        Some(host) => host,
        None => {
            let host = spdy_http::request::host_header(&head).unwrap_or_default();
            host.parse()
                .map_err(|_| ExchangeError::new(Retry::Never, format!("{host:?} is no host")))?
        }
    };
    let mut headers = HeaderMap::with_capacity(head.headers.len() + 1);
    headers.insert(header::HOST, host);
    headers.extend(std::mem::take(&mut head.headers));
    head.headers = headers;
    if head.method != Method::CONNECT {
        let target = head
            .uri
            .path_and_query()
            .map_or("/", uri::PathAndQuery::as_str);
        let target = if target.is_empty() { "/" } else { target };
        head.uri = target.parse::<Uri>().map_err(|error| {
            ExchangeError::new(Retry::Never, format!("{target:?} is no target: {error}"))
        })?;
    }
    head.version = Version::HTTP_11;
    Ok(Request::from_parts(head, body))
}

/// Says that a body of unknown length follows where hyper would take it that none does, and send nothing of it (RFC 9112 §6.3).
fn declare_body(mut request: Request<Body>) -> Request<Body> {
    let mostly_has_none = matches!(*request.method(), Method::GET | Method::HEAD);
    let body = request.body();
    if mostly_has_none && !body.is_end_stream() && has_no_length(request.headers(), body) {
        let chunked = HeaderValue::from_static("chunked");
        let headers = request.headers_mut();
        headers.insert(header::TRANSFER_ENCODING, chunked);
    }
    request
}

/// Fails if the head of `response` is larger than may be.
pub(crate) fn check_size<B>(
    response: &Response<B>,
    max_head_bytes: usize,
) -> Result<(), ExchangeError> {
    let reason = response.extensions().get::<ReasonPhrase>();
    let first_line = STATUS_LINE_OVERHEAD + reason.map_or(0, |reason| reason.as_bytes().len());
    match head_size::is_too_large(first_line, response.headers(), max_head_bytes) {
        true => Err(ExchangeError::too_large(head_size::too_large(
            max_head_bytes,
        ))),
        false => Ok(()),
    }
}

/// What a failed exchange means for its request.
pub(crate) fn exchange_error(
    untouched: bool,
    error: &hyper::Error,
    max_head_bytes: usize,
) -> ExchangeError {
    if error.is_parse_too_large() {
        return ExchangeError::too_large(head_size::too_large(max_head_bytes));
    }
    let message = format!("http/1.1: {}", error_chain(error));
    if untouched {
        return ExchangeError::unsent(message);
    }
    if is_progress_timeout(error) {
        return ExchangeError::write_timed_out(message);
    }
    // A close while the answer was awaited: the race of every kept-alive connection.
    let is_race = error.is_incomplete_message() || error.is_closed() || error.is_canceled();
    let retry = match is_race || is_io(error) {
        true => Retry::IfIdempotent,
        false => Retry::Never,
    };
    ExchangeError::new(retry, message)
}

fn is_io(error: &hyper::Error) -> bool {
    std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<std::io::Error>)
}

/// Serves `io` until it ends, or until the exchange after `stop`; then what it was handed over to.
pub(crate) async fn serve(io: BoxIo, terms: ServeContext<'_>) -> Result<(), ConnectionError> {
    let ServeContext {
        secure,
        handler,
        options,
        runtime,
        stop,
    } = terms;
    let (io, clock) = HeadTimeoutIo::new(io, runtime.clone(), options);
    let seat = options.slot.clone();
    let max_head_bytes = options.max_head_bytes;
    let behind = PendingUpgrade::default();
    let next = behind.clone();
    let told = handler.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        let exchange = seat.exchange();
        let handler = handler.clone();
        let offer = next.offer(&mut request);
        let timed = clock.request();
        async move {
            let (version, headers) = (request.version(), request.headers());
            let refused = |flaw| refused(&*handler, &request, flaw);
            let mut response = match request_host(version, headers) {
                Err(HostError) => refused(Flaw::Host),
                Ok(_) if !is_chunked_at_most(headers) => refused(Flaw::TransferCoding),
                Ok(_) if is_too_large(&request, max_head_bytes) => refused(Flaw::HeadTooLarge),
                Ok(host) => {
                    handler
                        .answer(build_request(request, host, secure, &timed))
                        .await
                }
            };
            let exchange = match offer {
                Some(offer) => match offer.accept(exchange, &mut response) {
                    Some(exchange) => exchange,
                    // What follows is no head: the code that takes the connection over has its own timeouts.
                    None => return Ok(response),
                },
                None => exchange,
            };
            // hyper would announce that the connection stays open after a body that only its end delimits (RFC 9112
            // §9.3).
            if version == Version::HTTP_10 && has_no_length(response.headers(), response.body()) {
                *response.version_mut() = Version::HTTP_10;
            }
            let response = response.map(|body| timed.response(body));
            Ok::<_, Infallible>(exchange.with(response))
        }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        // `HeadTimeoutIo` has the patience, by the clock of the run.
        .header_read_timeout(None)
        .max_buf_size(options.max_head_bytes.max(MIN_BUFFER_BYTES))
        // A client that has sent its last request may close its half and still read.
        .half_close(true)
        // The site writes Date, by a clock of its own.
        .auto_date_header(false);
    let connection = builder.serve_connection(TokioIo::new(io), service);
    let connection = connection.with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = match select(connection.as_mut(), over(options, stop)).await {
        Either::Left((ended, _)) => ended,
        Either::Right(((), _)) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Some(flaw) = ended.as_ref().err().and_then(Flaw::of_http1) {
        told.refused(&Refusal::unread(Protocol::Http1, flaw));
    }
    ended.map_err(ConnectionError::Http1)?;
    behind.run(stop).await;
    Ok(())
}

/// Whether nothing says beforehand how long the body is.
fn has_no_length(headers: &HeaderMap, body: &Body) -> bool {
    !headers.contains_key(header::CONTENT_LENGTH) && body.size_hint().exact().is_none()
}

/// A request names several hosts, none where it must name one, or what is none.
struct HostError;

/// The host that a request names, once, and in HTTP/1.1 at least once, though the name may be empty: `None`. Two servers in a
/// row could take two names each its own way (RFC 9112 §3.2).
fn request_host(version: Version, headers: &HeaderMap) -> Result<Option<Authority>, HostError> {
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if version < Version::HTTP_11 => Ok(None),
        (Some(host), None) if host.is_empty() => Ok(None),
        (Some(host), None) => host_of(host.as_bytes()).map(Some).ok_or(HostError),
        (None, _) | (Some(_), Some(_)) => Err(HostError),
    }
}

/// A host and maybe a port, without anyone's name in front (RFC 9110 §7.2).
fn host_of(host: &[u8]) -> Option<Authority> {
    let host = Some(host).filter(|host| !host.contains(&b'@'));
    Authority::try_from(host?).ok()
}

/// Whether a request's body is under no coding but chunks, and under those once: any other would reach the handler undecoded, and
/// with nothing that tells of it (RFC 9112 §6.1).
fn is_chunked_at_most(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(coding), None) => coding.as_bytes().eq_ignore_ascii_case(b"chunked"),
        (Some(_), Some(_)) => false,
    }
}

/// Whether the head of `request` is larger than may be: then hyper has not seen that.
fn is_too_large<B>(request: &Request<B>, max_head_bytes: usize) -> bool {
    let target = request.uri().path_and_query();
    let target = target.map_or(0, |target| target.as_str().len());
    let first_line = request.method().as_str().len() + target + REQUEST_LINE_OVERHEAD;
    head_size::is_too_large(first_line, request.headers(), max_head_bytes)
}

/// Tells what `request` should have been, and `handler` that it was not.
fn refused<B>(handler: &dyn Handler, request: &Request<B>, flaw: Flaw) -> Response<Body> {
    let want = match flaw {
        Flaw::Host => HOST_ADVICE,
        Flaw::TransferCoding => TRANSFER_ENCODING_ADVICE,
        Flaw::Malformed | Flaw::HeadTooLarge => "",
    };
    handler.refused(&Refusal {
        protocol: Protocol::Http1,
        method: Some(request.method()),
        uri: Some(request.uri()),
        headers: Some(request.headers()),
        body_bytes: want.len() as u64,
        flaw,
    });
    let mut response = flaw.answer(want);
    // Whatever comes next on this connection was written by the same hand.
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
    response
}

/// The request, which named `host`, as handlers see it: absolute, and with how it came.
fn build_request(
    request: Request<Incoming>,
    host: Option<Authority>,
    secure: bool,
    timed: &TimedExchange,
) -> Request<Body> {
    let (mut head, body) = request.into_parts();
    let arrival = RequestInfo {
        protocol: Protocol::Http1,
        secure,
        priority: Priority::HIGHEST,
    };
    head.extensions.insert(arrival);
    let uri = match host {
        Some(host) => absolute(&head.uri, host, secure),
        None => with_root_path(&head.uri),
    };
    if let Some(uri) = uri {
        head.uri = uri;
    }
    let body = match hyper::body::Body::is_end_stream(&body) {
        true => Body::empty(),
        false => timed.request_body(body),
    };
    Request::from_parts(head, body)
}

/// `uri` with scheme and host, where it has none.
fn absolute(uri: &Uri, host: Authority, secure: bool) -> Option<Uri> {
    if uri.authority().is_some() {
        return with_root_path(uri); // absolute form, or CONNECT: as it was written
    }
    let mut parts = uri::Parts::default();
    parts.scheme = Some(if secure { Scheme::HTTPS } else { Scheme::HTTP });
    parts.authority = Some(host);
    parts.path_and_query = uri.path_and_query().cloned();
    Uri::from_parts(parts).ok()
}

/// An absolute `uri` whose path is empty before its query, which means the root (RFC 9110 §4.2.3), with that written out; `None` if it is well.
fn with_root_path(uri: &Uri) -> Option<Uri> {
    let target = uri.path_and_query()?.as_str();
    let rooted = target.starts_with('?').then(|| format!("/{target}"))?;
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = rooted.parse().ok();
    Uri::from_parts(parts).ok()
}
