//! The measured figures of a claim, with their intervals.

use serde::Serialize;

use crate::stats::Estimate;

/// The unit of a figure.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Percent.
    Percent,
    /// A ratio.
    Ratio,
    /// Milliseconds.
    Milliseconds,
    /// Round trips.
    RoundTrips,
    /// TCP connections.
    Connections,
    /// A number of items, which the claim names.
    Count,
    /// Thousands of bytes.
    Kilobytes,
}

impl Unit {
    /// Formats `value` with its significant digits and the unit.
    #[must_use]
    pub fn format(self, value: f64) -> String {
        // A value that rounds to zero has no sign.
        let digits = if self == Self::Ratio { 2 } else { 1 };
        let value = if value.abs() < 0.5 * 0.1_f64.powi(digits) {
            0.0
        } else {
            value
        };
        match self {
            Self::Percent => format!("{value:.1} %"),
            Self::Ratio => format!("{value:.2}"),
            Self::Milliseconds => format!("{value:.0} ms"),
            Self::RoundTrips => format!("{value:.1} round trips"),
            Self::Connections => format!("{value:.1} connections"),
            Self::Count => format!("{value:.1}"),
            Self::Kilobytes => format!("{value:.0} kB"),
        }
    }
}

/// A figure at a level.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Point {
    /// The level; empty if there is only one.
    pub level: String,
    /// The figure, with its 95 % interval by resampling of pages, or of runs if there is one page.
    pub estimate: Estimate,
}

/// The measured result of a claim.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuredResult {
    /// One figure for each level, at least one.
    pub points: Vec<Point>,
    /// Last figure minus the first, if there are several; pages are resampled together for both.
    pub rise: Option<Estimate>,
    /// Number of loads.
    pub loads: usize,
    /// Pairs of loads that were omitted, because one of them was incomplete.
    pub left_out: usize,
}

impl MeasuredResult {
    /// The figure that represents the result: the last.
    #[must_use]
    pub fn headline(&self) -> f64 {
        self.points
            .last()
            .map_or(f64::NAN, |point| point.estimate.value)
    }

    /// The figures in words.
    #[must_use]
    pub fn describe(&self, unit: Unit) -> String {
        let point = |point: &Point| unit.format(point.estimate.value);
        self.points.iter().map(point).collect::<Vec<_>>().join(", ")
    }

    /// The intervals in words; `exact` if a figure has no randomness.
    #[must_use]
    pub fn intervals(&self, unit: Unit) -> String {
        let one = |estimate: &Estimate| {
            if estimate.low == estimate.high {
                "exact".to_owned()
            } else {
                format!(
                    "{} to {}",
                    unit.format(estimate.low),
                    unit.format(estimate.high)
                )
            }
        };
        match (&self.points[..], &self.rise) {
            ([point], _) => one(&point.estimate),
            (_, Some(rise)) => format!("last minus first {}", one(rise)),
            (points, None) => one(&points[points.len() - 1].estimate),
        }
    }
}
