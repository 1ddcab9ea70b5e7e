//! A connection of any protocol, with common methods.

use std::rc::Rc;
use std::task::Context;

use spdy_net::network::BoxIo;
use spdy_net::protocol::Protocol;

use crate::fault::{Fault, FaultKind};
use crate::plan::Plan;
use crate::traffic::Traffic;
use crate::wire::event::Event;
use crate::wire::http1::Http1Wire;
use crate::wire::http2::Http2Wire;
use crate::wire::spdy::SpdyWire;

/// A connection of any protocol.
pub(crate) enum Wire {
    Spdy(Box<SpdyWire>),
    Http1(Box<Http1Wire>),
    Http2(Box<Http2Wire>),
}

impl Wire {
    /// Starts `protocol` on `io`.
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
                let message = "h3 needs QUIC, which the load generator does not support";
                return Err(Fault::new(FaultKind::Connect, message));
            }
        })
    }

    /// Sends request `number` of the target; `false` if the connection has no room now.
    pub(crate) fn send(&mut self, cx: &mut Context<'_>, slot: usize, number: usize) -> bool {
        match self {
            Self::Spdy(wire) => wire.send(slot, number),
            Self::Http1(wire) => wire.send(slot, number),
            Self::Http2(wire) => wire.send(cx, slot, number),
        }
    }

    /// Reads once, if possible; true if it did.
    pub(crate) fn receive(&mut self, cx: &mut Context<'_>, events: &mut Vec<Event>) -> bool {
        match self {
            Self::Spdy(wire) => wire.receive(cx, events),
            Self::Http1(wire) => wire.receive(cx, events),
            Self::Http2(wire) => wire.receive(cx, events),
        }
    }

    /// Writes queued data, as far as the socket accepts it.
    pub(crate) fn flush(&mut self, cx: &mut Context<'_>, events: &mut Vec<Event>) {
        match self {
            Self::Spdy(wire) => wire.flush(cx, events),
            Self::Http1(wire) => wire.flush(cx, events),
            Self::Http2(wire) => wire.flush(cx, events),
        }
    }

    /// Cancels the request in `slot`; no further event is reported for it.
    pub(crate) fn cancel(&mut self, slot: usize, events: &mut Vec<Event>) {
        match self {
            Self::Spdy(wire) => wire.cancel(slot),
            Self::Http1(wire) => wire.cancel(slot, events),
            Self::Http2(wire) => wire.cancel(slot),
        }
    }

    /// True if no new request is accepted.
    pub(crate) fn is_closing(&self) -> bool {
        match self {
            Self::Spdy(wire) => wire.is_closing(),
            Self::Http1(wire) => wire.is_closing(),
            Self::Http2(wire) => wire.is_closing(),
        }
    }
}
