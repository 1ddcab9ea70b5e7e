//! Measures how long the peer could send no DATA on any stream because the owner had not consumed earlier DATA.
//!
//! The timeout of a stream must not count that time. The stream's own window may be open while the session's window is closed, or,
//! without windows, while nothing is read.

use std::time::Duration;

use spdy_clock::Instant;

/// The total time of backpressure, and the start of the current period.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backpressure {
    since: Option<Instant>,
    before: Duration,
}

impl Backpressure {
    /// The total time until `now`.
    pub(crate) fn time(self, now: Instant) -> Duration {
        let Self { since, before } = self;
        before + since.map_or(Duration::ZERO, |since| now - since)
    }

    /// Sets whether the peer can send no DATA from `now` on.
    pub(crate) fn update(&mut self, is_closed: bool, now: Instant) {
        match self.since {
            None if is_closed => self.since = Some(now),
            Some(since) if !is_closed => {
                self.since = None;
                self.before += now - since;
            }
            _ => {}
        }
    }
}
