//! The client's side: one exchange per stream.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use http::{HeaderName, Method, Request, Response, StatusCode, header};
use http_body::Body as _;
use parking_lot::{Mutex, MutexGuard};
use spdy::body::Body;
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_frame::priority::Priority;
use spdy_net_core::early_data::may_be_early;
use spdy_net_core::error::{ExchangeError, Retry};
use spdy_net_core::head::connection_headers::drop_connection_headers;
use spdy_net_core::head::request_head::set_authority;
use spdy_net_core::header_bytes::{HeaderByteCounters, HeaderBytes};
use spdy_net_core::interim::interim_responses::InterimResponses;
use spdy_net_core::latch::{Latch, until};
use spdy_net_core::options::ClientOptions;
use spdy_net_core::priority::HttpPriority;
use spdy_net_core::tap::ConnectionTap;
use spdy_net_core::timing::progress_timeout::ProgressTimeout;
use spdy_net_core::tls::PeerCertificates;

use crate::body::receive::{Http3Body, head as read_head};
use crate::body::send::{SendingStream, stream_observer};
use crate::closer::Closer;
use crate::code::Code;
use crate::compression::HeaderCompression;
use crate::control::{self, ControlEvent, OwnControlStream};
use crate::fault::Fault;
use crate::fields;
use crate::frame::{FrameReader, StreamKind};
use crate::goaway::Goaway;
use crate::qpack::section_len;
use crate::quic::{self, EarlyAttempt, QuicConnection, SEND_WINDOW_BYTES};
use crate::quinn_shims::send_budget::SendBudget;
use crate::quinn_shims::stream_open_queue::{StreamOpen, StreamOpenQueue};
use crate::role::Role;

/// Interval of polls for the last packet being sent.
const CLOSE_POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Maximum number of these polls.
const MAX_CLOSE_POLLS: u32 = 100;

/// Maximum number of 1xx heads before the final response, the same as the limit of HEADERS on a SPDY stream.
const MAX_INTERIM_HEADS: usize = 16;

/// An earlier hop received the request in early data (RFC 8470 §5.1).
const EARLY_DATA: HeaderName = HeaderName::from_static("early-data");

/// A client's HTTP/3 connection. Clones share it. It is closed when the last clone is dropped and the last exchange has ended.
#[derive(Clone)]
pub struct Http3Client {
    shared: Arc<Shared>,
    openings: StreamOpenQueue,
    room: SendBudget,
    counters: Arc<HeaderByteCounters>,
    tap: Option<ConnectionTap>,
    runtime: SharedRuntime,
    ended: Latch,
    max_head_bytes: usize,
    /// How long a server may accept no bytes of an upload.
    write_timeout: Option<Duration>,
    /// Minimum rate at which it must accept an upload, bytes a second of waiting.
    min_rate: u32,
    early: Option<EarlyAttempt>,
    /// Dropping the last handle closes the connection.
    _handle: Arc<Handle>,
}

/// The state that the exchanges of a connection share.
struct Shared {
    connection: quinn::Connection,
    closer: Closer,
    exchanges: Mutex<Exchanges>,
    goaway: Goaway,
    compression: HeaderCompression,
}

#[derive(Default)]
struct Exchanges {
    open: usize,
    /// True if no more exchanges may begin; the connection is closed with the last one.
    is_closing: bool,
}

struct Handle(Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl std::fmt::Debug for Http3Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Http3Client")
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Exchanges> {
        self.exchanges.lock()
    }

    /// Begins an exchange; `None` if the connection accepts no more.
    fn begin(self: &Arc<Self>) -> Option<ExchangeGuard> {
        let mut exchanges = self.lock();
        if exchanges.is_closing || self.goaway.is_received() {
            return None;
        }
        exchanges.open += 1;
        Some(ExchangeGuard(self.clone()))
    }

    /// Closes the connection once no exchange is open.
    fn close(&self) {
        let mut exchanges = self.lock();
        exchanges.is_closing = true;
        if exchanges.open == 0 {
            self.connection.close(Code::NO_ERROR.wire(), b"");
        }
    }

    /// The error of an exchange on stream `id`. A fault of the whole connection also closes the connection.
    fn exchange_error(&self, fault: &Fault, id: u64) -> ExchangeError {
        self.closer.close_for(fault);
        self.explain_error(fault, self.goaway.rejects(id))
    }

    /// The error of an exchange; `unprocessed` if the server certainly did not process it.
    fn explain_error(&self, fault: &Fault, unprocessed: bool) -> ExchangeError {
        // Whether it may be retried depends on the exchange, not on why the connection was closed.
        ExchangeError {
            message: format!("h3: {}", self.closer.explain(fault)),
            ..fault.to_exchange_error(unprocessed)
        }
    }
}

