//! Delayed acknowledgements (RFC 1122 §4.2.3.2): when one is sent at once, and when it waits.
//!
//! Linux acknowledges the first segments at once (*quick*), so that the peer's slow start is not delayed. It then acknowledges every
//! second full segment at once, and a single one after 40 to 44 ms. An endpoint that responds to received data (*interactive*) always
//! waits, so that the response carries the acknowledgement.

use std::time::Duration;

use spdy_clock::Instant;

use crate::tcp::config::TcpConfig;
use crate::tcp::jiffies;

/// Assumed segment size before the first segment, bytes.
const DEFAULT_MSS_BYTES: u64 = 536;

#[derive(Clone, Debug)]
pub(crate) struct DelayedAck {
    enabled: bool,
    coarse_timers: bool,
    least: Duration,
    most: Duration,
    quick_limit: u32,
    /// Number of acknowledgements that are still sent at once.
    quick: u32,
    /// Requests of the peer and our responses alternate.
    interactive: bool,
    /// The current delay; zero before the first segment.
    delay: Duration,
    last_received: Instant,
    /// Estimated size of the peer's full segments.
    full_bytes: u64,
    /// Length of the last segment that was not full.
    last_small_bytes: u64,
    /// Received data is unacknowledged.
    pub(crate) is_due: bool,
    /// The acknowledgement must be sent at once.
    pub(crate) is_urgent: bool,
    /// A write of the peer has probably ended, once or twice.
    pushed: u8,
    pub(crate) timer: Option<Instant>,
}

impl DelayedAck {
    pub(crate) fn new(config: &TcpConfig) -> Self {
        Self {
            enabled: config.delayed_ack,
            coarse_timers: config.coarse_timers,
            least: config.delayed_ack_min,
            most: config.delayed_ack_max,
            quick_limit: config.quick_acks,
            quick: 0,
            interactive: false,
            delay: Duration::ZERO,
            last_received: Instant::ZERO,
            full_bytes: DEFAULT_MSS_BYTES,
            last_small_bytes: 0,
            is_due: false,
            is_urgent: false,
            pushed: 0,
            timer: None,
        }
    }

    /// The handshake is over.
    pub(crate) fn start(&mut self, now: Instant) {
        self.last_received = now;
    }

    /// Estimated size of the peer's full segments, bytes.
    pub(crate) fn full_bytes(&self) -> u64 {
        self.full_bytes
    }

    /// Handles received payload; `rto` limits a delay, `window_bytes` is the last announced window.
    pub(crate) fn on_data(
        &mut self,
        now: Instant,
        len_bytes: u64,
        push: bool,
        rto: Duration,
        window_bytes: u64,
    ) {
        self.is_due = true;
        self.measure(len_bytes, push);
        if self.delay.is_zero() {
            self.be_quick(window_bytes);
            self.delay = self.least;
        } else {
            let gap = jiffies::between(self.last_received, now);
            let half = jiffies::rounded_down(self.delay / 2);
            if gap <= self.least / 2 {
                self.delay = half + self.least / 2;
            } else if gap < self.delay {
                self.delay = (half + gap).min(rto);
            } else if gap > rto {
                // The peer was idle and is in slow start again.
                self.be_quick(window_bytes);
            }
        }
        self.last_received = now;
    }

    fn measure(&mut self, len_bytes: u64, push: bool) {
        if len_bytes >= self.full_bytes {
            self.full_bytes = len_bytes;
            if push {
                self.pushed = self.pushed.max(1);
            }
            return;
        }
        if len_bytes >= DEFAULT_MSS_BYTES {
            // Two of the same length in a row: the peer's segments are smaller than estimated.
            if std::mem::replace(&mut self.last_small_bytes, len_bytes) == len_bytes {
                self.full_bytes = len_bytes;
                return;
            }
        }
        self.pushed = (self.pushed + 1).min(2);
    }

