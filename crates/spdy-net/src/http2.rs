//! HTTP/2 on both sides, by the h2 crate (RFC 9113).
//!
//! Priorities travel as RFC 9218's `priority: u=N` header field, whose 0 to 7 are SPDY's own levels;
//! the server obeys them by `turns.rs`. Windows are set in so many words, never h2's defaults.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use h2::client::SendRequest;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, HeaderName, Request, Response, header};
use http_body::{Body as _, Frame, SizeHint};
use spdy::body::{Body, BoxError};
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_frame::priority::Priority;
use spdy_session::observe::Direction;

use crate::byte_count::{Counters, HeaderBytes, Http2Watch, Watched};
use crate::connection::{ClientOptions, drop_connection_headers};
use crate::early_hints::EarlyHints;
use crate::error::{ConnectionError, ExchangeError, Retry};
use crate::handler::{Arrival, Handler};
use crate::http2_push::{Pushers, Respond};
use crate::idle::Idle;
use crate::interim::InterimHeads;
use crate::latch::Latch;
use crate::limit::ConnectionLimit;
use crate::network::BoxIo;
use crate::protocol::Protocol;
use crate::serve::Terms;
use crate::stall::{Stall, StreamStall, is_stall};
use crate::tap::{ConnectionTap, Seen};
use crate::turns::{Precedence, Turn, Turns};
use crate::window_watch::WindowWatch;

/// RFC 9218 §5.
pub(crate) const PRIORITY: HeaderName = HeaderName::from_static("priority");
/// Streams a client opens before the server's SETTINGS say how many it may.
const ASSUMED_STREAMS: usize = 100;
/// Receive window of a server's stream, bytes: requests are small, uploads wait their turn. The connection has room
/// for every stream's: how long a body may take is asked of its stream alone, so no other must hold it up.
const SERVER_STREAM_WINDOW: u32 = 64 * 1024;
/// The greatest window there is (RFC 9113 §6.9.1).
const MAX_WINDOW: u32 = (1 << 31) - 1;
/// Bytes of one stream that h2 holds unsent, where no frame is larger: what lies there can no longer be overtaken.
const SEND_BUFFER_BYTES: usize = 32 * 1024;
/// The most of an upload that is handed to h2 at once, bytes: one frame of the default size.
const CHUNK_BYTES: usize = 16 * 1024;

/// The largest frame that a peer may always count on, bytes (RFC 9113 §4.2); servers take no other.
pub(crate) const MIN_MAX_FRAME_BYTES: u32 = 16 * 1024;
/// The largest that there is (RFC 9113 §4.2).
const MAX_MAX_FRAME_BYTES: u32 = (1 << 24) - 1;
/// Requests reset by the client before the server looked at them; one more ends the connection
/// (rapid reset, CVE-2023-44487).
const MAX_UNSEEN_RESETS: usize = 20;
/// Streams that a peer made us reset by breaking the rules; one more ends the connection.
const MAX_SPOILED_STREAMS: usize = 256;
/// Streams we reset that are remembered for a moment, since their last frames are under way.
const REMEMBERED_RESETS: usize = 50;

/// A body that is being sent.
type Sending = BoxFuture<Result<(), BoxError>>;

/// A client's HTTP/2 connection.
#[derive(Clone)]
pub(crate) struct Http2Client {
    sender: Arc<std::sync::Mutex<Option<SendRequest<Bytes>>>>,
    counters: Arc<Counters>,
    ended: Latch,
    runtime: SharedRuntime,
    tap: Option<ConnectionTap>,
    uploads: Turns,
    /// How long a server may take nothing of an upload.
    write_timeout: Option<Duration>,
    /// The least that it must take of it, bytes a second of waiting.
    min_rate: u32,
}

impl std::fmt::Debug for Http2Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Http2Client")
    }
}

