//! Start times of requests.
//!
//! ```text
//! closed loop   as soon as a slot is free: the server sets the pace
//! open loop     at origin + offset + n * interval, independent of the server:
//!               |--x-----x-----x-----x-----x--|      intended starts of one session
//!               |--x-----x...........xxx---x--|      a stall of the server; latency counts from the x above
//! ```

use std::time::{Duration, Instant};

/// Start times of one session's requests.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// As soon as a slot is free.
    Closed,
    /// At these times.
    Open {
        /// The next intended start.
        next: Instant,
        /// Time between two starts.
        interval: Duration,
    },
}

impl Pace {
    /// The pace of session `number` of `sessions`, which together start `rate` requests per second from `origin` on; they are spread
    /// evenly. Without a rate it is the closed loop.
    pub(crate) fn of(rate: Option<f64>, number: usize, sessions: usize, origin: Instant) -> Self {
        let Some(rate) = rate else {
            return Self::Closed;
        };
        let period_s = 1.0 / rate;
        Self::Open {
            next: origin + Duration::from_secs_f64(period_s * number as f64),
            interval: Duration::from_secs_f64(period_s * sessions as f64),
        }
    }

    /// The intended start of the request that is due at `now`, if there is one; it counts as started.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Instant> {
        match self {
            Self::Closed => Some(now),
            Self::Open { next, interval } => (*next <= now).then(|| {
                let intended = *next;
                *next += *interval;
                intended
            }),
        }
    }

    /// Time of the next call, if nothing else happens.
    pub(crate) fn next(&self) -> Option<Instant> {
        match self {
            Self::Closed => None,
            Self::Open { next, .. } => Some(*next),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_loop_starts_are_even_and_survive_a_stall() {
        let origin = Instant::now();
        let at = |ms| origin + Duration::from_millis(ms);
        let mut paces = [0, 1].map(|number| Pace::of(Some(100.0), number, 2, origin));
        assert_eq!(paces.map(|pace| pace.next()), [Some(at(0)), Some(at(10))]);
        // No request was started for 50 ms: all those that were intended in it become due at once, each with its own time.
        let due: Vec<_> = std::iter::from_fn(|| paces[1].take(at(50))).collect();
        assert_eq!(due, [at(10), at(30), at(50)]);
        assert_eq!(paces[1].next(), Some(at(70)));
    }

    #[test]
    fn closed_loop_requests_are_due_when_a_slot_is_free() {
        let now = Instant::now();
        let mut pace = Pace::of(None, 0, 1, now);
        assert_eq!((pace.take(now), pace.next()), (Some(now), None));
    }
}
