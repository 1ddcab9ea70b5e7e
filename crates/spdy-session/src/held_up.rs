//! How long the peer could send nothing, on any stream, since our owner had not consumed what came before.
//!
//! Patience with one stream must not pay for what others leave lying: its own window may be open while the
//! session's is closed, or, without windows, while nothing is read.

use std::time::Duration;

use spdy_clock::Instant;

use crate::session::Session;

/// A window of the session that is smaller counts as closed, bytes: OkHttp keeps up to 8 KiB back when it meets one
/// that is nearly so.
const MIN_OPEN_WINDOW: i64 = 8 * 1024;

/// The clock of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backpressure {
    since: Option<Instant>,
    before: Duration,
}

impl Session {
    /// How long the peer could send no DATA at all, until `now`, because what had come was not
    /// [consumed](Self::consume).
    #[must_use]
    pub fn backpressure_time(&self, now: Instant) -> Duration {
        let Backpressure { since, before } = self.backpressure;
        before + since.map_or(Duration::ZERO, |since| now - since)
    }

    /// Without windows, whether our owner has as much to consume as it may: nothing more is read.
    pub(crate) fn is_full(&self) -> bool {
        !self.stream_windows && self.unread >= self.config.unread_limit()
    }

    /// Looks whether the peer can send; to be called when that may have changed.
    pub(crate) fn update_backpressure(&mut self) {
        let no_credit = self.session_window && self.receive_window.available() < MIN_OPEN_WINDOW;
        let closed = self.is_full() || (self.stream_windows && no_credit);
        match self.backpressure.since {
            None if closed => self.backpressure.since = Some(self.now),
            Some(since) if !closed => {
                self.backpressure.since = None;
                self.backpressure.before += self.now - since;
            }
            _ => {}
        }
    }
}
