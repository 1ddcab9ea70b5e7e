//! What came of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use spdy_net::protocol::Protocol;

use crate::fault::FaultKind;
use crate::process::Sample;
use crate::tally::Tally;
pub use crate::tally::{Faults, LatencyHistogram};
use crate::traffic::Bytes;

impl LatencyHistogram {
    /// How many were taken.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram().len()
    }

    /// The time that a part `quantile` (0 to 1) of all did not exceed; zero if there are none.
    #[must_use]
    pub fn at(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.histogram().value_at_quantile(quantile))
    }

    /// The mean.
    #[must_use]
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.histogram().mean() as u64)
    }

    /// The longest.
    #[must_use]
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.histogram().max())
    }
}

/// CPU and memory of the measured process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// User and system time within what was measured.
    pub cpu: Duration,
    /// The last sample.
    pub last: Sample,
}

/// What was measured, between the end of the warm-up and the end of the run.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was spoken.
    pub protocol: Protocol,
    /// Sessions that stood when the load began.
    pub sessions: usize,
    /// Requests in flight on each.
    pub streams: usize,
    /// How long was measured.
    pub elapsed: Duration,
    /// The run was ended before its time.
    pub stopped: bool,
    /// Whole answers, right or wrong.
    pub answered: u64,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Answers with another status than they should have.
    pub wrong_status: u64,
    /// Answers with the right status and a body of another length.
    pub wrong_length: u64,
    /// Requests without an answer, and connections that were not had.
    pub faults: BTreeMap<FaultKind, Faults>,
    /// Requests sent again on another connection, since the server had not begun with them.
    pub resent: u64,
    /// Connections made in the place of one that had ended.
    pub reconnects: u64,
    /// Requests in flight at the end: neither answered nor failed.
    pub unfinished: u64,
    /// Bytes of bodies received.
    pub body_bytes: u64,
    /// Bytes sent, without TLS.
    pub sent_bytes: u64,
    /// Bytes received, without TLS.
    pub received_bytes: u64,
    /// Header bytes sent, as they were on the wire.
    pub sent_header_bytes: u64,
    /// Header bytes received, as they were on the wire.
    pub received_header_bytes: u64,
    /// From the (intended) beginning of a request to the end of its answer.
    pub latency: LatencyHistogram,
    /// From the first packet to the end of the TLS handshake.
    pub set_up: LatencyHistogram,
    /// The process that was to be measured.
    pub usage: Option<Usage>,
    /// CPU time of this process within what was measured.
    pub own_cpu: Option<Duration>,
}

impl Report {
    /// What the threads counted; the rest is to be filled in.
    pub(crate) fn of(protocol: Protocol, tally: Tally, bytes: Bytes) -> Self {
        Self {
            protocol,
            sessions: 0,
            streams: 0,
            elapsed: Duration::ZERO,
            stopped: false,
            answered: tally.answered,
            statuses: tally.statuses,
            wrong_status: tally.wrong_status,
            wrong_length: tally.wrong_length,
            faults: tally.faults,
            resent: tally.resent,
            reconnects: tally.reconnects,
            unfinished: tally.unfinished,
            body_bytes: tally.body_bytes,
            sent_bytes: bytes.sent,
            received_bytes: bytes.received,
            sent_header_bytes: bytes.headers_sent,
            received_header_bytes: bytes.headers_received,
            latency: tally.latency,
            set_up: tally.set_up,
            usage: None,
            own_cpu: None,
        }
    }

    /// Requests that failed, and connections that were not had.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.faults.values().map(|faults| faults.count).sum()
    }

    /// Every answer was right, and there was one at least.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.answered > 0 && self.failed() == 0 && self.wrong_status + self.wrong_length == 0
    }

    /// `count` a second.
    #[must_use]
    pub fn per_second(&self, count: u64) -> f64 {
        match self.elapsed.as_secs_f64() {
            seconds if seconds > 0.0 => count as f64 / seconds,
            _ => 0.0,
        }
    }

    /// Seconds of `cpu` for 100,000 answers; `None` if there was none.
    #[must_use]
    pub fn per_100_000(&self, cpu: Duration) -> Option<f64> {
        (self.answered > 0).then(|| cpu.as_secs_f64() * 1e5 / self.answered as f64)
    }
}
