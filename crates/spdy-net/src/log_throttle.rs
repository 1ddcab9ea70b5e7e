//! What is said at once, and said again only after a while, however often it happens.

use std::time::Duration;

use parking_lot::Mutex;
use spdy_clock::Instant;

/// After how long it is said again.
const INTERVAL: Duration = Duration::from_secs(60);

/// When it was last said.
#[derive(Debug, Default)]
pub(crate) struct LogThrottle(Mutex<Option<Instant>>);

impl LogThrottle {
    /// Whether it is to be said `now`.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        let mut said = self.0.lock();
        let is_due = said.is_none_or(|said| now - said >= INTERVAL);
        if is_due {
            *said = Some(now);
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
