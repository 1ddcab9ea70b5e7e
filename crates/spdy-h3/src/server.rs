//! The server's side: one exchange per stream, and responses are sent by precedence.
//!
//! ```text
//!   serving --stop, idle, or its slot is needed--> draining: GOAWAY, and every later stream is rejected
//!                                                     `--nothing open, and two round trips more--> closed
//! ```
//!
//! An exchange is open until the client has acknowledged the last byte of its response: closing a connection discards
//! the bytes that are in flight.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use http::{Method, Request, Response};
use http_body::Body as _;
use spdy::body::Body;
use spdy::runtime::SharedRuntime;
use spdy_frame::priority::Priority;
use spdy_net_core::early_data::{EarlyData, may_be_early};
use spdy_net_core::error::ConnectionError;
use spdy_net_core::handler::{Handler, RequestInfo};
use spdy_net_core::head::connection_headers::drop_connection_headers;
use spdy_net_core::interim::continue_on_read;
use spdy_net_core::interim::early_hints::EarlyHints;
use spdy_net_core::latch::Latch;
use spdy_net_core::limit::ConnectionLimit;
use spdy_net_core::options::ServerOptions;
use spdy_net_core::priority::HttpPriority;
use spdy_net_core::protocol::Protocol;
use spdy_net_core::serve_context::ServeContext;
use spdy_net_core::timing::idle::IdleTracker;
use spdy_net_core::timing::progress_timeout::ProgressTimeout;

use crate::body::receive::{Http3Body, head};
use crate::body::send::SendingStream;
use crate::closer::Closer;
use crate::code::Code;
use crate::compression::HeaderCompression;
use crate::control::{self, ControlEvent, OwnControlStream};
use crate::fault::{Fault, is_graceful};
use crate::fields;
use crate::flood_budget::FloodBudget;
use crate::frame::{FrameReader, StreamKind};
use crate::priority_updates::{NEXT_STREAM, PriorityUpdates};
use crate::quic::SEND_WINDOW_BYTES;
use crate::quinn_shims::send_budget::SendBudget;
use crate::role::Role;

/// How long, in round trips, requests that crossed GOAWAY are still rejected before the connection is closed.
const DRAIN_RTTS: u32 = 2;
/// The maximum of that time: a client can delay its round trips, and it uses a slot during that time.
const MAX_DRAIN: Duration = Duration::from_secs(3);

