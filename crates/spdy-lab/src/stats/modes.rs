//! Two modes: a timer that fired in some runs only, or a script that arrived in time in some runs only.

use serde::Serialize;

/// Runs with two modes, of which a median shows one and hides the other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Modes {
    /// Mean of the lower mode, in the unit of the compared value.
    pub low: f64,
    /// Mean of the upper mode, in the unit of the compared value.
    pub high: f64,
    /// Share of the runs in the upper mode, 0 to 1.
    pub high_part: f64,
}

impl Modes {
    /// Minimum runs of a mode: a single one is an outlier.
    const LEAST: usize = 2;
    /// Minimum distance of the modes in their own widths (Ashman's D). Both halves of a uniform distribution are 3.5 apart.
    const APART: f64 = 5.0;
    /// Minimum gap between the modes over the largest one within a mode.
    const GAP: f64 = 4.0;
    /// Minimum relevant distance of the modes, as a part of the lower one.
    const MATTERS: f64 = 0.05;

    /// The two modes of `values`; `None` if there is one, or too few values (under four).
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        // Divides them so that the modes are as narrow as possible.
        let cuts = Self::LEAST..=values.len().checked_sub(Self::LEAST)?;
        let spread_at = |cut: &usize| {
            let (low, high) = values.split_at(*cut);
            Cluster::of(low).squares + Cluster::of(high).squares
        };
        let cut = cuts.min_by(|a, b| spread_at(a).total_cmp(&spread_at(b)))?;
        let (low, high) = values.split_at(cut);
        let gap = high[0] - low[low.len() - 1];
        let widest = widest_gap(low).max(widest_gap(high));
        let (low, high) = (Cluster::of(low), Cluster::of(high));
        let distance = high.mean - low.mean;
        let width = ((low.variance() + high.variance()) / 2.0).sqrt();
        let apart = distance > Self::APART * width
            && gap > Self::GAP * widest
            && distance > Self::MATTERS * low.mean;
        apart.then(|| Self {
            low: low.mean,
            high: high.mean,
            high_part: high.count / (low.count + high.count),
        })
    }
}

/// The widest gap between neighbours of `sorted`.
fn widest_gap(sorted: &[f64]) -> f64 {
    let gaps = sorted.windows(2).map(|pair| pair[1] - pair[0]);
    gaps.fold(0.0, f64::max)
}

struct Cluster {
    count: f64,
    mean: f64,
    /// Sum of squares about the mean.
    squares: f64,
}

impl Cluster {
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self {
            count,
            mean,
            squares,
        }
    }

    fn variance(&self) -> f64 {
        self.squares / (self.count - 1.0).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn two_modes_are_detected_and_one_is_not() {
        let modes = Modes::of(&[3.4, 5.4, 3.5, 3.3, 5.5, 3.4, 5.3]).unwrap();
        assert!((modes.low - 3.4).abs() < 1e-9 && (modes.high - 5.4).abs() < 1e-9);
        assert!((modes.high_part - 3.0 / 7.0).abs() < 1e-9);
        assert_eq!(Modes::of(&[3.1, 3.2, 3.3, 3.4, 3.5, 3.6, 3.7]), None);
        assert_eq!(Modes::of(&[2.0; 9]), None);
    }

    /// One mode is rarely reported as two, for 1000 samples of a normal distribution.
    #[test]
    fn one_mode_is_rarely_reported_as_two() {
        for (runs, at_most) in [(5, 30), (7, 20), (15, 3), (30, 1)] {
            let mut chance = ChaCha8Rng::seed_from_u64(runs);
            let mut normal = || {
                let sum: f64 = (0..12).map(|_| chance.random::<f64>()).sum();
                100.0 + 20.0 * (sum - 6.0)
            };
            let twos = (0..1000).filter(|_| {
                let sample: Vec<f64> = (0..runs).map(|_| normal()).collect();
                Modes::of(&sample).is_some()
            });
            let twos = twos.count();
            assert!(twos <= at_most, "{twos} of 1000 samples of {runs}");
        }
    }

    #[test]
    fn a_single_outlier_and_few_runs_make_no_modes() {
        assert_eq!(Modes::of(&[1.0, 1.0, 1.1, 1.2, 1.1, 9.0]), None);
        assert_eq!(Modes::of(&[1.0, 9.0]), None);
        assert_eq!(Modes::of(&[]), None);
    }

    #[test]
    fn close_modes_are_not_reported() {
        assert_eq!(Modes::of(&[100.0, 100.0, 101.0, 101.0]), None);
        assert!(Modes::of(&[100.0, 100.0, 110.0, 110.0]).is_some());
    }
}
