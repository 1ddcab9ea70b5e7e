//! The configured congestion control, with common methods: CUBIC (`cubic.rs`), or Reno (RFC 5681), which halves the window on a loss
//! and adds a segment per round trip.

use spdy_clock::Instant;

use super::cubic::Cubic;
use crate::tcp::config::{CongestionControl, TcpConfig};

#[derive(Clone, Debug)]
pub(crate) enum Congestion {
    Cubic(Box<Cubic>),
    Reno,
}

impl Congestion {
    pub(crate) fn new(config: &TcpConfig) -> Self {
        match config.congestion {
            CongestionControl::Cubic => Self::Cubic(Box::new(Cubic::new(config.hystart))),
            CongestionControl::Reno => Self::Reno,
        }
    }

    /// The handshake is over.
    pub(crate) fn start(&mut self, now: Instant, nxt: u64) {
        if let Self::Cubic(cubic) = self {
            cubic.start(now, nxt);
        }
    }

    /// A round-trip sample; `true` if slow start should end at the current window.
    pub(crate) fn on_sample(
        &mut self,
        now: Instant,
        sample_us: u64,
        cwnd: u32,
        in_slow_start: bool,
        round: (u64, u64),
    ) -> bool {
        match self {
            Self::Cubic(cubic) => cubic.on_sample(now, sample_us, cwnd, in_slow_start, round),
            Self::Reno => false,
        }
    }

    /// The threshold after a loss at window `cwnd`.
    pub(crate) fn reduced_threshold(&mut self, cwnd: u32) -> u32 {
        match self {
            Self::Cubic(cubic) => cubic.reduced_threshold(cwnd),
            Self::Reno => halved(cwnd),
        }
    }

    /// The retransmission timer expired.
    pub(crate) fn on_timeout(&mut self, now: Instant, nxt: u64) {
        if let Self::Cubic(cubic) = self {
            cubic.on_timeout(now, nxt);
        }
    }

    /// Sending resumes with no segment in flight.
    pub(crate) fn on_resume(&mut self, now: Instant, last_sent: Instant) {
        if let Self::Cubic(cubic) = self {
            cubic.on_resume(now, last_sent);
        }
    }

    /// Acknowledged segments for which the window grows by one segment in congestion avoidance.
    pub(crate) fn count(&mut self, now: Instant, cwnd: u32, acked: u32) -> u32 {
        match self {
            Self::Cubic(cubic) => cubic.count(now, cwnd, acked),
            Self::Reno => cwnd,
        }
    }
}

/// Reno's threshold after a loss at window `cwnd`.
fn halved(cwnd: u32) -> u32 {
    (cwnd / 2).max(2)
}
