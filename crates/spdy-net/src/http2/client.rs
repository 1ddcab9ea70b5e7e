//! A client's connection, and its exchanges (RFC 9113 §8).

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{Either, select};
use h2::Reason;
use h2::client::SendRequest;
use http::{HeaderMap, Request, Response, header};
use http_body::Body as _;
use spdy::body::{Body, BoxError};
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_frame::priority::Priority;
use spdy_net_core::error::{ConnectionError, ExchangeError, Retry};
use spdy_net_core::head::connection_headers::drop_connection_headers;
use spdy_net_core::header_bytes::{HeaderByteCounters, HeaderBytes};
use spdy_net_core::interim::expect_continue::Expectation;
use spdy_net_core::interim::interim_responses::InterimResponses;
use spdy_net_core::latch::{Latch, until};
use spdy_net_core::network::BoxIo;
use spdy_net_core::options::{ClientOptions, MIN_MAX_FRAME_BYTES};
use spdy_net_core::priority::HttpPriority;
use spdy_net_core::tap::{ConnectionTap, TapEvent};
use spdy_net_core::timing::progress_timeout::{
    ProgressTimeout, StreamProgressTimeout, is_progress_timeout,
};
use spdy_session::observe::Direction;

use crate::http2::body::{Http2Body, send_body};
use crate::http2::error::connection_error;
use crate::http2::limits::{
    HEADER_BLOCK_FACTOR, MAX_ABORTED_STREAMS, SEND_BUFFER_BYTES, is_too_large,
};
use crate::shims::h2::data_frame_splitter::DataFrameSplitter;
use crate::shims::h2::window_tracker::WindowTracker;
use crate::shims::h2::write_coalescer::WriteCoalescer;
use crate::shims::h2::write_scheduler::WriteScheduler;
use crate::shims::wire_observer::{Http2HeaderCounter, ObservedIo};

/// Limit of streams of a client before the server's SETTINGS arrive.
const ASSUMED_STREAMS: usize = 100;
/// Maximum piece of an upload that is passed to h2 at once, bytes: one frame of the default size.
const CHUNK_BYTES: usize = 16 * 1024;
/// The maximum of MAX_FRAME_SIZE (RFC 9113 §4.2).
const MAX_MAX_FRAME_BYTES: u32 = (1 << 24) - 1;

/// Limit of remembered streams that we cancelled, whose last frames may still arrive. Above it, each frame of another cancelled
/// stream counts as the server's protocol error, of which [`MAX_ABORTED_STREAMS`] are allowed. Leaving a page can cancel hundreds
/// of streams.
const REMEMBERED_CANCELS: usize = 1000;

/// A body that is being sent.
type SendFuture = BoxFuture<Result<(), BoxError>>;