/// Serves a connection until it ends. `handshake` is set when the handshake is complete; before that, `first` is the first stream, which
/// arrived in early data.
pub(super) async fn serve(
    connection: quinn::Connection,
    own_control: OwnControlStream,
    mut first: Option<(quinn::SendStream, quinn::RecvStream)>,
    handshake: Latch,
    terms: ServeContext<'_>,
) -> Result<(), ConnectionError> {
    let ServeContext {
        handler,
        options,
        runtime,
        stop,
        ..
    } = terms;
    let (priorities, room) = (
        PriorityUpdates::default(),
        SendBudget::new(SEND_WINDOW_BYTES),
    );
    let (speaking, goaway) = own_control.into_parts();
    let mut goaway = Some(goaway);
    let compression = HeaderCompression::new(&connection, Arc::default());
    let (updates, settled) = (priorities.clone(), compression.clone());
    let on_event = move |event| match event {
        ControlEvent::Priority(id, field) => updates.update(id, HttpPriority::parse(&field)),
        ControlEvent::Settings(settings) => settled.apply(&settings),
        ControlEvent::Goaway(_) => {} // for pushes, which are not used
    };
    let floods = FloodBudget::new(runtime.clone(), options.hits.clone());
    let hearing = control::read_uni_streams(
        connection.clone(),
        Role::Server,
        Some(floods.clone()),
        compression.clone(),
        on_event,
    );
    let speaking = async {
        match select(speaking, pin!(compression.clone().drive())).await {
            Either::Left((fault, _)) | Either::Right((fault, _)) => fault,
        }
    };
    let mut control = pin!(select(Box::pin(speaking), Box::pin(hearing)));
    let mut accepted = Box::pin(futures_util::stream::unfold(
        connection.clone(),
        |it| async { Some((it.accept_bi().await, it)) },
    ));
    let idle = IdleTracker::start(runtime.clone(), options.timeouts.idle_timeout);
    let mut expired = Box::pin(idle.expired());
    let (mut stopped, mut evicted) = (stop.wait(), options.slot.evicted());
    let mut parting = None;
    let closer = Closer::from(connection.clone());
    let mut answers = FuturesUnordered::new();
    let mut next_stream = 0;
    let fault = poll_fn(|cx| {
        loop {
            if let Poll::Ready(Either::Left((fault, _)) | Either::Right((fault, _))) =
                control.as_mut().poll(cx)
            {
                return Poll::Ready(Some(fault));
            }
            if goaway.is_some()
                && (Pin::new(&mut evicted).poll(cx).is_ready()
                    || expired.as_mut().poll(cx).is_ready()
                    || Pin::new(&mut stopped).poll(cx).is_ready())
                && let Some(goaway) = goaway.take()
            {
                let _ = goaway.send(next_stream); // a lost connection needs none
                continue;
            }
            let stream = match first.take() {
                Some(stream) => Poll::Ready(Some(Ok(stream))),
                None => accepted.poll_next_unpin(cx),
            };
            match stream {
                Poll::Ready(Some(Ok((mut send, mut recv)))) if goaway.is_none() => {
                    let _ = recv.stop(Code::REQUEST_REJECTED.wire());
                    let _ = send.reset(Code::REQUEST_REJECTED.wire());
                    compression.cancel(send.id().into());
                    continue;
                }
                Poll::Ready(Some(Ok((send, recv)))) => {
                    let id = send.id().into();
                    floods.opened_stream();
                    priorities.begin(id);
                    next_stream = id + NEXT_STREAM;
                    let answering = ExchangeContext {
                        handler: handler.clone(),
                        options: options.clone(),
                        runtime: runtime.clone(),
                        closer: closer.clone(),
                        priorities: priorities.clone(),
                        room: room.clone(),
                        floods: floods.clone(),
                        idle: idle.clone(),
                        compression: compression.clone(),
                        handshake: handshake.clone(),
                    };
                    let priorities = priorities.clone();
                    answers.push(async move {
                        let answered = answering.answer(send, recv).await;
                        priorities.forget(id);
                        answered
                    });
                    continue;
                }
                Poll::Ready(Some(Err(lost))) => return Poll::Ready(Some(lost.into())),
                Poll::Ready(None) | Poll::Pending => {}
            }
            match answers.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(ExchangeOutcome::Completed))) => {}
                Poll::Ready(Some(Ok(ExchangeOutcome::Aborted))) => {
                    if let Err(flood) = floods.aborted_stream() {
                        return Poll::Ready(Some(flood));
                    }
                }
                Poll::Ready(Some(Err(fault))) => return Poll::Ready(Some(fault)),
                Poll::Ready(None) | Poll::Pending => {
                    if goaway.is_none() && answers.is_empty() {
                        let patience = (connection.rtt() * DRAIN_RTTS).min(MAX_DRAIN);
                        let parting = parting
                            .get_or_insert_with(|| runtime.sleep_until(runtime.now() + patience));
                        return parting.as_mut().poll(cx).map(|()| None);
                    }
                    return Poll::Pending;
                }
            }
        }
    })
    .await;
    // For an error that the reader of a body detected, the connection was already closed.
    match closer.cause().cloned().or(fault) {
        None => {
            connection.close(Code::NO_ERROR.wire(), b"");
            Ok(())
        }
        Some(Fault::Lost(lost)) if is_graceful(&lost) => Ok(()),
        Some(fault) => {
            let code = match fault {
                Fault::Slow(_) => Code::EXCESSIVE_LOAD, // by its effect: the peer may not be at fault
                _ => fault.code(),
            };
            connection.close(code.wire(), fault.to_string().as_bytes());
            Err(fault.to_connection_error())
        }
    }
}

