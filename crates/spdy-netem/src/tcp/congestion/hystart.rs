//! HyStart: ends slow start before the queue overflows (Ha and Rhee, 2011), as in Linux.
//!
//! Two signals end slow start, once the window has 16 segments. A *train*: acknowledgements less than 2 ms apart have arrived
//! for half the minimum round trip, so the window fills the pipe. A *delay*: eight samples of this round all exceed the minimum by an
//! eighth of it (4 to 16 ms), so there is a queue.

/// Minimum window for detection, segments.
const LEAST_WINDOW: u32 = 16;
/// Samples of a round before its delay is evaluated.
const SAMPLES: u32 = 8;
/// Gaps within a train are shorter, microseconds. Linux also accepts a gap of exactly this length. But on a link with segments of
/// 1 ms every gap has this length in the model, and in a kernel some gap of each train is longer.
const TRAIN_GAP_US: u64 = 2_000;
/// Allowance for acknowledgements that were held and sent together, microseconds.
const ACK_DELAY_US: u64 = 1_000;

#[derive(Clone, Debug, Default)]
pub(crate) struct HyStart {
    found: bool,
    round_start_us: u64,
    last_ack_us: u64,
    round_end: u64,
    round_min_us: Option<u64>,
    samples: u32,
}

impl HyStart {
    /// Starts a round that ends when `nxt` is acknowledged.
    fn start_round(&mut self, now_us: u64, nxt: u64) {
        self.round_start_us = now_us;
        self.last_ack_us = now_us;
        self.round_end = nxt;
        self.round_min_us = None;
        self.samples = 0;
    }

    /// Starts again, as on a connection's first round or after a timeout.
    pub(crate) fn reset(&mut self, now_us: u64, nxt: u64) {
        self.found = false;
        self.start_round(now_us, nxt);
    }

    /// Handles an acknowledgement in slow start; `true` if slow start should end here.
    pub(crate) fn on_ack(
        &mut self,
        now_us: u64,
        sample_us: u64,
        least_us: u64,
        cwnd: u32,
        (una, nxt): (u64, u64),
    ) -> bool {
        if self.found {
            return false;
        }
        if una > self.round_end {
            self.start_round(now_us, nxt);
        }
        if cwnd < LEAST_WINDOW {
            return false;
        }
        if now_us - self.last_ack_us < TRAIN_GAP_US {
            self.last_ack_us = now_us;
            self.found |= now_us - self.round_start_us > (least_us + ACK_DELAY_US) / 2;
        }
        let round_min = self
            .round_min_us
            .map_or(sample_us, |least| least.min(sample_us));
        self.round_min_us = Some(round_min);
        if self.samples < SAMPLES {
            self.samples += 1;
        } else {
            self.found |= round_min > least_us + (least_us >> 3).clamp(4_000, 16_000);
        }
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_train_of_half_a_round_trip_ends_slow_start() {
        let mut hystart = HyStart::default();
        hystart.reset(0, 100);
        let ended = (1..100).find(|ms| hystart.on_ack(ms * 1_000, 40_000, 40_000, 20, (1, 100)));
        assert_eq!(ended, Some(21), "(40 + 1) / 2 ms");
    }

    /// Regression: over 12 Mbit/s, where the acknowledgements of two segments each are 2 ms apart, every train was found.
    #[test]
    fn acknowledgements_that_are_2_ms_apart_are_no_train() {
        let mut hystart = HyStart::default();
        hystart.reset(0, 100);
        let mut acks = (1..100).map(|n| hystart.on_ack(n * 2_000, 40_000, 40_000, 20, (1, 100)));
        assert!(!acks.any(|ends| ends));
    }

    #[test]
    fn a_standing_queue_ends_slow_start_after_eight_samples() {
        let mut hystart = HyStart::default();
        hystart.reset(0, 100);
        // 5 ms apart: no train. 6 ms of queue on 40: more than an eighth.
        let ended = (1..100).find(|n| hystart.on_ack(n * 5_000, 46_000, 40_000, 20, (1, 100)));
        assert_eq!(ended, Some(9));
    }

    #[test]
    fn a_small_window_does_not_end_slow_start() {
        let mut hystart = HyStart::default();
        hystart.reset(0, 100);
        assert!((1..100).all(|ms| !hystart.on_ack(ms * 1_000, 90_000, 40_000, 15, (1, 100))));
    }
}