/// A client's HTTP/2 connection.
#[derive(Clone)]
pub(crate) struct Http2Client {
    sender: Arc<parking_lot::Mutex<Option<SendRequest<Bytes>>>>,
    counters: Arc<HeaderByteCounters>,
    ended: Latch,
    runtime: SharedRuntime,
    tap: Option<ConnectionTap>,
    scheduler: WriteScheduler,
    max_streams: Option<usize>,
    max_head_bytes: usize,
    /// How long a server may accept no bytes of an upload.
    write_timeout: Option<Duration>,
    /// Minimum rate at which it must accept an upload, bytes a second of waiting.
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
        let counters = Arc::new(HeaderByteCounters::default());
        let uploads = WriteScheduler::new();
        let counting = Http2HeaderCounter::new(counters.clone(), tap.clone());
        let windows = WindowTracker::for_client(uploads.clone(), runtime.clone());
        let max_frame = options
            .max_frame_bytes
            .clamp(MIN_MAX_FRAME_BYTES, MAX_MAX_FRAME_BYTES);
        let block_bytes = options.max_head_bytes.saturating_mul(HEADER_BLOCK_FACTOR);
        let (io, gate) = WriteCoalescer::new(ObservedIo::new(io, (counting, windows)));
        gate.hold_flushes(); // the preface is sent with the first request
        let io = DataFrameSplitter::new(io, max_frame);
        let (sender, mut connection) = h2::client::Builder::new()
            .enable_push(false)
            .initial_window_size(options.stream_window_bytes)
            .initial_connection_window_size(options.session_window_size())
            .max_header_list_size(u32::try_from(block_bytes).unwrap_or(u32::MAX))
            .max_frame_size(max_frame)
            .max_local_error_reset_streams(Some(MAX_ABORTED_STREAMS))
            .max_concurrent_reset_streams(REMEMBERED_CANCELS)
            .initial_max_send_streams(ASSUMED_STREAMS)
            .max_send_buffer_size(SEND_BUFFER_BYTES)
            .handshake::<_, Bytes>(io)
            .await
            .map_err(connection_error)?;
        let ended = Latch::new();
        let end = ended.clone();
        runtime.spawn(Box::pin(async move {
            let ended = poll_fn(move |cx| {
                let polled = Pin::new(&mut connection).poll(cx);
                gate.poll_flush_batch(cx);
                polled
            });
            if let Err(error) = ended.await {
                tracing::debug!(%error, "h2 connection ended");
            }
            end.set();
        }));
        let sender = Arc::new(parking_lot::Mutex::new(Some(sender)));
        Ok(Self {
            sender,
            counters,
            ended,
            runtime: runtime.clone(),
            tap,
            scheduler: uploads,
            max_streams: options.max_streams,
            max_head_bytes: options.max_head_bytes,
            write_timeout: options.write_timeout,
            min_rate: options.min_rate,
        })
    }

    fn sender(&self) -> Option<SendRequest<Bytes>> {
        self.sender.lock().clone()
    }

    pub(crate) fn limit(&self) -> usize {
        // A limit of 0 would block requests without an error: send one, so that the server rejects it.
        let allowed = self
            .sender()
            .map_or(0, |sender| sender.current_max_send_streams().max(1));
        allowed.min(self.max_streams.unwrap_or(usize::MAX))
    }

    pub(crate) fn send(
        &self,
        request: Request<Body>,
        priority: Priority,
    ) -> BoxFuture<Result<Response<Body>, ExchangeError>> {
        let listens: Option<InterimResponses> = request.extensions().get().cloned();
        let (request, expectation) = Expectation::of(request, &self.runtime);
        let signal = expectation.as_ref().map(Expectation::signal);
        let started = self.start_exchange(request, priority);
        let (runtime, tap) = (self.runtime.clone(), self.tap.clone());
        let (given_up, max_head_bytes) = (Latch::new(), self.max_head_bytes);
        Box::pin(async move {
            let (mut response, upload) = started?;
            let stream_id = response.stream_id().as_u32();
            let interim = tap.clone();
            let response = poll_fn(|cx| {
                // Interim responses (RFC 9110 §15.2) are passed to the tap and the receiver; they do not complete the request.
                if interim.is_some() || listens.is_some() || signal.is_some() {
                    while let Poll::Ready(Some(Ok(head))) = response.poll_informational(cx) {
                        let (head, ()) = head.into_parts();
                        if let Some(signal) = &signal {
                            signal.handle_interim(head.status);
                        }
                        if let Some(tap) = &interim {
                            tap_response(tap, stream_id, &head);
                        }
                        if let Some(listens) = &listens {
                            listens.send(head);
                        }
                    }
                }
                let response = ready!(response.poll_unpin(cx));
                // The upload is polled next: it must not send a body that is still held.
                if let Some(expectation) = &expectation {
                    let _was_requested = expectation.handle_final_head();
                }
                Poll::Ready(response)
            });
            let answer = match upload {
                None => response.await,
                // The response may arrive before the upload has ended (RFC 9113 §8.1).
                Some(upload) => match select(response, upload).await {
                    Either::Left((answer, upload)) => {
                        // The stream is cancelled only when its upload is dropped, too.
                        let upload = until(given_up.wait(), upload);
                        runtime.spawn(upload.map(drop).boxed());
                        answer
                    }
                    Either::Right((Err(error), _)) if is_progress_timeout(&*error) => {
                        return Err(ExchangeError::write_timed_out(format!("h2: {error}")));
                    }
                    // The response may still arrive: servers reset uploads that they do not read.
                    Either::Right((_, response)) => response.await,
                },
            };
            let (head, stream) = answer.map_err(|error| exchange_error(&error))?.into_parts();
            if is_too_large(&head.headers, max_head_bytes) {
                given_up.set(); // the rest of the upload, as if the body was dropped
                let message =
                    format!("h2: the response head is too large, limit {max_head_bytes} bytes");
                return Err(ExchangeError::too_large(message));
            }
            if let Some(tap) = tap {
                tap_response(&tap, stream_id, &head);
            }
            let body = match stream.is_end_stream() {
                true => Body::empty(),
                false => Body::wrap(
                    Http2Body::new(stream, &head.headers)
                        .or(given_up)
                        .with_max_trailer_bytes(max_head_bytes),
                ),
            };
            let response = Response::from_parts(head, body);
            Ok(match expectation {
                Some(expectation) => expectation.until_end_of(response),
                None => response,
            })
        })
    }

    fn start_exchange(
        &self,
        request: Request<Body>,
        priority: Priority,
    ) -> Result<(h2::client::ResponseFuture, Option<SendFuture>), ExchangeError> {
        let closed = || ExchangeError::unsent("the connection was closed");
        let mut sender = self.sender().ok_or_else(closed)?;
        let (mut head, body) = request.into_parts();
        drop_connection_headers(&mut head.headers);
        head.version = http::Version::HTTP_2;
        HttpPriority::announce(&mut head.headers, priority);
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
            .map_err(|error| exchange_error(&error))?;
        if let Some((tap, fields)) = shown {
            let stream_id = response.stream_id().as_u32();
            tap.emit(
                Direction::Sent,
                &TapEvent::Http2Headers {
                    stream_id,
                    fields: &fields,
                },
            );
        }
        let upload = (!body.is_end_stream()).then(|| {
            let stall = |patience| {
                ProgressTimeout::for_upload(self.runtime.clone(), patience, self.min_rate)
            };
            let stall = self
                .write_timeout
                .map(|after| StreamProgressTimeout::new(|| stall(after)));
            let turn = self
                .scheduler
                .open(stream.stream_id().as_u32(), HttpPriority::SHARED);
            // A request without the rest of its body is cancelled.
            send_body(stream, body, CHUNK_BYTES, turn, stall, Reason::CANCEL).boxed()
        });
        Ok((response, upload))
    }

    pub(crate) fn is_closing(&self) -> bool {
        let Some(mut sender) = self.sender() else {
            return true;
        };
        let mut cx = Context::from_waker(std::task::Waker::noop());
        // GOAWAY and failed connections are errors here; it is never pending, because no request is.
        self.ended.is_set() || matches!(sender.poll_ready(&mut cx), Poll::Ready(Err(_)))
    }

    pub(crate) fn close(&self) {
        // h2 sends GOAWAY when no sender is left and the last stream has ended.
        drop(self.sender.lock().take());
    }

    pub(crate) fn closed(&self) -> BoxFuture<()> {
        Box::pin(self.ended.wait())
    }

    pub(crate) fn header_bytes(&self) -> HeaderBytes {
        self.counters.read()
    }
}

/// Converts the error of a failed exchange (RFC 9113 §8.7).
fn exchange_error(error: &h2::Error) -> ExchangeError {
    let retry = match error.reason() {
        Some(Reason::REFUSED_STREAM) if error.is_remote() => Retry::Always,
        // A stream above the last one of a GOAWAY without error was not processed.
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

fn tap_response(tap: &ConnectionTap, stream_id: u32, head: &http::response::Parts) {
    let mut fields = vec![(":status".to_owned(), head.status.as_str().to_owned())];
    fields.extend(text_fields(&head.headers));
    tap.emit(
        Direction::Received,
        &TapEvent::Http2Headers {
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