/// The result of an exchange.
enum ExchangeOutcome {
    /// It was answered; if incompletely, the client was not at fault, or was slow.
    Completed,
    /// The client cancelled it before its response was complete, or made us reset it.
    Aborted,
}

/// The parts of a connection that are needed to answer a request.
struct ExchangeContext {
    handler: Arc<dyn Handler>,
    options: ServerOptions,
    runtime: SharedRuntime,
    closer: Closer,
    priorities: PriorityUpdates,
    room: SendBudget,
    floods: FloodBudget,
    idle: IdleTracker,
    compression: HeaderCompression,
    /// Set when the handshake is complete.
    handshake: Latch,
}

impl ExchangeContext {
    /// Handles one exchange; an error ends the whole connection.
    async fn answer(
        self,
        send: quinn::SendStream,
        recv: quinn::RecvStream,
    ) -> Result<ExchangeOutcome, Fault> {
        let max_head_bytes = self.options.max_head_bytes;
        let place = StreamKind::Request {
            role: Role::Server,
            max_head_bytes,
        };
        let sections = self.compression.reader(send.id().into(), max_head_bytes);
        let mut frames = FrameReader::new(recv, place, None, Code::NO_ERROR)
            .with_flood_budget(Some(self.floods.clone()))
            .with_sections(sections);
        let stall = ProgressTimeout::for_writes(self.runtime.clone(), &self.options);
        let mut sending = SendingStream::new(
            send,
            None,
            HttpPriority::default(),
            Some(stall),
            self.compression.clone(),
        );
        match self.exchange(&mut frames, &mut sending).await {
            Ok(ParsedRequest {
                head,
                len,
                priority: precedence,
            }) => {
                // Only after its head is complete: a stream that was only opened does not make the connection busy.
                let _busy = (self.idle.exchange(), self.options.slot.exchange());
                self.respond(frames, sending, head, len, precedence).await
            }
            Err(fault @ (Fault::Connection(..) | Fault::Lost(_))) => Err(fault),
            Err(fault) => {
                tracing::debug!(%fault, "request got no response");
                frames.stop_with(fault.code());
                sending.reset_with(fault.code());
                Ok(ExchangeOutcome::Aborted)
            }
        }
    }

    /// Reads the head.
    async fn exchange(
        &self,
        frames: &mut FrameReader,
        sending: &mut SendingStream,
    ) -> Result<ParsedRequest, Fault> {
        let (runtime, patience) = (&self.runtime, self.options.timeouts.head_timeout);
        let deadline = runtime.sleep_until(runtime.now() + patience);
        let reading = Box::pin(head(frames, Role::Server, None));
        let fields = match select(reading, deadline).await {
            Either::Left((fields, _)) => fields?,
            Either::Right(_) => {
                self.options.hits.count(ConnectionLimit::HeadTimeout);
                let reason = format!("no head within {patience:?}");
                return Err(Fault::Stream(Code::REQUEST_INCOMPLETE, reason));
            }
        };
        let head = fields::request(fields)?;
        let len = fields::content_length(&head.headers)?;
        let precedence = HttpPriority::of(&head.headers);
        sending.set_priority(precedence);
        Ok(ParsedRequest {
            head,
            len,
            priority: precedence,
        })
    }

    /// Sends a 1xx head, if the client accepts its size.
    async fn inform(&self, head: Response<()>, sending: &mut SendingStream) -> Result<(), Fault> {
        let (head, ()) = head.into_parts();
        let fields = fields::encode_response(&head);
        match sending.takes(&fields) {
            true => sending.headers(&fields, &self.room).await,
            false => Ok(()),
        }
    }