impl Http2Client {
    pub(crate) async fn start(
        io: BoxIo,
        options: &ClientOptions,
        tap: Option<ConnectionTap>,
        runtime: &SharedRuntime,
    ) -> Result<Self, ConnectionError> {
        let counters = Arc::new(Counters::default());
        let uploads = Turns::new();
        let counting = Http2Watch::new(counters.clone(), tap.clone());
        let windows = WindowWatch::of_client(uploads.clone(), runtime.clone());
        let io = Watched::new(io, (counting, windows));
        let max_frame = options
            .max_frame_bytes
            .clamp(MIN_MAX_FRAME_BYTES, MAX_MAX_FRAME_BYTES);
        let (sender, connection) = h2::client::Builder::new()
            .enable_push(false)
            .initial_window_size(options.stream_window_bytes)
            .initial_connection_window_size(options.session_window_bytes)
            .max_header_list_size(u32::try_from(options.max_head_bytes).unwrap_or(u32::MAX))
            .max_frame_size(max_frame)
            .max_local_error_reset_streams(Some(MAX_SPOILED_STREAMS))
            .max_concurrent_reset_streams(REMEMBERED_RESETS)
            .initial_max_send_streams(ASSUMED_STREAMS)
            .max_send_buffer_size(SEND_BUFFER_BYTES)
            .handshake::<_, Bytes>(io)
            .await
            .map_err(ConnectionError::Http2)?;
        let ended = Latch::new();
        let end = ended.clone();
        runtime.spawn(Box::pin(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "h2 connection ended");
            }
            end.set();
        }));
        let sender = Arc::new(std::sync::Mutex::new(Some(sender)));
        Ok(Self {
            sender,
            counters,
            ended,
            runtime: runtime.clone(),
            tap,
            uploads,
            write_timeout: options.write_timeout,
            min_rate: options.min_rate,
        })
    }

    fn sender(&self) -> Option<SendRequest<Bytes>> {
        self.sender
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn limit(&self) -> usize {
        // A server that allows none keeps its promise by refusing, not by silence.
        self.sender()
            .map_or(0, |sender| sender.current_max_send_streams().max(1))
    }

    pub(crate) fn send(
        &self,
        request: Request<Body>,
        priority: Priority,
    ) -> BoxFuture<Result<Response<Body>, ExchangeError>> {
        let listens: Option<InterimHeads> = request.extensions().get().cloned();
        let started = self.start_exchange(request, priority);
        let (runtime, tap) = (self.runtime.clone(), self.tap.clone());
        Box::pin(async move {
            let (mut response, upload) = started?;
            let stream_id = response.stream_id().as_u32();
            let interim = tap.clone();
            let response = poll_fn(|cx| {
                // Early hints and their like (RFC 9110 §15.2) are for who looks on or listens; they answer nothing.
                if interim.is_some() || listens.is_some() {
                    while let Poll::Ready(Some(Ok(head))) = response.poll_informational(cx) {
                        let (head, ()) = head.into_parts();
                        if let Some(tap) = &interim {
                            show_response(tap, stream_id, &head);
                        }
                        if let Some(listens) = &listens {
                            listens.tell(head);
                        }
                    }
                }
                response.poll_unpin(cx)
            });
            let answer = match upload {
                None => response.await,
                // The answer may come before the upload has ended (RFC 9113 §8.1).
                Some(upload) => match select(response, upload).await {
                    Either::Left((answer, upload)) => {
                        runtime.spawn(upload.map(drop).boxed());
                        answer
                    }
                    Either::Right((Err(error), _)) if is_stall(&*error) => {
                        return Err(ExchangeError::stalled(format!("h2: {error}")));
                    }
                    // It may have its answer all the same: servers reset what they will not read.
                    Either::Right((_, response)) => response.await,
                },
            };
            let (head, stream) = answer.map_err(|error| lost(&error))?.into_parts();
            if let Some(tap) = tap {
                show_response(&tap, stream_id, &head);
            }
            let body = match stream.is_end_stream() {
                true => Body::empty(),
                false => Body::wrap(Received::new(stream, &head.headers)),
            };
            Ok(Response::from_parts(head, body))
        })
    }

    fn start_exchange(
        &self,
        request: Request<Body>,
        priority: Priority,
    ) -> Result<(h2::client::ResponseFuture, Option<Sending>), ExchangeError> {
        let closed = || ExchangeError::unsent("the connection was closed");
        let mut sender = self.sender().ok_or_else(closed)?;
        let (mut head, body) = request.into_parts();
        drop_connection_headers(&mut head.headers);
        head.headers.remove(header::HOST); // :authority says it
        head.version = http::Version::HTTP_2;
        if priority.level() != Precedence::default().urgency {
            let field = http::HeaderValue::try_from(format!("u={priority}"));
            head.headers
                .insert(PRIORITY, field.expect("a digit is a header value"));
        }
        if !body.is_end_stream()
            && let Some(len) = body.size_hint().exact()
        {
            head.headers
                .entry(header::CONTENT_LENGTH)
                .or_insert_with(|| len.into());
        }
        let shown = self.tap.as_ref().map(|tap| (tap, request_fields(&head)));
        let head = Request::from_parts(head, ());
        let (response, stream) = sender
            .send_request(head, body.is_end_stream())
            .map_err(|error| lost(&error))?;
        if let Some((tap, fields)) = shown {
            let stream_id = response.stream_id().as_u32();
            tap.show(
                Direction::Sent,
                &Seen::Http2Headers {
                    stream_id,
                    fields: &fields,
                },
            );
        }
        let upload = (!body.is_end_stream()).then(|| {
            let stall =
                |patience| Stall::of_uploading(self.runtime.clone(), patience, self.min_rate);
            let stall = self
                .write_timeout
                .map(|after| StreamStall::new(|| stall(after)));
            let turn = self
                .uploads
                .open(stream.stream_id().as_u32(), Precedence::SHARED);
            send_body(stream, body, CHUNK_BYTES, turn, stall).boxed()
        });
        Ok((response, upload))
    }

    pub(crate) fn is_closing(&self) -> bool {
        let Some(mut sender) = self.sender() else {
            return true;
        };
        let mut cx = Context::from_waker(std::task::Waker::noop());
        // GOAWAY and broken connections are errors here; it never waits, for nothing is pending.
        self.ended.is_set() || matches!(sender.poll_ready(&mut cx), Poll::Ready(Err(_)))
    }

    pub(crate) fn close(&self) {
        // h2 says GOAWAY when nobody can send any more and the last stream has ended.
        drop(
            self.sender
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .take(),
        );
    }

    pub(crate) fn closed(&self) -> BoxFuture<()> {
        Box::pin(self.ended.wait())
    }

    pub(crate) fn header_bytes(&self) -> HeaderBytes {
        self.counters.read()
    }
}