/// Guard of an open exchange.
struct ExchangeGuard(Arc<Shared>);

impl Drop for ExchangeGuard {
    fn drop(&mut self) {
        let mut exchanges = self.0.lock();
        exchanges.open -= 1;
        if exchanges.open == 0 && (exchanges.is_closing || self.0.goaway.is_received()) {
            self.0.connection.close(Code::NO_ERROR.wire(), b"");
        }
    }
}

impl Http3Client {
    /// Starts HTTP/3 on `quic`. `tap` observes heads and frames.
    pub fn start(
        quic: QuicConnection,
        options: &ClientOptions,
        tap: Option<ConnectionTap>,
        runtime: &SharedRuntime,
    ) -> Self {
        let QuicConnection {
            connection,
            endpoint,
            early,
        } = quic;
        let counters = Arc::<HeaderByteCounters>::default();
        let compression = HeaderCompression::new(&connection, counters.clone());
        let shared = Arc::new(Shared {
            connection: connection.clone(),
            closer: Closer::from(connection.clone()),
            exchanges: Mutex::default(),
            goaway: Goaway::new(),
            compression: compression.clone(),
        });
        let ended = Latch::new();
        let (end, peer_state, clock) = (ended.clone(), shared.clone(), runtime.clone());
        let closer = shared.closer.clone();
        let max_head_bytes = options.max_head_bytes;
        if early.is_some() {
            compression.hold();
        }
        let (control, attempt) = (compression.clone(), early.clone());
        let speaking = send_control_stream(connection.clone(), max_head_bytes, attempt, control);
        runtime.spawn(Box::pin(async move {
            let on_event = move |event| match event {
                ControlEvent::Settings(settings) => peer_state.compression.apply(&settings),
                ControlEvent::Goaway(id) => {
                    peer_state.goaway.handle(id);
                    if peer_state.lock().open == 0 {
                        peer_state.connection.close(Code::NO_ERROR.wire(), b"");
                    }
                }
                ControlEvent::Priority(..) => {}
            };
            let hearing = Box::pin(control::read_uni_streams(
                connection.clone(),
                Role::Client,
                None,
                compression.clone(),
                on_event,
            ));
            let speaking = select(Box::pin(speaking), Box::pin(compression.drive()));
            let fault = match select(speaking, hearing).await {
                Either::Left((Either::Left((fault, _)) | Either::Right((fault, _)), _))
                | Either::Right((fault, _)) => fault,
            };
            closer.close_for(&fault);
            tracing::debug!(fault = %closer.explain(&fault), "h3 connection ended");
            wait_close_sent(&connection, &clock).await;
            drop(endpoint);
            end.set();
        }));
        Self {
            _handle: Arc::new(Handle(shared.clone())),
            shared,
            openings: StreamOpenQueue::default(),
            room: SendBudget::new(SEND_WINDOW_BYTES),
            counters,
            tap,
            runtime: runtime.clone(),
            ended,
            max_head_bytes,
            write_timeout: options.write_timeout,
            min_rate: options.min_rate,
            early,
        }
    }

    /// Sends `request`, whose URI must be absolute. The future returns the head of the response, and a body that fails if it is
    /// truncated. Dropping the future before that cancels the exchange.
    pub fn send(
        &self,
        mut request: Request<Body>,
        priority: Priority,
    ) -> BoxFuture<Result<Response<Body>, ExchangeError>> {
        if let Err(malformed) = set_authority(&mut request) {
            let error = ExchangeError::new(Retry::Never, malformed.to_string());
            return Box::pin(std::future::ready(Err(error)));
        }
        let Some(open) = self.shared.begin() else {
            let closed = ExchangeError::unsent("the connection was closed");
            return Box::pin(std::future::ready(Err(closed)));
        };
        let client = self.clone();
        if let Some(attempt) = self.early.as_ref().filter(|it| !it.is_settled()) {
            return client.send_early(request, priority, open, attempt.clone());
        }
        let opening = self.openings.enqueue(&self.shared.connection, priority);
        Box::pin(async move { client.exchange(request, priority, open, opening).await })
    }

