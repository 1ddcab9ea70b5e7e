//! Verdicts from claimed and measured results.

use std::fmt;
use std::ops::RangeInclusive;

use serde::Serialize;

use crate::claims::claim::{BoundSide, ClaimedResult};
use crate::claims::measured::MeasuredResult;
use crate::claims::setting::PageSet;
use crate::stats::Estimate;

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval is within the claim's tolerance.
    Reproduced,
    /// The whole interval has the right sign; the size differs from the claim, or may differ.
    DirectionOnly,
    /// The interval includes both sides: more pages or runs may decide it.
    Undecided,
    /// The opposite; or, for a claim without a direction, another number.
    Contradicted,
    /// The result agrees, but parameters were fitted to the data that it is compared with.
    Fitted,
    /// It was measured with an invented page, which neither confirms nor contradicts the claim.
    StandIn,
    /// It was not tested.
    CannotBeRun,
}

impl Verdict {
    /// All verdicts, in the order of summaries.
    pub const ALL: [Self; 7] = [
        Self::Reproduced,
        Self::DirectionOnly,
        Self::Undecided,
        Self::Contradicted,
        Self::Fitted,
        Self::StandIn,
        Self::CannotBeRun,
    ];

    /// In words.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::DirectionOnly => "direction only",
            Self::Undecided => "undecided",
            Self::Contradicted => "contradicted",
            Self::Fitted => "fitted",
            Self::StandIn => "stand-in",
            Self::CannotBeRun => "cannot be run",
        }
    }

    /// The meaning, for readers of a report.
    #[must_use]
    pub const fn explanation(self) -> &'static str {
        match self {
            Self::Reproduced => "the whole interval is within the claim's tolerance",
            Self::DirectionOnly => {
                "the whole interval has the right sign; the size differs from the claim, or may differ"
            }
            Self::Undecided => "the interval includes both sides: more pages or runs may decide it",
            Self::Contradicted => {
                "the opposite; or, for a claim without a direction, another number"
            }
            Self::Fitted => {
                "the result agrees, but its parameters were fitted to the data of the claim: no evidence"
            }
            Self::StandIn => {
                "measured with an invented page, which neither confirms nor contradicts the claim"
            }
            Self::CannotBeRun => "it was not tested, for the stated reason",
        }
    }

    /// The verdict if the result was measured with `pages`: a match with fitted parameters is no evidence, and no result with an
    /// invented page is.
    pub(crate) const fn with_pages(self, pages: &PageSet) -> Self {
        match (pages, self) {
            (PageSet::Fitted(_), Self::Reproduced | Self::DirectionOnly) => Self::Fitted,
            (PageSet::StandIn(_), _) => Self::StandIn,
            _ => self,
        }
    }

    /// Compares `measured` with `expected`.
    ///
    /// # Panics
    ///
    /// If there is no figure, or not one for each claimed value.
    #[must_use]
    pub fn of(expected: &ClaimedResult, measured: &MeasuredResult) -> Self {
        let first = measured.points.first();
        let first = first.expect("a measurement has a figure").estimate;
        match expected {
            ClaimedResult::Number {
                value,
                within,
                neutral,
            } => {
                let same = value - within..=value + within;
                match neutral {
                    _ if inside(&first, &same) => Self::Reproduced,
                    Some(neutral) => verdict_on_side(&shifted(&first, *neutral), value - neutral),
                    None if first.low <= *same.end() && first.high >= *same.start() => {
                        Self::Undecided
                    }
                    None => Self::Contradicted,
                }
            }
            ClaimedResult::Between { low, high, neutral } => {
                if inside(&first, &(*low..=*high)) {
                    return Self::Reproduced;
                }
                verdict_on_side(&shifted(&first, *neutral), low - neutral)
            }
            ClaimedResult::Beyond { side: way, bound } => {
                let sign = match way {
                    BoundSide::Above => 1.0,
                    BoundSide::Below => -1.0,
                };
                match verdict_on_side(&shifted(&first, *bound), sign) {
                    Self::DirectionOnly => Self::Reproduced,
                    other => other,
                }
            }
            ClaimedResult::Series {
                values,
                within,
                trend,
            } => {
                assert_eq!(
                    values.len(),
                    measured.points.len(),
                    "a figure for each value"
                );
                let mut each = values.iter().zip(&measured.points);
                if each.all(|(value, point)| {
                    inside(&point.estimate, &(value - within..=value + within))
                }) {
                    return Self::Reproduced;
                }
                let rise = measured.rise.expect("a row of figures rises or falls");
                verdict_on_side(&rise, trend.along(1.0))
            }
            ClaimedResult::Monotone { trend, slack } => {
                let rise = measured.rise.expect("a row of figures rises or falls");
                let mut steps = measured
                    .points
                    .windows(2)
                    .map(|pair| trend.along(pair[1].estimate.value - pair[0].estimate.value));
                let all = steps.all(|step| step >= -slack);
                match verdict_on_side(&rise, trend.along(1.0)) {
                    Self::DirectionOnly if all => Self::Reproduced,
                    other => other,
                }
            }
            ClaimedResult::Least { level } => {
                let (claimed, others): (Vec<_>, Vec<_>) = measured
                    .points
                    .iter()
                    .partition(|point| point.level == *level);
                let [claimed] = claimed[..] else {
                    panic!("expected {level} once among the measured levels: {measured:?}");
                };
                let others = || others.iter().map(|point| point.estimate);
                if others().all(|other| claimed.estimate.high < other.low) {
                    Self::Reproduced
                } else if others().any(|other| other.high < claimed.estimate.low) {
                    Self::Contradicted
                } else {
                    Self::Undecided
                }
            }
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// True if the whole interval of `estimate` is in `range`.
fn inside(estimate: &Estimate, range: &RangeInclusive<f64>) -> bool {
    range.contains(&estimate.low) && range.contains(&estimate.high)
}

fn shifted(estimate: &Estimate, by: f64) -> Estimate {
    Estimate {
        value: estimate.value - by,
        low: estimate.low - by,
        high: estimate.high - by,
    }
}

/// The verdict by the side of 0 that has the whole interval of `estimate`, compared with the side of `claimed`.
fn verdict_on_side(estimate: &Estimate, claimed: f64) -> Verdict {
    if estimate.contains(0.0) {
        Verdict::Undecided
    } else if (estimate.low > 0.0) == (claimed > 0.0) {
        Verdict::DirectionOnly
    } else {
        Verdict::Contradicted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::claim::Trend;
    use crate::claims::measured::Point;

    fn measured(points: &[(f64, f64, f64)]) -> MeasuredResult {
        let estimate = |&(low, value, high): &(f64, f64, f64)| Estimate { value, low, high };
        let points: Vec<_> = points.iter().map(estimate).collect();
        let rise = (points.len() > 1).then(|| {
            let (first, last) = (&points[0], &points[points.len() - 1]);
            Estimate {
                value: last.value - first.value,
                low: last.low - first.high,
                high: last.high - first.low,
            }
        });
        let point = |(at, estimate)| Point {
            level: format!("{at}"),
            estimate,
        };
        MeasuredResult {
            points: points.into_iter().enumerate().map(point).collect(),
            rise,
            loads: 1,
            left_out: 0,
        }
    }

    #[test]
    fn fitted_matches_and_results_of_stand_ins_are_no_evidence() {
        let fitted = PageSet::Fitted(Vec::new);
        let stand_in = PageSet::StandIn(Vec::new);
        let own = PageSet::Pages(Vec::new);
        for verdict in Verdict::ALL {
            assert_eq!(verdict.with_pages(&own), verdict);
            assert_eq!(verdict.with_pages(&stand_in), Verdict::StandIn);
        }
        assert_eq!(Verdict::Reproduced.with_pages(&fitted), Verdict::Fitted);
        assert_eq!(Verdict::DirectionOnly.with_pages(&fitted), Verdict::Fitted);
        let contradicted = Verdict::Contradicted.with_pages(&fitted);
        assert_eq!(contradicted, Verdict::Contradicted);
    }

    #[test]
    fn a_number_is_reproduced_same_direction_contradicted_or_undecided() {
        let gain = ClaimedResult::Number {
            value: 40.0,
            within: 5.0,
            neutral: Some(0.0),
        };
        for (figure, verdict) in [
            ((36.0, 39.0, 44.0), Verdict::Reproduced),
            ((30.0, 36.0, 42.0), Verdict::DirectionOnly),
            ((20.0, 25.0, 30.0), Verdict::DirectionOnly),
            ((-2.0, 39.0, 80.0), Verdict::Undecided),
            ((-2.0, 3.0, 8.0), Verdict::Undecided),
            ((-9.0, -5.0, -1.0), Verdict::Contradicted),
        ] {
            assert_eq!(
                Verdict::of(&gain, &measured(&[figure])),
                verdict,
                "{figure:?}"
            );
        }
        let count = ClaimedResult::Number {
            value: 2.0,
            within: 0.0,
            neutral: None,
        };
        for (figure, verdict) in [
            ((2.0, 2.0, 2.0), Verdict::Reproduced),
            ((1.0, 2.0, 3.0), Verdict::Undecided),
            ((3.0, 3.0, 3.0), Verdict::Contradicted),
        ] {
            assert_eq!(
                Verdict::of(&count, &measured(&[figure])),
                verdict,
                "{figure:?}"
            );
        }
    }

    #[test]
    fn a_range_and_a_bound_are_reproduced_or_contradicted() {
        let range = ClaimedResult::Between {
            low: 45.0,
            high: 1142.0,
            neutral: 0.0,
        };
        assert_eq!(
            Verdict::of(&range, &measured(&[(50.0, 60.0, 70.0)])),
            Verdict::Reproduced
        );
        assert_eq!(
            Verdict::of(&range, &measured(&[(10.0, 20.0, 30.0)])),
            Verdict::DirectionOnly
        );
        assert_eq!(
            Verdict::of(&range, &measured(&[(-40.0, 60.0, 70.0)])),
            Verdict::Undecided
        );
        let worse = ClaimedResult::Beyond {
            side: BoundSide::Above,
            bound: 1.0,
        };
        assert_eq!(
            Verdict::of(&worse, &measured(&[(1.1, 1.2, 1.3)])),
            Verdict::Reproduced
        );
        assert_eq!(
            Verdict::of(&worse, &measured(&[(0.9, 1.2, 1.3)])),
            Verdict::Undecided
        );
        assert_eq!(
            Verdict::of(&worse, &measured(&[(0.7, 0.8, 0.9)])),
            Verdict::Contradicted
        );
    }

    #[test]
    fn a_series_is_judged_by_values_and_then_by_trend() {
        let claimed = ClaimedResult::Series {
            values: &[10.0, 40.0],
            within: 5.0,
            trend: Trend::Rising,
        };
        let of = |first: f64, last: f64| {
            let exact = |value| (value, value, value);
            Verdict::of(&claimed, &measured(&[exact(first), exact(last)]))
        };
        assert_eq!(of(12.0, 36.0), Verdict::Reproduced);
        assert_eq!(
            Verdict::of(
                &claimed,
                &measured(&[(4.0, 12.0, 14.0), (36.0, 40.0, 44.0)])
            ),
            Verdict::DirectionOnly
        );
        assert_eq!(of(12.0, 20.0), Verdict::DirectionOnly);
        assert_eq!(of(12.0, -26.0), Verdict::Contradicted);
    }

    #[test]
    fn a_trend_is_reproduced_if_every_step_has_its_direction() {
        let falls = ClaimedResult::Monotone {
            trend: Trend::Falling,
            slack: 0.01,
        };
        let of = |values: &[f64]| {
            let points: Vec<_> = values.iter().map(|&value| (value, value, value)).collect();
            Verdict::of(&falls, &measured(&points))
        };
        assert_eq!(of(&[1.0, 0.5, 0.505, 0.2]), Verdict::Reproduced);
        assert_eq!(of(&[1.0, 0.5, 0.6, 0.2]), Verdict::DirectionOnly);
        assert_eq!(of(&[1.0, 0.5, 1.2]), Verdict::Contradicted);
    }

    #[test]
    fn the_minimum_is_at_the_claimed_level_or_contradicted() {
        let second = ClaimedResult::Least { level: "1" };
        let of = |points: &[(f64, f64, f64)]| Verdict::of(&second, &measured(points));
        assert_eq!(of(&[(3.0, 3.0, 3.0), (2.0, 2.0, 2.0)]), Verdict::Reproduced);
        assert_eq!(
            of(&[(1.0, 1.0, 1.0), (2.0, 2.0, 2.0)]),
            Verdict::Contradicted
        );
        assert_eq!(of(&[(1.0, 1.5, 2.1), (1.8, 2.0, 2.2)]), Verdict::Undecided);
        assert_eq!(of(&[(1.9, 2.5, 3.0), (1.8, 2.0, 2.2)]), Verdict::Undecided);
    }
}
