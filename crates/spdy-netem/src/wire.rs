//! The link behind a queue: at a constant rate, or at the opportunities of a trace.

use spdy_clock::Instant;

use crate::rate::{Bitrate, Serialiser};
use crate::trace::{Trace, TraceSender};

/// Capacity of a link.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LinkRate {
    /// Bits per second, at least 1.
    Bps(u64),
    /// The opportunities of a trace. It begins with the first packet on the path.
    Trace(Trace),
}

impl LinkRate {
    /// Bits per second; of a trace, on average.
    #[must_use]
    pub fn mean_bps(&self) -> u64 {
        match self {
            Self::Bps(bps) => *bps,
            Self::Trace(trace) => trace.mean_bps(),
        }
    }

    /// Half of this capacity, at least 1 bit per second.
    #[must_use]
    pub fn halved(&self) -> Self {
        match self {
            Self::Bps(bps) => Self::Bps((bps / 2).max(1)),
            Self::Trace(trace) => Self::Trace(trace.slowed()),
        }
    }
}

/// Sends packets one after the other.
#[derive(Clone, Debug)]
pub enum Wire {
    /// At a constant rate.
    Constant(Serialiser),
    /// At the opportunities of a trace.
    Trace(TraceSender),
}

impl Wire {
    /// An idle link; `None` for a rate of 0.
    #[must_use]
    pub fn new(rate: &LinkRate) -> Option<Self> {
        Some(match rate {
            LinkRate::Bps(bps) => Self::Constant(Serialiser::new(Bitrate::from_bps(*bps)?)),
            LinkRate::Trace(trace) => Self::Trace(TraceSender::new(trace.clone())),
        })
    }

    /// Notes that the first packet came to the path at `now`, if none came before.
    pub fn begin(&mut self, now: Instant) {
        if let Self::Trace(sender) = self {
            sender.begin(now);
        }
    }

    /// True if a packet that arrives at `now` would wait for another.
    #[must_use]
    pub const fn is_busy(&self, now: Instant) -> bool {
        match self {
            Self::Constant(sender) => sender.is_busy(now),
            Self::Trace(sender) => sender.is_busy(now),
        }
    }

    /// Notes that no packet waited before `now`.
    pub fn idle_until(&mut self, now: Instant) {
        match self {
            Self::Constant(sender) => sender.idle_until(now),
            Self::Trace(sender) => sender.idle_until(now),
        }
    }

    /// First instant at which a packet that waits can be sent.
    #[must_use]
    pub fn next_start(&self) -> Instant {
        match self {
            Self::Constant(sender) => sender.next_start(),
            Self::Trace(sender) => sender.next_start(),
        }
    }

    /// Departure time of a packet of `len_bytes` that is sent directly after its predecessor.
    pub fn transmit(&mut self, len_bytes: usize) -> Instant {
        match self {
            Self::Constant(sender) => sender.transmit(len_bytes),
            Self::Trace(sender) => sender.transmit(len_bytes),
        }
    }

    /// Departure time of a packet of `len_bytes` that is offered at `now`. Calls are in order of `now`.
    pub fn depart(&mut self, now: Instant, len_bytes: usize) -> Instant {
        self.idle_until(now);
        self.transmit(len_bytes)
    }
}