/// What a failed exchange means for its request (RFC 9113 §8.7).
fn lost(error: &h2::Error) -> ExchangeError {
    let retry = match error.reason() {
        Some(Reason::REFUSED_STREAM) if error.is_remote() => Retry::Always,
        // A stream above the last one of a GOAWAY in order was not looked at.
        Some(Reason::NO_ERROR) if error.is_go_away() && error.is_remote() => Retry::Always,
        _ if error.is_io() || (error.is_remote() && error.is_go_away()) => Retry::IfIdempotent,
        Some(Reason::CANCEL | Reason::INTERNAL_ERROR) if error.is_remote() => Retry::IfIdempotent,
        _ => Retry::Never,
    };
    let refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
    ExchangeError::new(retry, format!("h2: {error}")).refused(refused)
}

fn request_fields(head: &http::request::Parts) -> Vec<(String, String)> {
    let of_uri = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let mut fields = vec![
        (":method".to_owned(), head.method.to_string()),
        (":scheme".to_owned(), of_uri(head.uri.scheme_str())),
        (
            ":authority".to_owned(),
            of_uri(head.uri.authority().map(http::uri::Authority::as_str)),
        ),
        (
            ":path".to_owned(),
            of_uri(
                head.uri
                    .path_and_query()
                    .map(http::uri::PathAndQuery::as_str),
            ),
        ),
    ];
    fields.extend(text_fields(&head.headers));
    fields
}

