//! One connection as a session drives it: requests in, what became of them out; polled, never spawned.
//!
//! ```text
//!   send(slot) ----> queue -- flush --> socket
//!   events <-------- decode <- receive - socket
//! ```
//!
//! A wire knows its requests by the slot that the session gave them. What it sends is written on `flush`, so
//! that all requests that became due at once leave in one write.

mod http1;
mod http2;
mod ring;
mod spdy;

use std::rc::Rc;
use std::task::Context;

use spdy_net::network::BoxIo;
use spdy_net::protocol::Protocol;

use crate::fault::{Fault, FaultKind};
use crate::plan::Plan;
use crate::traffic::Traffic;
use crate::wire::http1::Http1Wire;
use crate::wire::http2::Http2Wire;
use crate::wire::spdy::SpdyWire;

/// What became of a request, or of the connection.
#[derive(Debug)]
pub(crate) enum Event {
    /// A whole answer.
    Answered {
        slot: usize,
        status: u16,
        body_bytes: u64,
    },
    /// There will be none.
    Lost {
        slot: usize,
        fault: Fault,
        /// The server has not begun with it: it may be sent on another connection.
        again: bool,
    },
    /// The connection is over; every request on it was told before.
    Ended,
}

/// A connection of any protocol.
pub(crate) enum Wire {
    Spdy(Box<SpdyWire>),
    Http1(Box<Http1Wire>),
    Http2(Box<Http2Wire>),
}

impl Wire {
    /// Starts to speak `protocol` on `io`.
    pub(crate) async fn start(
        io: BoxIo,
        protocol: Protocol,
        plan: &Plan,
        traffic: Rc<Traffic>,
    ) -> Result<Self, Fault> {
        Ok(match protocol {
            Protocol::Spdy(version) => {
                Self::Spdy(Box::new(SpdyWire::new(io, version, plan, traffic)?))
            }
            Protocol::Http1 => Self::Http1(Box::new(Http1Wire::new(io, plan, traffic))),
            Protocol::Http2 => Self::Http2(Box::new(Http2Wire::start(io, plan, traffic).await?)),
            Protocol::Http3 => {
                let why = "h3 is not spoken over TCP, and no load is made over QUIC";
                return Err(Fault::new(FaultKind::Connect, why));
            }
        })
    }

    /// Asks for request `number` of the target; `false` if the connection has no room now.
    pub(crate) fn send(&mut self, cx: &mut Context<'_>, slot: usize, number: usize) -> bool {
        match self {
            Self::Spdy(wire) => wire.send(slot, number),
            Self::Http1(wire) => wire.send(slot, number),
            Self::Http2(wire) => wire.send(cx, slot, number),
        }
    }

    /// Reads once, if there is something; whether there was.
    pub(crate) fn receive(&mut self, cx: &mut Context<'_>, events: &mut Vec<Event>) -> bool {
        match self {
            Self::Spdy(wire) => wire.receive(cx, events),
            Self::Http1(wire) => wire.receive(cx, events),
            Self::Http2(wire) => wire.receive(cx, events),
        }
    }

    /// Writes what is queued, as far as the socket takes it.
    pub(crate) fn flush(&mut self, cx: &mut Context<'_>, events: &mut Vec<Event>) {
        match self {
            Self::Spdy(wire) => wire.flush(cx, events),
            Self::Http1(wire) => wire.flush(cx, events),
            Self::Http2(wire) => wire.flush(cx, events),
        }
    }

    /// Waits no longer for the answer to `slot`; nothing more is told of it.
    pub(crate) fn cancel(&mut self, slot: usize, events: &mut Vec<Event>) {
        match self {
            Self::Spdy(wire) => wire.cancel(slot),
            Self::Http1(wire) => wire.cancel(slot, events),
            Self::Http2(wire) => wire.cancel(slot),
        }
    }

    /// No new request will be taken.
    pub(crate) fn is_closing(&self) -> bool {
        match self {
            Self::Spdy(wire) => wire.is_closing(),
            Self::Http1(wire) => wire.is_closing(),
            Self::Http2(wire) => wire.is_closing(),
        }
    }
}