    /// Sends `request` in early data if it may be repeated, and otherwise after the handshake. A request whose early data is rejected is
    /// sent again.
    fn send_early(
        self,
        request: Request<Body>,
        priority: Priority,
        open: ExchangeGuard,
        attempt: EarlyAttempt,
    ) -> BoxFuture<Result<Response<Body>, ExchangeError>> {
        let (head, mut body) = request.into_parts();
        let may_be_early = may_be_early(&head.method) && body.is_end_stream();
        let early = attempt.begin().filter(|_| may_be_early);
        let early = early.zip(self.shared.begin());
        let early = early.map(|guards| {
            let opening = self.openings.enqueue(&self.shared.connection, priority);
            (guards, opening)
        });
        Box::pin(async move {
            if let Some(((guard, open), opening)) = early {
                let is_marked = head.headers.contains_key(EARLY_DATA);
                let first = std::mem::replace(&mut body, Body::empty());
                let first = Request::from_parts(head.clone(), first);
                let answer = self.clone().exchange(first, priority, open, opening).await;
                drop(guard); // no part of a rejected stream is left
                match answer {
                    // Such a response is only for requests in early data (RFC 8470 §5.2).
                    Ok(response) if response.status() == StatusCode::TOO_EARLY && !is_marked => {}
                    Ok(response) => return Ok(response),
                    Err(error) => {
                        attempt.settled().await;
                        if attempt.is_accepted() {
                            return Err(error);
                        }
                        tracing::debug!(%error, "sending a request again after the handshake");
                    }
                }
            }
            attempt.settled().await;
            let opening = self.openings.enqueue(&self.shared.connection, priority);
            let request = Request::from_parts(head, body);
            self.exchange(request, priority, open, opening).await
        })
    }

    /// The certificates of the server; `None` before the handshake is complete.
    pub fn peer_certificates(&self) -> Option<PeerCertificates> {
        quic::certificates(&self.shared.connection)
    }

    async fn exchange(
        self,
        request: Request<Body>,
        priority: Priority,
        open: ExchangeGuard,
        opening: StreamOpen,
    ) -> Result<Response<Body>, ExchangeError> {
        let Self {
            shared, runtime, ..
        } = &self;
        let (mut head, body) = request.into_parts();
        let listens = head.extensions.remove::<InterimResponses>();
        drop_connection_headers(&mut head.headers);
        let precedence = HttpPriority::announce(&mut head.headers, priority);
        let is_empty = body.is_end_stream();
        if !is_empty && let Some(len) = body.size_hint().exact() {
            head.headers
                .entry(header::CONTENT_LENGTH)
                .or_insert_with(|| len.into());
        }
        let list = fields::encode_request(&head);
        let (len, most) = (section_len(&list), shared.compression.max_field_section());
        if len > most {
            let reason = format!("h3: request head has {len} bytes, limit of the server {most}");
            return Err(ExchangeError::new(Retry::Never, reason));
        }

        let opened = match select(Box::pin(shared.goaway.clone().rejected(None)), opening).await {
            Either::Left(_) => return Err(rejected()),
            Either::Right((opened, _)) => opened,
        };
        // Without a stream no request was sent, whatever the error.
        let (send, recv) = opened.map_err(|lost| shared.explain_error(&lost.into(), true))?;
        let id = send.id().into();
        let watch = stream_observer(&send, &self.counters, self.tap.clone());
        let compression = shared.compression.clone();
        let sections = compression.reader(id, self.max_head_bytes);
        let stall =
            |patience| ProgressTimeout::for_upload(runtime.clone(), patience, self.min_rate);
        let stall = self.write_timeout.map(stall);
        let mut sending =
            SendingStream::new(send, Some(watch.clone()), precedence, stall, compression);
        let place = StreamKind::Request {
            role: Role::Client,
            max_head_bytes: self.max_head_bytes,
        };
        let mut frames =
            FrameReader::new(recv, place, Some(watch.clone()), Code::REQUEST_CANCELLED)
                .with_sections(sections);
        let lost = |fault: &Fault| shared.exchange_error(fault, id);

        let going = Box::pin(shared.goaway.clone().rejected(Some(id)));
        let going = match select(going, Box::pin(sending.headers(&list, &self.room))).await {
            Either::Left(_) => return Err(rejected()),
            Either::Right((sent, going)) => sent.map(|()| going),
        };
        let going = going.map_err(|fault| lost(&fault))?;
        // An older upload is not more useful to a server than others of the same urgency.
        let beside_others = HttpPriority {
            incremental: true,
            ..precedence
        };
        let room = self.room.clone();
        let given_up = Latch::new();
        let upload = until(given_up.wait(), async move {
            let sent = match is_empty {
                true => sending.finish(),
                false => sending.body(body, &room, |_| beside_others).await,
            };
            if let Err(fault) = sent {
                // The response may still arrive: servers stop uploads that they do not read.
                tracing::debug!(%fault, "request was not sent completely");
                if let Fault::Slow(_) = fault {
                    return Err(fault);
                }
            }
            Ok(())
        });
        let answer = async {
            for _ in 0..=MAX_INTERIM_HEADS {
                let watch = Some(&watch);
                let fields = read_head(&mut frames, Role::Client, watch).await?;
                let response = fields::response(fields).map_err(Fault::from)?;
                // Interim responses (RFC 9110 §15.2) are passed to the tap and the receiver; they do not complete the request.
                if !response.status.is_informational() {
                    return Ok(response);
                }
                if let Some(listens) = &listens {
                    listens.send(response);
                }
            }
            let reason = format!("more than {MAX_INTERIM_HEADS} interim responses");
            Err(Fault::Stream(Code::EXCESSIVE_LOAD, reason))
        };
        let answer = async {
            match select(Box::pin(answer), upload.boxed()).await {
                // The response may arrive before the upload has ended (RFC 9114 §4.1).
                Either::Left((answer, upload)) => {
                    runtime.spawn(upload.map(drop).boxed());
                    answer
                }
                Either::Right((Some(Err(slow)), _)) => Err(slow),
                Either::Right((_, answer)) => answer.await,
            }
        };
        let answer = match select(going, Box::pin(answer)).await {
            Either::Left(_) => return Err(rejected()),
            Either::Right((answer, _)) => answer,
        };
        let answer = answer.and_then(|response| {
            let has_body = head.method != Method::HEAD
                && ![StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&response.status);
            let len = fields::content_length(&response.headers)?;
            // A response without content may still have a `content-length` (RFC 9110 §6.4.1).
            Ok((response, if has_body { len } else { Some(0) }))
        });
        let (response, len) = answer.map_err(|fault| {
            frames.stop_with(fault.code());
            lost(&fault)
        })?;
        let closer = shared.closer.clone();
        let body = Http3Body::new(frames, closer, len, open).or(given_up);
        Ok(Response::from_parts(response, Body::wrap(body)))
    }

