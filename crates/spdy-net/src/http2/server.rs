//! A server's connection, from its preface to its GOAWAY, and its responses (RFC 9113 §8).

use std::future::{poll_fn, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use h2::{Reason, RecvStream};
use http::{Method, Request, Response};
use http_body::Body as _;
use spdy::body::Body;
use spdy_frame::priority::Priority;
use spdy_net_core::connection_slot::SlotExchange;
use spdy_net_core::error::ConnectionError;
use spdy_net_core::handler::{Handler, RequestInfo};
use spdy_net_core::head::connection_headers::drop_connection_headers;
use spdy_net_core::head::request_head::{self, MalformedHead};
use spdy_net_core::interim::continue_on_read;
use spdy_net_core::interim::early_hints::EarlyHints;
use spdy_net_core::limit::ConnectionLimit;
use spdy_net_core::network::BoxIo;
use spdy_net_core::options::MIN_MAX_FRAME_BYTES;
use spdy_net_core::priority::HttpPriority;
use spdy_net_core::protocol::Protocol;
use spdy_net_core::refusal::{Flaw, Refusal};
use spdy_net_core::serve_context::ServeContext;
use spdy_net_core::timing::idle::{IdleGuard, IdleTracker};
use spdy_net_core::timing::progress_timeout::{ProgressTimeout, StreamProgressTimeout};
use spdy_net_core::upload_windows::{FIRST_WINDOW_BYTES, UploadWindows, connection_window};

use crate::http2::body::{Http2Body, send_body};
use crate::http2::error::connection_error;
use crate::http2::limits::{MAX_ABORTED_STREAMS, REMEMBERED_RESETS, SEND_BUFFER_BYTES};
use crate::http2::push::{PusherFactory, ResponseSender};
use crate::shims::h2::window_tracker::WindowTracker;
use crate::shims::h2::write_coalescer::WriteCoalescer;
use crate::shims::h2::write_scheduler::WriteScheduler;
use crate::shims::wire_observer::ObservedIo;

/// Limit of requests that the client resets before the server has processed them; one more ends the connection (rapid reset,
/// CVE-2023-44487).
const MAX_UNSEEN_RESETS: usize = 20;

/// Serves `io` until the connection ends. After `stop`, or when it has been idle for too long, GOAWAY ends it.
///
/// ```text
///   serving --stop, idle, or its slot is needed--> draining --PING answered, all streams sent--> ended
///                                                     `--nothing open for write_timeout--> ended hard
/// ```
pub(crate) async fn serve(io: BoxIo, terms: ServeContext<'_>) -> Result<(), ConnectionError> {
    let ServeContext {
        secure,
        handler,
        options,
        runtime,
        stop,
    } = terms;
    let turns = WriteScheduler::new();
    let io = ObservedIo::new(
        io,
        WindowTracker::for_server(turns.clone(), runtime.clone()),
    );
    let (io, gate) = WriteCoalescer::new(io);
    // The connection has room for the first window of every stream: how long a body takes affects only its own stream, and must not
    // block others.
    let windows = UploadWindows::new(runtime.clone());
    let handshake = h2::server::Builder::new()
        .initial_window_size(FIRST_WINDOW_BYTES)
        .initial_connection_window_size(connection_window(options.max_streams))
        .max_concurrent_streams(options.max_streams)
        .max_header_list_size(u32::try_from(options.max_head_bytes).unwrap_or(u32::MAX))
        .max_frame_size(MIN_MAX_FRAME_BYTES)
        .max_pending_accept_reset_streams(MAX_UNSEEN_RESETS)
        .max_local_error_reset_streams(Some(MAX_ABORTED_STREAMS))
        .max_concurrent_reset_streams(REMEMBERED_RESETS)
        .max_send_buffer_size(SEND_BUFFER_BYTES.max(options.data_frame_bytes))
        .handshake::<_, Bytes>(io);
    let patience = options.timeouts.handshake_timeout;
    let deadline = runtime.sleep_until(runtime.now() + patience);
    let mut connection = match select(handshake, deadline).await {
        Either::Left((shaken, _)) => shaken.map_err(connection_error)?,
        Either::Right(_) => {
            options.hits.count(ConnectionLimit::HandshakeTimeout);
            return Err(ConnectionError::TimedOut {
                what: "HTTP/2 preface",
                after: patience,
            });
        }
    };
    gate.hold_flushes();
    let pushers = options
        .http2_push
        .then(|| PusherFactory::new(runtime.clone(), options.clone()));
    let idle = IdleTracker::start(runtime.clone(), options.timeouts.idle_timeout);
    let mut expired = Box::pin(idle.expired());
    let (mut stopped, mut evicted) = (stop.wait(), options.slot.evicted());
    let mut overdue = None;
    let (mut begun, mut answers) = (Vec::new(), FuturesUnordered::new());
    poll_fn(|cx| {
        loop {
            if overdue.is_none()
                && (Pin::new(&mut evicted).poll(cx).is_ready()
                    || expired.as_mut().poll(cx).is_ready()
                    || Pin::new(&mut stopped).poll(cx).is_ready())
            {
                // An exchange ends when h2 has its last bytes, which may not be sent yet: only the graceful shutdown waits until
                // they are sent.
                connection.graceful_shutdown();
                let quiet = idle.wait_idle_since(runtime.now(), options.timeouts.write_timeout);
                overdue = Some(Box::pin(quiet.fuse()));
            }
            if let Some(overdue) = &mut overdue
                && overdue.as_mut().poll(cx).is_ready()
            {
                // A graceful shutdown also waits for the client to answer a PING, and a client that never does would keep its slot
                // forever. A request that crosses this GOAWAY is above its last stream, and may be retried.
                connection.abrupt_shutdown(Reason::NO_ERROR);
            }
            match connection.poll_accept(cx) {
                Poll::Ready(Some(Ok((request, respond)))) => {
                    let (mut head, body) = request.into_parts();
                    let settled = request_head::check_head(&mut head, secure);
                    let mut request = Request::from_parts(head, body);
                    let busy = (idle.exchange(), options.slot.exchange());
                    let stall = || ProgressTimeout::for_writes(runtime.clone(), options);
                    let stall = StreamProgressTimeout::new(stall);
                    let (handler, turns) = (handler.clone(), turns.clone());
                    let respond = ResponseSender::new(respond);
                    if let Some(pushers) = &pushers {
                        pushers.offer(&mut request, &respond, &turns);
                    }
                    let hints = EarlyHints::new(respond.clone());
                    request.extensions_mut().insert(hints);
                    let frame = options.data_frame_bytes.max(1);
                    let windows = windows.clone();
                    let arrived = RequestContext {
                        head_check: settled,
                        secure,
                        windows,
                        busy,
                    };
                    // One future, because one around another would have its size twice.
                    let answer = answer(request, arrived, respond, handler, turns, stall, frame);
                    begun.push(Box::pin(answer));
                    continue;
                }
                Poll::Ready(Some(Err(error))) => {
                    gate.poll_flush_batch(cx);
                    return Poll::Ready(Err(connection_error(error)));
                }
                Poll::Ready(None) => {
                    gate.poll_flush_batch(cx);
                    return Poll::Ready(Ok(()));
                }
                Poll::Pending => {
                    // Fails until the client has acknowledged the previous SETTINGS; this task is then woken.
                    if let Some(size) = windows.poll_change(cx)
                        && connection.set_initial_window_size(size).is_ok()
                    {
                        windows.settings_sent(size);
                        continue;
                    }
                    // Writing does not wait for handlers.
                    gate.poll_flush_batch(cx);
                }
            }
            // The output of responses wakes this task, so it is written in the next poll. Most responses are ready at once, and
            // need not be added to the pending ones.
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

/// The context of a request.
struct RequestContext {
    /// The result of checking its head.
    head_check: Result<(), MalformedHead>,
    /// True if it came over TLS.
    secure: bool,
    /// The windows of its connection.
    windows: UploadWindows,
    /// The connection is busy until these are dropped.
    busy: (IdleGuard, SlotExchange),
}

/// Handles one exchange, from the request's head to the response's last byte.
async fn answer(
    request: Request<RecvStream>,
    arrived: RequestContext,
    respond: ResponseSender,
    handler: Arc<dyn Handler>,
    turns: WriteScheduler,
    stall: StreamProgressTimeout,
    data_frame_bytes: usize,
) {
    let _busy = arrived.busy;
    let (mut head, stream) = request.into_parts();
    let precedence = HttpPriority::of(&head.headers);
    let priority = Priority::new(precedence.urgency);
    head.extensions.insert(RequestInfo {
        protocol: Protocol::Http2,
        secure: arrived.secure,
        priority,
    });
    let is_head = head.method == Method::HEAD;
    let body = match stream.is_end_stream() {
        true => Body::empty(),
        false => {
            let received = Http2Body::new(stream, &head.headers);
            let body = Body::wrap(received.with_window_growth(&arrived.windows));
            continue_on_read::send_continue_on_read(
                body,
                &head.headers,
                &EarlyHints::new(respond.clone()),
            )
        }
    };
    let answered = match arrived.head_check {
        Ok(()) => handler.answer(Request::from_parts(head, body)),
        Err(reason) => {
            tracing::debug!(error = %reason, "http/2 request rejected");
            let answer = reason.answer();
            handler.refused(&Refusal {
                protocol: Protocol::Http2,
                method: Some(&head.method),
                uri: Some(&head.uri),
                headers: Some(&head.headers),
                body_bytes: if is_head {
                    0
                } else {
                    answer.body().size_hint().lower()
                },
                flaw: Flaw::Malformed,
            });
            Box::pin(ready(answer))
        }
    };
    let response = {
        let reset = poll_fn(|cx| respond.lock().poll_reset(cx));
        match select(answered, std::pin::pin!(reset)).await {
            Either::Left((response, _)) => response,
            Either::Right(_) => return, // the client left and does not need the response
        }
    };
    let (mut head, body) = response.into_parts();
    drop_connection_headers(&mut head.headers);
    head.version = http::Version::HTTP_2;
    let empty = is_head || body.is_end_stream();
    match respond.answer(Response::from_parts(head, ()), empty) {
        Ok(stream) if !empty => {
            let turn = turns.open(stream.stream_id().as_u32(), precedence);
            let (frame, stall) = (data_frame_bytes, Some(stall));
            let _logged = send_body(stream, body, frame, turn, stall, Reason::INTERNAL_ERROR).await;
        }
        Ok(_) => {}
        Err(error) => tracing::debug!(%error, "the client left before the response"),
    }
}
