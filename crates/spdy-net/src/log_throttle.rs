//! Limits how often an event is logged: the first time, and then at most once per interval.

use std::time::Duration;

use parking_lot::Mutex;
use spdy_clock::Instant;

/// Minimum interval between two log messages of one event.
const INTERVAL: Duration = Duration::from_secs(60);

/// When the event was last logged.
#[derive(Debug, Default)]
pub(crate) struct LogThrottle(Mutex<Option<Instant>>);

impl LogThrottle {
    /// True if the event should be logged at `now`. `true` starts the next interval.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        let mut last_logged = self.0.lock();
        let is_due = last_logged.is_none_or(|last| now - last >= INTERVAL);
        if is_due {
            *last_logged = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_message_passes_and_the_next_after_a_minute() {
        let seldom = LogThrottle::default();
        let due = [0, 1, 59_999, 60_000, 60_001, 300_000, 359_999, 360_000]
            .map(|ms| seldom.is_due(Instant::from_millis(ms)));
        assert_eq!(due, [true, false, false, true, false, true, false, true]);
    }
}