fn show_response(tap: &ConnectionTap, stream_id: u32, head: &http::response::Parts) {
    let mut fields = vec![(":status".to_owned(), head.status.as_str().to_owned())];
    fields.extend(text_fields(&head.headers));
    tap.show(
        Direction::Received,
        &Seen::Http2Headers {
            stream_id,
            fields: &fields,
        },
    );
}

fn text_fields(headers: &HeaderMap) -> impl Iterator<Item = (String, String)> + '_ {
    headers.iter().map(|(name, value)| {
        (
            name.to_string(),
            String::from_utf8_lossy(value.as_bytes()).into_owned(),
        )
    })
}

/// A body that arrives: credit goes back as it is read.
struct Received {
    stream: RecvStream,
    left: Option<u64>,
}

impl Received {
    fn new(stream: RecvStream, headers: &HeaderMap) -> Self {
        let length = headers.get(header::CONTENT_LENGTH);
        let left = length.and_then(|length| length.to_str().ok()?.parse().ok());
        Self { stream, left }
    }
}

impl http_body::Body for Received {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(data) = ready!(self.stream.poll_data(cx)) {
            let data = data.map_err(Box::new)?;
            self.left = self.left.map(|left| left.saturating_sub(data.len() as u64));
            // A stream that was reset meanwhile needs no credit.
            let _ = self.stream.flow_control().release_capacity(data.len());
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        let trailers = ready!(self.stream.poll_trailers(cx)).map_err(Box::new)?;
        Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.left
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// Writes `body` to `stream` as the windows, the socket and `turn` allow, at most `chunk_bytes` (at least 1) a frame, then ends
/// the stream.
///
/// # Errors
///
/// Why it was not sent to its end; the stream was reset.
pub(crate) async fn send_body(
    mut stream: SendStream<Bytes>,
    body: Body,
    chunk_bytes: usize,
    turn: Turn,
    mut stall: Option<StreamStall>,
) -> Result<(), BoxError> {
    let mut body = body;
    let mut chunk = Bytes::new();
    let sent: Result<(), BoxError> = poll_fn(|cx| {
        loop {
            if let Poll::Ready(reason) = stream.poll_reset(cx) {
                return Poll::Ready(match reason {
                    Ok(reason) => Err(format!("the peer reset the stream: {reason}").into()),
                    Err(error) => Err(error.into()),
                });
            }
            if chunk.is_empty() {
                if body.is_end_stream() {
                    stream.send_data(Bytes::new(), true)?;
                    return Poll::Ready(Ok(()));
                }
                let Poll::Ready(frame) = Pin::new(&mut body).poll_frame(cx) else {
                    turn.rest();
                    return Poll::Pending;
                };
                match frame.transpose()?.map(Frame::into_data) {
                    Some(Ok(data)) => chunk = data,
                    Some(Err(frame)) => {
                        let trailers = frame.into_trailers().unwrap_or_default();
                        stream.send_trailers(trailers)?;
                        return Poll::Ready(Ok(()));
                    }
                    None => {
                        stream.send_data(Bytes::new(), true)?;
                        return Poll::Ready(Ok(()));
                    }
                }
                continue;
            }
            if turn.poll(cx).is_pending() {
                stream.reserve_capacity(0); // someone else can use it now
                stall.iter_mut().for_each(|stall| stall.moved(0)); // the client is not at fault
                return Poll::Pending;
            }
            stream.reserve_capacity(chunk.len().min(chunk_bytes));
            let room = match stream.poll_capacity(cx) {
                Poll::Ready(Some(room)) => room?.min(chunk.len()).min(chunk_bytes),
                Poll::Ready(None) => {
                    return Poll::Ready(Err("the stream can no longer send".into()));
                }
                Poll::Pending => {
                    let Some(stall) = &mut stall else {
                        return Poll::Pending;
                    };
                    let awaited = turn.awaited(cx);
                    return stall.poll(cx, awaited).map(|error| Err(error.into()));
                }
            };
            stall.iter_mut().for_each(|stall| stall.moved(room));
            if room == 0 {
                continue; // capacity came and went; the next poll waits for more
            }
            let piece = chunk.split_to(room);
            let last = !chunk.has_remaining() && body.is_end_stream();
            stream.send_data(piece, last)?;
            turn.sent(room);
            if last {
                return Poll::Ready(Ok(()));
            }
        }
    })
    .await;
    if let Err(error) = &sent {
        tracing::debug!(%error, "a body was not sent to its end");
        stream.send_reset(Reason::INTERNAL_ERROR);
    }
    sent
}

/// Serves `io` until the connection ends; after `stop`, or when nobody asks any more, by GOAWAY.
///
/// ```text
///   serving --stop, idle, or its place is wanted--> draining --PING answered, all streams sent--> ended
///                                                      `--nothing open for write_timeout--> ended hard
/// ```
pub(crate) async fn serve(io: BoxIo, terms: Terms<'_>) -> Result<(), ConnectionError> {
    let Terms {
        secure,
        handler,
        options,
        runtime,
        stop,
    } = terms;
    let turns = Turns::new();
    let io = Watched::new(io, WindowWatch::of_server(turns.clone(), runtime.clone()));
    let connection_window = options.max_streams.saturating_mul(SERVER_STREAM_WINDOW);
    let connection_window = connection_window.clamp(SERVER_STREAM_WINDOW, MAX_WINDOW);
    let handshake = h2::server::Builder::new()
        .initial_window_size(SERVER_STREAM_WINDOW)
        .initial_connection_window_size(connection_window)
        .max_concurrent_streams(options.max_streams)
        .max_header_list_size(u32::try_from(options.max_head_bytes).unwrap_or(u32::MAX))
        .max_frame_size(MIN_MAX_FRAME_BYTES)
        .max_pending_accept_reset_streams(MAX_UNSEEN_RESETS)
        .max_local_error_reset_streams(Some(MAX_SPOILED_STREAMS))
        .max_concurrent_reset_streams(REMEMBERED_RESETS)
        .max_send_buffer_size(SEND_BUFFER_BYTES.max(options.data_frame_bytes))
        .handshake::<_, Bytes>(io);
    let patience = options.handshake_timeout;
    let deadline = runtime.sleep_until(runtime.now() + patience);
    let mut connection = match select(handshake, deadline).await {
        Either::Left((shaken, _)) => shaken.map_err(ConnectionError::Http2)?,
        Either::Right(_) => {
            options.hits.count(ConnectionLimit::HandshakeTimeout);
            return Err(ConnectionError::TimedOut {
                what: "HTTP/2 preface",
                after: patience,
            });
        }
    };
    let pushers = options
        .http2_push
        .then(|| Pushers::new(runtime.clone(), options.clone()));
    let idle = Idle::start(runtime.clone(), options.idle_timeout);
    let mut expired = Box::pin(idle.expired());
    let (mut stopped, mut wanted) = (stop.wait(), options.seat.wanted());
    let mut overdue = None;
    let (mut begun, mut answers) = (Vec::new(), FuturesUnordered::new());
    poll_fn(|cx| {
        loop {
            if overdue.is_none()
                && (Pin::new(&mut wanted).poll(cx).is_ready()
                    || expired.as_mut().poll(cx).is_ready()
                    || Pin::new(&mut stopped).poll(cx).is_ready())
            {
                // An exchange is over when h2 has its last bytes, and they may lie there yet: only the end in
                // order waits until they are sent.
                connection.graceful_shutdown();
                let quiet = idle.quiet_since(runtime.now(), options.write_timeout);
                overdue = Some(Box::pin(quiet.fuse()));
            }
            if let Some(overdue) = &mut overdue
                && overdue.as_mut().poll(cx).is_ready()
            {
                // That end also waits for the client to answer a PING, and one that never does would keep its
                // place for ever. A request that crosses this is above the last stream that GOAWAY names: it
                // may be sent again.
                connection.abrupt_shutdown(Reason::NO_ERROR);
            }
            match connection.poll_accept(cx) {
                Poll::Ready(Some(Ok((mut request, respond)))) => {
                    let busy = (idle.exchange(), options.seat.exchange());
                    let stall = || Stall::of_writing(runtime.clone(), options);
                    let stall = StreamStall::new(stall);
                    let (handler, turns) = (handler.clone(), turns.clone());
                    let respond = Respond::new(respond);
                    if let Some(pushers) = &pushers {
                        pushers.offer(&mut request, &respond, &turns);
                    }
                    let hints = EarlyHints::over_http2(respond.clone());
                    request.extensions_mut().insert(hints);
                    let frame = options.data_frame_bytes.max(1);
                    let answer = answer(request, respond, secure, handler, turns, stall, frame);
                    begun.push(Box::pin(async move {
                        answer.await;
                        drop(busy);
                    }));
                    continue;
                }
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Err(ConnectionError::Http2(error)));
                }
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Pending => {}
            }
            // What the answers hand to h2 makes it wake this task, so it is written in the next poll. Most are at hand, and need no
            // place among those that are waited for.
            for mut answer in begun.drain(..) {
                if answer.as_mut().poll(cx).is_pending() {
                    answers.push(answer);
                }
            }
            while let Poll::Ready(Some(())) = answers.poll_next_unpin(cx) {}
            return Poll::Pending;
        }
    })
    .await
}