    /// True if the connection accepts no new exchanges.
    pub fn is_closing(&self) -> bool {
        self.shared.lock().is_closing
            || self.shared.goaway.is_received()
            || self.shared.connection.close_reason().is_some()
    }

    /// Closes the connection after the last open exchange. No new exchange is accepted.
    pub fn close(&self) {
        self.shared.close();
    }

    /// Completes when the connection has ended.
    pub fn closed(&self) -> BoxFuture<()> {
        Box::pin(self.ended.wait())
    }

    /// Header bytes on the wire so far.
    pub fn header_bytes(&self) -> HeaderBytes {
        self.counters.read()
    }
}

/// Sends our control stream until the connection ends, and sends it again if it was sent in early data that the server rejected.
/// Returns why it failed.
async fn send_control_stream(
    connection: quinn::Connection,
    max_head_bytes: usize,
    early: Option<EarlyAttempt>,
    compression: HeaderCompression,
) -> Fault {
    // Clients send no GOAWAY: they just close.
    let (mut stream, _goaway) = OwnControlStream::start(&connection, max_head_bytes).into_parts();
    let Some(attempt) = early else {
        return stream.await;
    };
    let sent_early = attempt.begin();
    let fault = match select(&mut stream, attempt.resolved()).await {
        Either::Left((Fault::EarlyDataRejected, _)) | Either::Right(_) => None,
        Either::Left((fault, _)) => Some(fault),
    };
    if sent_early.is_some() && fault.is_none() {
        attempt.resolved().await;
        if !attempt.is_accepted() {
            drop(stream);
            drop(sent_early);
            attempt.settled().await;
            stream = OwnControlStream::start(&connection, max_head_bytes)
                .into_parts()
                .0;
        }
    }
    compression.release(attempt.is_accepted());
    match fault {
        Some(fault) => fault,
        None => stream.await,
    }
}

/// The error of a request that the server rejected by GOAWAY.
fn rejected() -> ExchangeError {
    ExchangeError::new(
        Retry::Always,
        "h3: the server accepts no more requests on this connection",
    )
}

/// Waits until CONNECTION_CLOSE is sent, if this side closed the connection. Otherwise a program that exits after its last
/// connection would leave the server waiting for its idle timeout.
async fn wait_close_sent(connection: &quinn::Connection, runtime: &SharedRuntime) {
    if !matches!(
        connection.close_reason(),
        Some(quinn::ConnectionError::LocallyClosed)
    ) {
        return;
    }
    for _ in 0..MAX_CLOSE_POLLS {
        if connection.stats().frame_tx.connection_close > 0 {
            return;
        }
        runtime
            .sleep_until(runtime.now() + CLOSE_POLL_INTERVAL)
            .await;
    }
}
