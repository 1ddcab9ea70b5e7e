//! CUBIC (RFC 9438), in the fixed point of Linux.
//!
//! ```text
//!  cwnd
//!   |  Wmax - - - - - - - - - ______-------
//!   |    \               __---      |
//!   |     \           _--           |     W(t) = 0.4 (t - K)^3 + Wmax
//!   |      \        _-              |
//!   |   0.7 Wmax  -'                K
//!   +---------------------------------------- t
//! ```
//!
//! The clock has jiffies, and the cubic 1/1024 s; the factor 0.4 is 410/1024. If Reno would be faster (short round trips), CUBIC
//! follows an estimate of Reno's window. The cube root is exact in integers; Linux's own differs from it by at most 0.2 %.

use std::time::Duration;

use spdy_clock::Instant;

use super::hystart::HyStart;
use crate::tcp::jiffies;

/// Multiplicative decrease, of 1024: 0.7.
const BETA: u64 = 717;
/// The cubic's factor, of 1024: 0.4.
const FACTOR: u64 = 410;
/// Reno's growth that matches CUBIC's decrease, times 8: 8 (1 + beta) / (3 (1 - beta)).
const RENO_SCALE: u64 = 8 * (1024 + BETA) / 3 / (1024 - BETA);
/// Time for which a target is reused for an unchanged window, jiffies.
const KEEP_TARGET: u64 = jiffies::PER_SECOND / 32;

#[derive(Clone, Debug, Default)]
pub(crate) struct Cubic {
    hystart: Option<HyStart>,
    /// Acknowledged segments for which the window grows by one.
    count: u32,
    last_max: u32,
    last_cwnd: u32,
    last_update: u64,
    origin: u32,
    /// Time from the start of the epoch to the origin point, 1/1024 s.
    k: u64,
    delay_min_us: Option<u64>,
    /// In jiffies.
    epoch_start: Option<u64>,
    acked: u32,
    /// Reno's window.
    reno_cwnd: u32,
}

impl Cubic {
    pub(crate) fn new(hystart: bool) -> Self {
        Self {
            hystart: hystart.then(HyStart::default),
            ..Self::default()
        }
    }

    /// Data may be sent: the first round of slow start begins.
    pub(crate) fn start(&mut self, now: Instant, nxt: u64) {
        if let Some(hystart) = &mut self.hystart {
            hystart.reset(now.as_micros(), nxt);
        }
    }

    /// A round-trip sample; `true` if HyStart ends slow start.
    pub(crate) fn on_sample(
        &mut self,
        now: Instant,
        sample_us: u64,
        cwnd: u32,
        in_slow_start: bool,
        round: (u64, u64),
    ) -> bool {
        // Directly after a recovery the samples contain its delays.
        if self
            .epoch_start
            .is_some_and(|start| jiffies::at(now) < start + jiffies::PER_SECOND)
        {
            return false;
        }
        let sample_us = sample_us.max(1);
        let least = self
            .delay_min_us
            .map_or(sample_us, |least| least.min(sample_us));
        self.delay_min_us = Some(least);
        match &mut self.hystart {
            Some(hystart) if in_slow_start => {
                hystart.on_ack(now.as_micros(), sample_us, least, cwnd, round)
            }
            _ => false,
        }
    }

    /// The threshold after a loss at window `cwnd`.
    pub(crate) fn reduced_threshold(&mut self, cwnd: u32) -> u32 {
        self.epoch_start = None;
        // Fast convergence: a window below its last maximum leaves capacity to others.
        self.last_max = match cwnd {
            cwnd if cwnd < self.last_max => scale(cwnd, 1024 + BETA, 2048),
            cwnd => cwnd,
        };
        scale(cwnd, BETA, 1024).max(2)
    }

    /// A timeout: resets all estimates.
    pub(crate) fn on_timeout(&mut self, now: Instant, nxt: u64) {
        let hystart = self.hystart.take();
        *self = Self {
            hystart,
            ..Self::default()
        };
        self.start(now, nxt);
    }

    /// Sending resumes with no segment in flight: idle time does not count for the cubic.
    pub(crate) fn on_resume(&mut self, now: Instant, last_sent: Instant) {
        let now = jiffies::at(now);
        if let Some(start) = &mut self.epoch_start {
            *start = (*start + (now - jiffies::at(last_sent))).min(now);
        }
    }

    /// Acknowledged segments for which the window grows by one, after `acked` more at `now`.
    pub(crate) fn count(&mut self, now: Instant, cwnd: u32, acked: u32) -> u32 {
        let now = jiffies::at(now);
        self.acked = self.acked.saturating_add(acked);
        let same_window = self.last_cwnd == cwnd && self.count > 0;
        if same_window && now - self.last_update <= KEEP_TARGET {
            return self.count;
        }
        // The cubic is updated at most once per jiffy, and Reno's estimate with every acknowledgement.
        if self.epoch_start.is_none() || now != self.last_update {
            self.follow_cubic(now, cwnd, acked);
        }
        self.follow_reno(cwnd);
        self.count = self.count.max(2);
        self.count
    }