    /// Calls the handler, and sends its response.
    async fn respond(
        self,
        frames: FrameReader,
        mut sending: SendingStream,
        mut head: http::request::Parts,
        len: Option<u64>,
        precedence: HttpPriority,
    ) -> Result<ExchangeOutcome, Fault> {
        let id = sending.id();
        let precedence = self.priorities.of(id).unwrap_or(precedence);
        sending.set_priority(precedence);
        head.extensions.insert(RequestInfo {
            protocol: Protocol::Http3,
            secure: true,
            priority: Priority::new(precedence.urgency),
        });
        let is_head = head.method == Method::HEAD;
        let mut received = Http3Body::new(frames, self.closer.clone(), len, ()).check_empty();
        if !self.handshake.is_set() {
            if may_be_early(&head.method) && received.is_end_stream() {
                let early = EarlyData::new(self.handshake.clone());
                head.extensions.insert(early);
            } else {
                // It could be a replay, so it waits for the handshake (RFC 8470 §3).
                let given_up = Box::pin(sending.stopped());
                if let Either::Right(_) = select(self.handshake.wait(), given_up).await {
                    return Ok(ExchangeOutcome::Aborted);
                }
                received = received.check_empty();
            }
        }
        let body = Body::wrap(received);
        let (early, mut interim) = EarlyHints::queue();
        let body = continue_on_read::send_continue_on_read(body, &head.headers, &early);
        head.extensions.insert(early);
        let mut answered = self.handler.answer(Request::from_parts(head, body));
        let mut response = None;
        let response = loop {
            // Interim responses that were queued before the response are sent before it.
            let next = poll_fn(|cx| {
                if response.is_none()
                    && let Poll::Ready(answer) = answered.as_mut().poll(cx)
                {
                    response = Some(answer);
                }
                match interim.poll_recv(cx) {
                    Poll::Ready(Some(head)) => Poll::Ready(HandlerOutput::Interim(head)),
                    Poll::Ready(None) | Poll::Pending => match response.take() {
                        Some(answer) => Poll::Ready(HandlerOutput::Answer(answer)),
                        None => Poll::Pending,
                    },
                }
            });
            let given_up = Box::pin(sending.stopped());
            let next = match select(next, given_up).await {
                Either::Left((next, _)) => next,
                Either::Right(_) => return Ok(ExchangeOutcome::Aborted), // the client stopped the stream
            };
            match next {
                HandlerOutput::Answer(response) => break response,
                HandlerOutput::Interim(head) => match self.inform(head, &mut sending).await {
                    Ok(()) => {}
                    Err(fault @ (Fault::Connection(..) | Fault::Lost(_))) => return Err(fault),
                    Err(_) => return Ok(ExchangeOutcome::Aborted),
                },
            }
        };
        let (mut head, body) = response.into_parts();
        drop_connection_headers(&mut head.headers);
        let is_empty = is_head || body.is_end_stream();
        let fields = fields::encode_response(&head);
        let precedence =
            |cx: &mut Context<'_>| self.priorities.poll_of(id, cx).unwrap_or(precedence);
        let sent = async {
            sending.headers(&fields, &self.room).await?;
            if is_empty {
                return sending.finish();
            }
            sending.body(body, &self.room, precedence).await
        };
        match sent.await {
            Ok(()) => {
                // A client that accepts no bytes does not need the connection.
                sending.delivered(&self.room, precedence).await?;
                Ok(ExchangeOutcome::Completed)
            }
            Err(Fault::Lost(lost)) => Err(Fault::Lost(lost)),
            Err(fault) => {
                tracing::debug!(%fault, "response was not sent completely");
                sending.reset_with(fault.code());
                Ok(match fault {
                    Fault::Ended(_) => ExchangeOutcome::Aborted,
                    _ => ExchangeOutcome::Completed,
                })
            }
        }
    }
}

/// An event of a handler.
enum HandlerOutput {
    Interim(Response<()>),
    Answer(Response<Body>),
}

/// A request whose head was read.
struct ParsedRequest {
    head: http::request::Parts,
    /// The body's length from `content-length`, if there is one.
    len: Option<u64>,
    priority: HttpPriority,
}
