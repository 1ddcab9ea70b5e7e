//! Compares two cells: less, more, the same within a margin, or undecided.
//!
//! "No difference was found" and "any difference is within the margin" are two results: the second is a separate test (two one-sided
//! tests at 5 %, which is a 90 % interval within the margin).
//!
//! An interval of few runs is too narrow, so with fewer than [`MIN_RUNS`] the result is undecided, unless the loads have no
//! randomness, so that one run is enough, or nothing has changed.
//!
//! ```text
//!        1-m      1      1+m
//!  ───────┼───────┼───────┼──────►  ratio of times, b to a
//!   ├───┤ │       │       │         less          95 % interval below 1, not all within the margin
//!         │   ├───┼──┤    │         same          90 % interval within the margin
//!         │     ├─┼───────┼───┤     undecided     more runs may decide
//!         │       │  ├────┼──┤      more
//! ```

use serde::Serialize;

use super::bootstrap::{Bootstrap, Estimate};
use super::effect::Effect;
use super::median::median;

/// Minimum runs of a cell for a decision, if there is randomness.
pub const MIN_RUNS: usize = 6;

/// Direction of a difference between two cells.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Difference {
    /// The second takes less.
    Less,
    /// The second takes more.
    More,
    /// Any difference is within the margin.
    Same,
    /// The runs do not decide it.
    Undecided,
}

/// Comparison of the second of two cells with the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Ratio of the second's time to the first's, with its 95 % interval: the median of the ratios of runs with the same seed if runs
    /// are paired, else the ratio of the medians.
    pub ratio: Estimate,
    /// How often the second takes more: 1 is always, -1 is never, 0 is as often as less (Cliff's delta).
    pub effect: Effect,
    /// The result of the comparison.
    pub difference: Difference,
}

impl Comparison {
    /// Compares paired runs, one of each cell with the same random numbers: `(first, second)`. `margin` is the part of the first that
    /// does not matter; `exact` is set without randomness. `None` if there is no run, or a first that took no time.
    #[must_use]
    pub fn of_pairs(pairs: &[(f64, f64)], margin: f64, exact: bool) -> Option<Self> {
        let ratios: Vec<f64> = pairs.iter().map(|(a, b)| b / a).collect();
        let middle = |ratios: &[f64]| median(ratios.iter().copied()).unwrap_or(f64::NAN);
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        Self::of((&a, &b), margin, exact, |bootstrap| {
            bootstrap.of(&ratios, middle)
        })
    }

    /// Compares independent runs.
    #[must_use]
    pub fn of_groups(a: &[f64], b: &[f64], margin: f64) -> Option<Self> {
        let middle = |values: &[f64]| median(values.iter().copied()).unwrap_or(f64::NAN);
        let ratio = |a: &[f64], b: &[f64]| middle(b) / middle(a);
        Self::of((a, b), margin, false, |bootstrap| {
            bootstrap.of_two((a, b), ratio)
        })
    }

    fn of(
        (a, b): (&[f64], &[f64]),
        margin: f64,
        exact: bool,
        estimate: impl Fn(Bootstrap) -> Option<Estimate>,
    ) -> Option<Self> {
        let ratio = estimate(Bootstrap::default())?;
        let narrower = estimate(Bootstrap {
            level: 0.9,
            ..Bootstrap::default()
        })?;
        let within = narrower.low >= 1.0 - margin && narrower.high <= 1.0 + margin;
        let can_decide = exact || a == b || a.len().min(b.len()) >= MIN_RUNS;
        let difference = match (within, ratio.contains(1.0)) {
            _ if !can_decide => Difference::Undecided,
            (true, _) => Difference::Same,
            (false, true) => Difference::Undecided,
            (false, false) if ratio.high < 1.0 => Difference::Less,
            (false, false) => Difference::More,
        };
        Some(Self {
            ratio,
            effect: Effect::of(a, b)?,
            difference,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(pairs: &[(f64, f64)]) -> Difference {
        Comparison::of_pairs(pairs, 0.01, false).unwrap().difference
    }

    #[test]
    fn exact_times_need_one_run() {
        let exact = |pair| {
            let comparison = Comparison::of_pairs(&[pair], 0.01, true);
            comparison.map(|comparison| comparison.difference)
        };
        assert_eq!(exact((100.0, 102.0)), Some(Difference::More));
        assert_eq!(exact((100.0, 98.0)), Some(Difference::Less));
        assert_eq!(exact((100.0, 100.9)), Some(Difference::Same));
        assert_eq!(exact((0.0, 1.0)), None);
        assert_eq!(Comparison::of_pairs(&[], 0.01, true), None);
    }

    #[test]
    fn noise_without_a_direction_is_undecided_and_small_noise_is_the_same() {
        let noisy = [130.0, 75.0, 110.0, 92.0, 120.0, 81.0].map(|after| (100.0, after));
        assert_eq!(difference(&noisy), Difference::Undecided);
        let small = [100.3, 99.8, 100.1, 99.9, 100.2, 99.7].map(|after| (100.0, after));
        assert_eq!(difference(&small), Difference::Same);
    }

    /// For two cells of the same kind about 5 % may be reported as different, and a few more with the fewest runs.
    #[test]
    fn randomness_is_rarely_reported_as_a_difference() {
        use rand::{RngExt, SeedableRng};
        for runs in [1, 2, 3, 5, 6, 7, 15] {
            let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(runs as u64);
            let mut time = || 100.0 + 40.0 * chance.random::<f64>();
            let differ = (0..100).filter(|_| {
                let pairs: Vec<_> = (0..runs).map(|_| (time(), time())).collect();
                matches!(difference(&pairs), Difference::More | Difference::Less)
            });
            let (differ, at_most) = (differ.count(), if runs < 6 { 0 } else { 18 });
            assert!(differ <= at_most, "{differ} of 100 with {runs} runs");
        }
    }

    #[test]
    fn paired_runs_reveal_differences_that_groups_hide() {
        // Runs differ a lot, and the two of each pair by a constant tenth.
        let pairs: Vec<(f64, f64)> = [100.0, 180.0, 320.0, 90.0, 250.0, 130.0, 400.0]
            .map(|time| (time, time * 1.1))
            .to_vec();
        let paired = Comparison::of_pairs(&pairs, 0.01, false).unwrap();
        assert_eq!(paired.difference, Difference::More);
        assert!((paired.ratio.value - 1.1).abs() < 1e-12);
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let grouped = Comparison::of_groups(&a, &b, 0.01).unwrap();
        assert_eq!(grouped.difference, Difference::Undecided);
    }
}
