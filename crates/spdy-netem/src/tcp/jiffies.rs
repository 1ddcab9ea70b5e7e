//! The clock of Linux's timers: 250 *jiffies* a second, as in the kernels of Debian and most other distributions.
//!
//! ```text
//!    1   2   3   4   5   6   7   8          jiffies, of 4 ms
//!  ──┼───┼───┼───┼───┼───┼───┼───┼──►
//!      │◄── 9 ms ──►│                       a timer that is set here for 9 ms
//!      └──────────────────► fires           3 jiffies, from the last one; and one more, so that it is not early
//! ```
//!
//! So it is since Linux 4.8. A timer for 63 jiffies or more fires at a multiple of 8 jiffies, one for 504 or more at a multiple of 64, and so on. So an
//! acknowledgement that is delayed for 40 ms waits for 40 to 44 ms, and a retransmission timer of 304 ms expires after 304 to 336 ms. Before,
//! each timer fired without the further jiffy: after 36 to 40 ms, and after 300 to 304 ms.
//!
//! Intervals between two events are whole jiffies too. Linux's own names are `tcp_jiffies32` and `usecs_to_jiffies`; the wheel is
//! `kernel/time/timer.c`.

use std::time::Duration;

use spdy_clock::Instant;

/// Length of a jiffy, nanoseconds.
const JIFFY_NS: u64 = 4_000_000;
/// Jiffies a second.
pub(crate) const PER_SECOND: u64 = 1_000_000_000 / JIFFY_NS;
/// Each level of the wheel of timers is 8 times as coarse as the one before.
const LEVEL_SHIFT: u32 = 3;
/// Timers from this number of jiffies on are in the second level; those of each further level from 8 times as many on.
const LEVEL_START: u64 = 63;

/// Jiffies until `at`.
pub(crate) fn at(at: Instant) -> u64 {
    at.as_nanos() / JIFFY_NS
}

/// `time` in jiffies, rounded up.
pub(crate) fn of(time: Duration) -> u64 {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    nanos.div_ceil(JIFFY_NS)
}

/// `time`, rounded up to whole jiffies.
pub(crate) fn rounded_up(time: Duration) -> Duration {
    duration(of(time))
}

/// `time`, rounded down to whole jiffies.
pub(crate) fn rounded_down(time: Duration) -> Duration {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    duration(nanos / JIFFY_NS)
}

/// The time from `earlier` to `later` in whole jiffies; zero if `earlier` is later.
pub(crate) fn between(earlier: Instant, later: Instant) -> Duration {
    duration(at(later).saturating_sub(at(earlier)))
}

/// When a timer fires that is set at `now` for `wait`; `coarse` as since Linux 4.8.
pub(crate) fn timer(now: Instant, wait: Duration, coarse: bool) -> Instant {
    let wait = of(wait);
    if !coarse {
        let expires = at(now).saturating_add(wait.max(1));
        return Instant::from_nanos(expires.saturating_mul(JIFFY_NS));
    }
    let expires = at(now).saturating_add(wait);
    let (mut start, mut shift) = (LEVEL_START, 0);
    while wait >= start {
        start = start.saturating_mul(1 << LEVEL_SHIFT);
        shift += LEVEL_SHIFT;
    }
    let fires = ((expires >> shift) + 1) << shift;
    Instant::from_nanos(fires.saturating_mul(JIFFY_NS))
}

const fn duration(jiffies: u64) -> Duration {
    Duration::from_nanos(jiffies.saturating_mul(JIFFY_NS))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_near_timer_fires_up_to_a_jiffy_late_and_never_early() {
        for (set_us, wait_ms, expected_ms) in [
            (0, 40, 44),
            (1, 40, 44),
            (3_999, 40, 44),
            (4_000, 40, 48),
            (5_000, 9, 20),
            (0, 0, 4),
        ] {
            let now = Instant::from_micros(set_us);
            let fires = timer(now, ms(wait_ms), true);
            assert_eq!(fires, Instant::from_millis(expected_ms), "{set_us} us");
            assert!(fires >= now + ms(wait_ms));
        }
    }

    #[test]
    fn a_far_timer_fires_at_a_multiple_of_eight_jiffies() {
        // 62 jiffies are near, 63 are not, and from 504 on it is a multiple of 64.
        assert_eq!(
            timer(Instant::ZERO, ms(248), true),
            Instant::from_millis(252)
        );
        assert_eq!(
            timer(Instant::ZERO, ms(252), true),
            Instant::from_millis(256)
        );
        assert_eq!(
            timer(Instant::from_millis(12), ms(304), true),
            Instant::from_millis(320)
        );
        assert_eq!(
            timer(Instant::ZERO, ms(1_000), true),
            Instant::from_millis(1_024)
        );
        assert_eq!(
            timer(Instant::ZERO, ms(2_016), true),
            Instant::from_millis(2_048)
        );
        assert!(timer(Instant::ZERO, Duration::MAX, true) > Instant::from_millis(1_000_000));
    }

    #[test]
    fn a_timer_of_2013_fires_at_a_tick_and_may_be_early() {
        for (set_us, wait_ms, expected_ms) in [(0, 40, 40), (3_999, 40, 40), (4_000, 0, 8)] {
            let fires = timer(Instant::from_micros(set_us), ms(wait_ms), false);
            assert_eq!(fires, Instant::from_millis(expected_ms), "{set_us} us");
        }
        assert_eq!(
            timer(Instant::ZERO, ms(1_000), false),
            Instant::from_millis(1_000)
        );
    }

    #[test]
    fn intervals_are_whole_jiffies() {
        let [early, late] = [3_999, 8_001].map(Instant::from_micros);
        assert_eq!(between(early, late), ms(8));
        assert_eq!(between(late, early), ms(0));
        assert_eq!(rounded_up(ms(301)), ms(304));
        assert_eq!(rounded_down(ms(303)), ms(300));
    }
}
