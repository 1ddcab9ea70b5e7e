//! The results of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use spdy_net::protocol::Protocol;

use crate::fault::FaultKind;
use crate::process::Sample;
use crate::tally::Tally;
pub use crate::tally::{Faults, LatencyHistogram};
use crate::traffic::Bytes;

impl LatencyHistogram {
    /// Number of samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram().len()
    }

    /// The quantile `quantile` (0 to 1) of all times; zero if there are none.
    #[must_use]
    pub fn at(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.histogram().value_at_quantile(quantile))
    }

    /// The mean.
    #[must_use]
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.histogram().mean() as u64)
    }

    /// The maximum.
    #[must_use]
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.histogram().max())
    }
}

/// CPU and memory of the measured process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// User and system time during the measurement.
    pub cpu: Duration,
    /// The last sample.
    pub last: Sample,
}

/// The measurements between the end of the warm-up and the end of the run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The protocol.
    pub protocol: Protocol,
    /// Open sessions when the load began.
    pub sessions: usize,
    /// Requests in flight on each.
    pub streams: usize,
    /// Duration of the measurement.
    pub elapsed: Duration,
    /// The run was stopped early.
    pub stopped: bool,
    /// Complete responses, right or wrong.
    pub answered: u64,
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Responses with another status than expected.
    pub wrong_status: u64,
    /// Responses with the right status and a body of another length.
    pub wrong_length: u64,
    /// Requests without a response, and failed connections.
    pub faults: BTreeMap<FaultKind, Faults>,
    /// Requests sent again on another connection, because the server had not begun with them.
    pub resent: u64,
    /// Connections that replaced ended ones.
    pub reconnects: u64,
    /// Requests in flight at the end, without a response or failure.
    pub unfinished: u64,
    /// Bytes of bodies received.
    pub body_bytes: u64,
    /// Bytes sent, without TLS.
    pub sent_bytes: u64,
    /// Bytes received, without TLS.
    pub received_bytes: u64,
    /// Sent header bytes, as on the wire.
    pub sent_header_bytes: u64,
    /// Received header bytes, as on the wire.
    pub received_header_bytes: u64,
    /// From the (intended) start of a request to the end of its response.
    pub latency: LatencyHistogram,
    /// From the first packet to the end of the TLS handshake.
    pub set_up: LatencyHistogram,
    /// Usage of the measured process.
    pub usage: Option<Usage>,
    /// CPU time of this process during the measurement.
    pub own_cpu: Option<Duration>,
}

impl Report {
    /// The results of the threads; the other fields are set later.
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

    /// Failed requests and connections.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.faults.values().map(|faults| faults.count).sum()
    }

    /// True if every response was right, and there was at least one.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.answered > 0 && self.failed() == 0 && self.wrong_status + self.wrong_length == 0
    }

    /// `count` per second.
    #[must_use]
    pub fn per_second(&self, count: u64) -> f64 {
        match self.elapsed.as_secs_f64() {
            seconds if seconds > 0.0 => count as f64 / seconds,
            _ => 0.0,
        }
    }

    /// Seconds of `cpu` for 100,000 responses; `None` without responses.
    #[must_use]
    pub fn per_100_000(&self, cpu: Duration) -> Option<f64> {
        (self.answered > 0).then(|| cpu.as_secs_f64() * 1e5 / self.answered as f64)
    }
}
