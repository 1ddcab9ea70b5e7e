//! HTTP/2 by the crate h2 (RFC 9113). Its connection is polled here rather than spawned, and exchanges are futures in one set: one
//! task for the whole connection.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt};
use h2::RecvStream;
use h2::client::{Connection, ResponseFuture, SendRequest};
use http::Request;
use spdy_net::network::BoxIo;

use crate::fault::{Fault, FaultKind};
use crate::plan::Plan;
use crate::traffic::{CountingIo, Traffic, TrafficCounter};
use crate::wire::event::Event;

/// One connection.
pub(crate) struct Http2Wire {
    sender: SendRequest<Bytes>,
    connection: Connection<CountingIo, Bytes>,
    exchanges: FuturesUnordered<Exchange>,
    requests: Vec<Request<()>>,
    body: Bytes,
    /// Data was queued since the connection was polled.
    dirty: bool,
    closing: bool,
    ended: bool,
}

impl Http2Wire {
    pub(crate) async fn start(io: BoxIo, plan: &Plan, traffic: Rc<Traffic>) -> Result<Self, Fault> {
        let handshake = h2::client::Builder::new()
            .initial_window_size(plan.stream_window_bytes)
            .initial_connection_window_size(plan.session_window_bytes)
            .enable_push(false)
            // Until the first SETTINGS; the same assumption as for SPDY.
            .initial_max_send_streams(100)
            .handshake(CountingIo::new(io, TrafficCounter::http2(traffic)));
        let (sender, connection) = handshake
            .await
            .map_err(|error| Fault::new(FaultKind::Connect, error))?;
        Ok(Self {
            sender,
            connection,
            exchanges: FuturesUnordered::new(),
            requests: plan.target.messages(),
            body: plan.target.body().clone(),
            dirty: true,
            closing: false,
            ended: false,
        })
    }

    pub(crate) fn send(&mut self, cx: &mut Context<'_>, slot: usize, number: usize) -> bool {
        if self.is_closing() {
            return false;
        }
        match self.sender.poll_ready(cx) {
            Poll::Pending => return false,
            Poll::Ready(Err(_)) => {
                self.closing = true;
                return false;
            }
            Poll::Ready(Ok(())) => {}
        }
        let fin = self.body.is_empty();
        let request = self.requests[number].clone();
        let Ok((response, mut stream)) = self.sender.send_request(request, fin) else {
            self.closing = true;
            return false;
        };
        if !fin {
            // h2 buffers data beyond the window, and a failure is reported with the response.
            let _ = stream.send_data(self.body.clone(), true);
        }
        self.exchanges.push(Exchange {
            slot,
            status: 0,
            body_bytes: 0,
            state: State::Head(response),
        });
        self.dirty = true;
        true
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing || self.ended
    }

    pub(crate) fn cancel(&mut self, slot: usize) {
        let exchanges = std::mem::take(&mut self.exchanges);
        self.exchanges = exchanges
            .into_iter()
            .filter(|exchange| exchange.slot != slot)
            .collect();
        self.dirty = true;
    }

    pub(crate) fn receive(&mut self, cx: &mut Context<'_>, events: &mut Vec<Event>) -> bool {
        if self.ended {
            return false;
        }
        let before = events.len();
        let over = self.poll_connection(cx);
        while let Poll::Ready(Some(event)) = self.exchanges.poll_next_unpin(cx) {
            // Returned credit, and ended streams, must be sent.
            self.dirty = true;
            events.push(event);
        }
        if over {
            self.ended = true;
            let exchanges = std::mem::take(&mut self.exchanges);
            events.extend(exchanges.into_iter().map(|exchange| Event::Lost {
                slot: exchange.slot,
                fault: Fault::lost("the connection ended"),
                again: false,
            }));
            events.push(Event::Ended);
        }
        events.len() > before
    }

    pub(crate) fn flush(&mut self, cx: &mut Context<'_>, events: &mut Vec<Event>) {
        if self.dirty && !self.ended && self.poll_connection(cx) {
            self.receive(cx, events);
        }
    }

    /// Reads and writes; true if the connection has ended.
    fn poll_connection(&mut self, cx: &mut Context<'_>) -> bool {
        self.dirty = false;
        Pin::new(&mut self.connection).poll(cx).is_ready()
    }
}

/// One request and its response.
struct Exchange {
    slot: usize,
    status: u16,
    body_bytes: u64,
    state: State,
}

enum State {
    Head(ResponseFuture),
    Body(RecvStream),
}

impl Exchange {
    fn answered(&self) -> Event {
        Event::Answered {
            slot: self.slot,
            status: self.status,
            body_bytes: self.body_bytes,
        }
    }

    fn lost(&self, error: &h2::Error) -> Event {
        let refused = error.reason() == Some(h2::Reason::REFUSED_STREAM);
        let is_graceful =
            error.is_go_away() && error.is_remote() && error.reason() == Some(h2::Reason::NO_ERROR);
        let kind = match error {
            error if error.is_io() || error.is_go_away() => FaultKind::ConnectionLost,
            error if error.is_reset() && error.is_remote() => FaultKind::Reset,
            _ => FaultKind::Malformed,
        };
        Event::Lost {
            slot: self.slot,
            fault: Fault::new(kind, error),
            again: refused || is_graceful,
        }
    }
}

impl Future for Exchange {
    type Output = Event;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Event> {
        let this = &mut *self;
        loop {
            match &mut this.state {
                State::Head(response) => match ready!(Pin::new(response).poll(cx)) {
                    Ok(response) => {
                        this.status = response.status().as_u16();
                        let body = response.into_body();
                        if body.is_end_stream() {
                            return Poll::Ready(this.answered());
                        }
                        this.state = State::Body(body);
                    }
                    Err(error) => return Poll::Ready(this.lost(&error)),
                },
                State::Body(body) => match ready!(body.poll_data(cx)) {
                    Some(Ok(data)) => {
                        this.body_bytes += data.len() as u64;
                        // Fails only for a stream that has ended.
                        let _ = body.flow_control().release_capacity(data.len());
                        if body.is_end_stream() {
                            return Poll::Ready(this.answered());
                        }
                    }
                    Some(Err(error)) => return Poll::Ready(this.lost(&error)),
                    None => return Poll::Ready(this.answered()),
                },
            }
        }
    }
}