/// One exchange, from the request's head to the response's last byte.
async fn answer(
    request: Request<RecvStream>,
    respond: Respond,
    secure: bool,
    handler: Arc<dyn Handler>,
    turns: Turns,
    stall: StreamStall,
    data_frame_bytes: usize,
) {
    let (mut head, stream) = request.into_parts();
    let field = head
        .headers
        .get(PRIORITY)
        .and_then(|field| field.to_str().ok());
    let precedence = field.map_or_else(Precedence::default, Precedence::parse);
    let priority = Priority::new(precedence.urgency);
    head.extensions.insert(Arrival {
        protocol: Protocol::Http2,
        secure,
        priority,
    });
    let body = match stream.is_end_stream() {
        true => Body::empty(),
        false => Body::wrap(Received::new(stream, &head.headers)),
    };
    let answered = handler.answer(Request::from_parts(head, body));
    let response = {
        let reset = poll_fn(|cx| respond.lock().poll_reset(cx));
        match select(answered, std::pin::pin!(reset)).await {
            Either::Left((response, _)) => response,
            Either::Right(_) => return, // the client left; nobody wants the answer
        }
    };
    let (mut head, body) = response.into_parts();
    drop_connection_headers(&mut head.headers);
    head.version = http::Version::HTTP_2;
    let empty = body.is_end_stream();
    let sent = respond
        .lock()
        .send_response(Response::from_parts(head, ()), empty);
    match sent {
        Ok(stream) if !empty => {
            let turn = turns.open(stream.stream_id().as_u32(), precedence);
            let _told = send_body(stream, body, data_frame_bytes, turn, Some(stall)).await;
        }
        Ok(_) => {}
        Err(error) => tracing::debug!(%error, "the client left before its answer"),
    }
}