    /// Acknowledges the next segments at once: the number of them that fits into half a window.
    fn be_quick(&mut self, window_bytes: u64) {
        let half = window_bytes / (2 * self.full_bytes);
        let half = u32::try_from(half).unwrap_or(u32::MAX).max(2);
        self.quick = self.quick.max(half.min(self.quick_limit));
    }

    /// A segment was duplicate, out of order or outside the window: it and the next ones are acknowledged at once.
    pub(crate) fn on_unexpected_segment(&mut self, window_bytes: u64) {
        self.interactive = false;
        self.delay = self.least;
        self.be_quick(window_bytes);
        self.is_due = true;
        self.is_urgent = true;
    }

    /// The window grew, and the peer must be informed. An odd count of quick acknowledgements stays, and an even one grows by one, so that
    /// acknowledgements stay quick as long as the window grows; Linux does the same.
    pub(crate) fn on_window_grown(&mut self) {
        self.quick |= 1;
    }

    /// Handles the peer's FIN: a response of ours may carry its acknowledgement.
    pub(crate) fn on_fin(&mut self) {
        self.is_due = true;
        self.interactive = true;
    }

    /// Records that our data is sent at `now`.
    pub(crate) fn on_data_sent(&mut self, now: Instant) {
        if jiffies::between(self.last_received, now) < self.delay {
            self.interactive = true;
        }
    }

    /// Decides about the acknowledgement after a segment was handled. `unacked_bytes` were received since the last acknowledgement;
    /// `window_is_open` means that the window does not wait for the reader.
    pub(crate) fn decide(
        &mut self,
        now: Instant,
        unacked_bytes: u64,
        window_is_open: bool,
        has_holes: bool,
        srtt: Option<Duration>,
    ) {
        if !self.is_due || self.is_urgent {
            return;
        }
        let two = unacked_bytes > self.full_bytes && window_is_open;
        let quick = self.quick > 0 && !self.interactive;
        if !self.enabled || two || quick || has_holes {
            self.is_urgent = true;
        } else {
            self.wait(now, srtt);
        }
    }

    fn wait(&mut self, now: Instant, srtt: Option<Duration>) {
        let mut delay = self.delay;
        if delay > self.least {
            let bound = if self.interactive || self.pushed > 0 {
                self.most
            } else {
                500 * MS
            };
            let bound = srtt.map_or(bound, |srtt| {
                jiffies::rounded_up(srtt).max(self.least).min(bound)
            });
            delay = delay.min(bound);
        }
        delay = delay.min(self.most);
        let timer = |wait| jiffies::timer(now, wait, self.coarse_timers);
        let (expires, soon) = (timer(delay), timer(jiffies::rounded_down(delay / 4)));
        match self.timer {
            // The timer is about to expire: a response would come too late.
            Some(at) if at <= soon => self.is_urgent = true,
            Some(at) => self.timer = Some(at.min(expires)),
            None => self.timer = Some(expires),
        }
    }

    /// Handles a read of the application that leaves `unread_bytes`. Marks the acknowledgement as urgent if it is time to send it.
    pub(crate) fn on_read(&mut self, unacked_bytes: u64, unread_bytes: usize) {
        let ended = self.pushed == 2 || (self.pushed == 1 && !self.interactive);
        if self.is_due && (unacked_bytes > self.full_bytes || (ended && unread_bytes == 0)) {
            self.is_urgent = true;
        }
    }

    /// Handles the end of the delay.
    pub(crate) fn on_timeout(&mut self, now: Instant, rto: Duration) -> bool {
        if self.timer.take_if(|at| *at <= now).is_none() || !self.is_due {
            return false;
        }
        if self.interactive {
            self.interactive = false;
            self.delay = self.least;
        } else {
            self.delay = (self.delay * 2).min(rto);
        }
        self.is_urgent = true;
        true
    }

    /// Records that an acknowledgement was sent, alone or with data.
    pub(crate) fn on_sent(&mut self) {
        if self.is_due && self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.delay = self.least;
            }
        }
        self.is_due = false;
        self.is_urgent = false;
        self.pushed = 0;
        self.timer = None;
    }
}

const MS: Duration = Duration::from_millis(1);
