//! Size of a difference without a unit: Cliff's delta.

use serde::Serialize;

/// Frequency of pairs in which a run of the second group is above one of the first, minus that of pairs in which it is below: 1 if
/// always above, -1 if always below, 0 if equal.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Effect(f64);

/// The usual names of magnitudes (Romano and others, 2006).
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Magnitude {
    /// Under 0.147.
    Negligible,
    /// Under 0.33.
    Small,
    /// Under 0.474.
    Medium,
    /// Anything above.
    Large,
}

impl Effect {
    /// Compares `b` with `a`; `None` if one is empty.
    #[must_use]
    pub fn of(a: &[f64], b: &[f64]) -> Option<Self> {
        if a.is_empty() || b.is_empty() {
            return None;
        }
        let sign = |from: f64, to: f64| match to.total_cmp(&from) {
            std::cmp::Ordering::Less => -1.0,
            std::cmp::Ordering::Equal => 0.0,
            std::cmp::Ordering::Greater => 1.0,
        };
        let sum: f64 = a
            .iter()
            .map(|from| b.iter().map(|to| sign(*from, *to)).sum::<f64>())
            .sum();
        Some(Self(sum / (a.len() * b.len()) as f64))
    }

    /// From -1 to 1.
    #[must_use]
    pub const fn delta(self) -> f64 {
        self.0
    }

    /// Its magnitude by name.
    #[must_use]
    pub fn magnitude(self) -> Magnitude {
        match self.0.abs() {
            delta if delta < 0.147 => Magnitude::Negligible,
            delta if delta < 0.33 => Magnitude::Small,
            delta if delta < 0.474 => Magnitude::Medium,
            _ => Magnitude::Large,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delta_is_one_above_minus_one_below_and_zero_if_equal() {
        let delta = |a: &[f64], b: &[f64]| Effect::of(a, b).unwrap().delta();
        assert_eq!(delta(&[1.0, 2.0], &[3.0, 4.0]), 1.0);
        assert_eq!(delta(&[3.0, 4.0], &[1.0, 2.0]), -1.0);
        assert_eq!(delta(&[1.0, 2.0], &[1.0, 2.0]), 0.0);
        // Of four pairs one is below, one is equal, and two are above.
        assert_eq!(delta(&[1.0, 3.0], &[2.0, 3.0]), 0.25);
        assert_eq!(Effect::of(&[], &[1.0]), None);
    }

    #[test]
    fn sizes_have_names() {
        let magnitude = |delta| Effect(delta).magnitude();
        assert_eq!(magnitude(0.146), Magnitude::Negligible);
        assert_eq!(magnitude(-0.147), Magnitude::Small);
        assert_eq!(magnitude(0.33), Magnitude::Medium);
        assert_eq!(magnitude(-0.474), Magnitude::Large);
    }
}
