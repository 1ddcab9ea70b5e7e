//! Zero-window probes (RFC 9293 §3.8.6.1): the announcement of an open window may be lost.
//!
//! If no segment is in flight and the window is too small for the waiting data, a probe is sent after a timeout, then after twice as
//! long, and so on. It has an old sequence number and no data, so the receiver can only acknowledge. If `data_retries` probes
//! had no response when the next one is due, the connection is given up.

use spdy_clock::Instant;

use super::sender::{Sender, TimerKind};

impl Sender {
    /// True if only the peer's window prevents the next segment, with none in flight.
    fn is_window_blocked(&self) -> bool {
        self.board.is_empty() && self.has_unsent() && !self.window_admits_next()
    }

    /// Arms the probe timer if sending ended because of the window; disarms it if the window is open.
    pub(crate) fn check_persist(&mut self, now: Instant) {
        let armed = matches!(self.timer, Some((TimerKind::Persist, _)));
        match (self.is_window_blocked(), armed) {
            (true, false) => {
                self.persist_backoff = 0;
                let wait = self.rtt.rto().max(self.config.min_rto);
                self.set_timer(TimerKind::Persist, now, wait);
            }
            (false, true) => self.timer = None,
            _ => {}
        }
    }

    /// The persist timer expired: a window probe becomes due, and the next wait is twice as long.
    pub(crate) fn on_persist_timeout(&mut self, now: Instant) {
        self.timer = None;
        if !self.is_window_blocked() {
            return;
        }
        if self.probes_unanswered >= self.config.data_retries {
            self.gave_up_probing = true;
            return;
        }
        self.stats.window_probes += 1;
        self.probes_unanswered += 1;
        self.is_window_probe_due = true;
        self.persist_backoff = (self.persist_backoff + 1).min(16);
        let wait = self.rtt.rto().max(self.config.min_rto) * (1 << self.persist_backoff);
        self.set_timer(TimerKind::Persist, now, wait.min(self.config.max_rto));
    }
}
