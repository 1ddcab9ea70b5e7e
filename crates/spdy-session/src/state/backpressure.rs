//! Measures how long the peer could send no DATA on any stream, because our owner had not consumed what came before.
//!
//! A timeout for one stream must not count that time: the stream's own window may be open while the session's is
//! closed, or, without windows, while nothing is read.

use std::time::Duration;

use spdy_clock::Instant;

/// The time of backpressure so far, and the start of the current one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backpressure {
    since: Option<Instant>,
    before: Duration,
}

impl Backpressure {
    /// The time until `now`.
    pub(crate) fn time(self, now: Instant) -> Duration {
        let Self { since, before } = self;
        before + since.map_or(Duration::ZERO, |since| now - since)
    }

    /// Notes whether the peer can send nothing from `now` on.
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
