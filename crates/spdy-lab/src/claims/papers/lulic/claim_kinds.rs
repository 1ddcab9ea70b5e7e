//! The most frequent kinds of claims of Lulic's paper.

use super::grid::wins;
use super::setting::{FACTORS, FLAGS};
use crate::claims::claim::{Claim, ClaimedResult, MeasureFn, Paper, Test, Trend};
use crate::claims::measured::Unit;
use crate::claims::setting::{PageSet, Setting};

const WINS: &str = "as for its ratio; the tolerance of a twentieth of the cells is an assumption";
const TREND: &str =
    "geometric means of the cells of the lowest and of the highest level, as for its ratio";

/// A claim of a ratio over the grid.
pub(super) const fn ratio(
    (name, what): (&'static str, &'static str),
    (value, within): (f64, f64),
    conditions: &'static str,
    pages: PageSet,
    setting: fn() -> Setting,
    measure: MeasureFn,
) -> Claim {
    Claim {
        paper: Paper::Lulic,
        name,
        what,
        conditions,
        unit: Unit::Ratio,
        expected: ClaimedResult::Number {
            value,
            within,
            neutral: Some(1.0),
        },
        test: Test::Run {
            pages,
            setting,
            measure,
            factors: FACTORS,
        },
    }
}

/// A claim on the number of round trips of the flags page, with a tolerance of one.
pub(super) const fn trips(
    (name, what): (&'static str, &'static str),
    value: f64,
    conditions: &'static str,
    (setting, measure): (fn() -> Setting, MeasureFn),
) -> Claim {
    Claim {
        paper: Paper::Lulic,
        name,
        what,
        conditions,
        unit: Unit::RoundTrips,
        expected: ClaimedResult::Number {
            value,
            within: 1.0,
            neutral: None,
        },
        test: Test::Run {
            pages: FLAGS,
            setting,
            measure,
            factors: FACTORS,
        },
    }
}

/// A claim on the number of the 42 cells that SPDY wins.
pub(super) const fn wins_claim(
    (name, what): (&'static str, &'static str),
    cells: u32,
    pages: PageSet,
    setting: fn() -> Setting,
) -> Claim {
    Claim {
        paper: Paper::Lulic,
        name,
        what,
        conditions: WINS,
        unit: Unit::Percent,
        expected: ClaimedResult::Number {
            value: 100.0 * cells as f64 / 42.0,
            within: 5.0,
            neutral: Some(50.0),
        },
        test: Test::Run {
            pages,
            setting,
            measure: wins,
            factors: &[],
        },
    }
}

/// A claim on the direction of the ratio.
pub(super) const fn trend(
    (name, what): (&'static str, &'static str),
    values: &'static [f64],
    trend: Trend,
    pages: PageSet,
    (setting, measure): (fn() -> Setting, MeasureFn),
) -> Claim {
    Claim {
        paper: Paper::Lulic,
        name,
        what,
        conditions: TREND,
        unit: Unit::Ratio,
        expected: ClaimedResult::Series {
            values,
            within: 0.05,
            trend,
        },
        test: Test::Run {
            pages,
            setting,
            measure,
            factors: &[],
        },
    }
}