    /// `now` is in jiffies.
    fn follow_cubic(&mut self, now: u64, cwnd: u32, acked: u32) {
        self.last_cwnd = cwnd;
        self.last_update = now;
        let epoch_start = *self.epoch_start.get_or_insert_with(|| {
            self.acked = acked;
            self.reno_cwnd = cwnd;
            self.k = 0;
            self.origin = cwnd;
            if self.last_max > cwnd {
                let below = u64::from(self.last_max - cwnd);
                // K^3 = below / 0.4 s^3, in (1/1024 s)^3: below * 2^40 / 410.
                self.k = u64::from(cube_root(below * ((1 << 40) / FACTOR)));
                self.origin = self.last_max;
            }
            now
        });
        let delay_min = Duration::from_micros(self.delay_min_us.unwrap_or(0));
        let since = now - epoch_start + jiffies::of(delay_min);
        let t = (since << 10) / jiffies::PER_SECOND;
        let off = t.abs_diff(self.k);
        let cube = (u128::from(off).pow(3) * u128::from(FACTOR)) >> 40;
        let delta = u32::try_from(cube).unwrap_or(u32::MAX);
        let target = if t < self.k {
            self.origin.saturating_sub(delta)
        } else {
            self.origin.saturating_add(delta)
        };
        self.count = match target.checked_sub(cwnd) {
            Some(more) if more > 0 => cwnd / more,
            _ => cwnd.saturating_mul(100),
        };
        if self.last_max == 0 {
            // No loss yet, so there is no cubic: at least 5 % per round trip.
            self.count = self.count.min(20);
        }
    }

    fn follow_reno(&mut self, cwnd: u32) {
        let step = scale(cwnd, RENO_SCALE, 8).max(1);
        let steps = self.acked.saturating_sub(1) / step;
        self.acked -= steps * step;
        self.reno_cwnd = self.reno_cwnd.saturating_add(steps);
        if let Some(ahead) = self.reno_cwnd.checked_sub(cwnd).filter(|ahead| *ahead > 0) {
            self.count = self.count.min(cwnd / ahead);
        }
    }
}

/// `value * times / of`, rounded down.
fn scale(value: u32, times: u64, of: u64) -> u32 {
    u32::try_from(u64::from(value) * times / of).unwrap_or(u32::MAX)
}

/// The largest number whose cube is at most `of`.
fn cube_root(of: u64) -> u32 {
    // Bit by bit from the highest; a cube root of 64 bits has 22.
    (0..22).rev().fold(0u32, |root, bit| {
        let next = root | (1 << bit);
        if u64::from(next)
            .checked_pow(3)
            .is_some_and(|cube| cube <= of)
        {
            next
        } else {
            root
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_roots_are_exact() {
        assert_eq!(cube_root(0), 0);
        assert_eq!(cube_root(26), 2);
        assert_eq!(cube_root(27), 3);
        for root in [1u64, 7, 1_000, 2_097_151] {
            assert_eq!(u64::from(cube_root(root.pow(3))), root);
            assert_eq!(u64::from(cube_root(root.pow(3) - 1)), root - 1);
        }
        assert_eq!(cube_root(u64::MAX), 2_642_245);
    }

    #[test]
    fn a_loss_takes_three_tenths_and_a_second_one_lowers_the_aim() {
        let mut cubic = Cubic::new(false);
        assert_eq!(cubic.reduced_threshold(100), 70);
        assert_eq!(cubic.last_max, 100);
        assert_eq!(cubic.reduced_threshold(70), 49);
        assert_eq!(cubic.last_max, 70 * (1024 + 717) / 2048);
        assert_eq!(
            cubic.reduced_threshold(1),
            2,
            "the window never falls below two segments"
        );
    }

    /// Wmax 100, window 70: K = cbrt(30 / 0.4) = 4.217 s. The window is 10 below Wmax when the cubic
    /// is, cbrt(10 / 0.4) = 2.924 s before K, less the round trip that it looks ahead: 1.19 s.
    #[test]
    fn the_window_climbs_along_the_cubic() {
        let mut cubic = Cubic::new(false);
        let mut cwnd = cubic.reduced_threshold(100);
        cubic.delay_min_us = Some(100_000);
        let (mut credit, mut reached) = (0, None);
        for tick in 0..100u64 {
            let now = Instant::from_millis(1_000 + tick * 100);
            let round = cwnd;
            for _ in 0..round {
                credit += 1;
                if credit >= cubic.count(now, cwnd, 1) {
                    (credit, cwnd) = (0, cwnd + 1);
                }
            }
            if cwnd >= 90 && reached.is_none() {
                reached = Some(tick * 100);
            }
        }
        let reached = reached.expect("the window reaches 90 segments");
        assert!((1_100..=1_300).contains(&reached), "{reached} ms");
        assert!(cwnd > 150, "after K the window must grow again: {cwnd}");
    }
}
