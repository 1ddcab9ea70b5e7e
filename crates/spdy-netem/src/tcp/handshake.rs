//! The handshake: SYN, SYN-ACK, and their timers.
//!
//! ```text
//!  opener                         listener
//!  SynSent      SYN ->            Listen
//!               <- SYN-ACK        SynReceived
//!  Established  ACK ->            Established
//! ```
//!
//! A SYN is repeated after 1 s (3 s in 2009), and so is a SYN-ACK, each by its own timer: on a path with a longer round trip both
//! fire although no segment was lost.

use std::time::Duration;

use spdy_clock::Instant;

use super::config::TcpConfig;
use super::jiffies;
use super::recovery::ack::clock_ms;
use crate::segment::{Segment, SynOptions};

/// Timeout for data if the SYN was repeated and there is no round-trip sample (RFC 6298 §5.7).
pub(super) const FALLBACK_RTO: Duration = Duration::from_secs(3);

#[derive(Clone, Debug)]
pub(super) struct Handshake {
    /// A SYN or SYN-ACK must be sent.
    pub(super) is_due: bool,
    pub(super) timer: Option<Instant>,
    coarse_timers: bool,
    timeout: Duration,
    /// Repetitions by the timer.
    repeats: u32,
    /// Maximum repetitions at equal intervals, and in all.
    linear: u32,
    limit: u32,
    first_sent: Option<Instant>,
    first_repeat_ms: Option<u64>,
    /// Options of the peer.
    pub(super) peer: Option<SynOptions>,
    pub(super) peer_has_clock: bool,
}

/// The result of a timeout.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SynTimeout {
    Pending,
    Resend,
    GaveUp,
}

impl Handshake {
    /// State of the opener: its SYN must be sent.
    pub(super) fn opener(config: &TcpConfig) -> Self {
        let limit = config.syn_retries + config.syn_linear_retries;
        Self::new(config, true, config.syn_linear_retries, limit)
    }

    /// State of the listener, which waits for a SYN.
    pub(super) fn listener(config: &TcpConfig) -> Self {
        Self::new(config, false, 0, config.syn_ack_retries)
    }

    fn new(config: &TcpConfig, is_due: bool, linear: u32, limit: u32) -> Self {
        Self {
            is_due,
            timer: None,
            coarse_timers: config.coarse_timers,
            timeout: config.initial_rto,
            repeats: 0,
            linear,
            limit,
            first_sent: None,
            first_repeat_ms: None,
            peer: None,
            peer_has_clock: false,
        }
    }

    pub(super) fn note_peer(&mut self, segment: &Segment) {
        self.peer = segment.syn_options;
        self.peer_has_clock = segment.timestamps.is_some();
    }

    /// Records that a SYN or SYN-ACK is sent; `true` if it is a repetition.
    pub(super) fn on_sent(&mut self, now: Instant) -> bool {
        self.is_due = false;
        let again = self.first_sent.is_some();
        if again {
            self.first_repeat_ms.get_or_insert(clock_ms(now));
        }
        self.first_sent.get_or_insert(now);
        // The response to a repeated SYN is sent at once and does not move the timer.
        self.timer
            .get_or_insert_with(|| jiffies::timer(now, self.timeout, self.coarse_timers));
        again
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, max_rto: Duration) -> SynTimeout {
        if self.timer.take_if(|at| *at <= now).is_none() {
            return SynTimeout::Pending;
        }
        if self.repeats == self.limit {
            return SynTimeout::GaveUp;
        }
        self.repeats += 1;
        if self.repeats > self.linear {
            self.timeout = (self.timeout * 2).min(max_rto);
        }
        self.is_due = true;
        SynTimeout::Resend
    }

    /// The response arrived with the echo `echo_ms`: the round trip, if it is unambiguous.
    pub(super) fn round_trip(&self, now: Instant, echo_ms: Option<u64>) -> Option<Duration> {
        match (self.first_repeat_ms, self.first_sent, echo_ms) {
            (None, Some(sent), _) => Some(now - sent),
            (Some(_), _, Some(echo)) => Some(Duration::from_millis(
                clock_ms(now).saturating_sub(echo).max(1),
            )),
            _ => None,
        }
    }

    /// True if data must start with a window of one segment: the SYN was repeated more than once, and not unnecessarily (RFC 5681
    /// §3.1, less strictly as in Linux).
    pub(super) fn was_hard(&self, echo_ms: Option<u64>) -> bool {
        let was_unnecessary = match (self.first_repeat_ms, echo_ms) {
            (Some(repeat), Some(echo)) => echo < repeat,
            _ => false,
        };
        self.repeats > 1 && !was_unnecessary
    }
}
