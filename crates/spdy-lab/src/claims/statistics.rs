//! The figures of loads in pairs, and the statistics of claims.

use spdy_sim::load::Load;

use crate::claims::measured::{MeasuredResult, Point};
use crate::stats::{Bootstrap, Estimate};

/// The figures of a load that claims use; of several loads the means.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    pub(crate) load_ms: f64,
    pub(crate) dom_content_loaded_ms: f64,
    pub(crate) time_on_wire_ms: f64,
    pub(crate) connections: f64,
    pub(crate) packets: f64,
    pub(crate) bytes: f64,
    pub(crate) bytes_up: f64,
    pub(crate) bytes_down: f64,
}

impl Figures {
    pub(crate) fn of(load: &Load) -> Self {
        Self {
            load_ms: load.load_ms,
            dom_content_loaded_ms: load.dom_content_loaded_ms,
            time_on_wire_ms: load.time_on_wire_ms,
            connections: load.connections as f64,
            packets: (load.packets_up + load.packets_down) as f64,
            bytes: (load.bytes_up + load.bytes_down) as f64,
            bytes_up: load.bytes_up as f64,
            bytes_down: load.bytes_down as f64,
        }
    }

    /// The same with the time of the browser itself.
    pub(crate) fn with_browser(self, browser_ms: f64) -> Self {
        Self {
            load_ms: self.load_ms + browser_ms,
            dom_content_loaded_ms: self.dom_content_loaded_ms + browser_ms,
            time_on_wire_ms: self.time_on_wire_ms + browser_ms,
            ..self
        }
    }

    pub(crate) fn mean(all: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        Self {
            load_ms: mean(|it| it.load_ms),
            dom_content_loaded_ms: mean(|it| it.dom_content_loaded_ms),
            time_on_wire_ms: mean(|it| it.time_on_wire_ms),
            connections: mean(|it| it.connections),
            packets: mean(|it| it.packets),
            bytes: mean(|it| it.bytes),
            bytes_up: mean(|it| it.bytes_up),
            bytes_down: mean(|it| it.bytes_down),
        }
    }
}

/// Both sides of one page, or of one run of the only page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FigurePair {
    pub(crate) base: Figures,
    pub(crate) other: Figures,
}

/// Pairs for each setting; the same page or run has the same index in each.
pub(crate) struct PairedLoads {
    pub(crate) rows: Vec<Vec<FigurePair>>,
    pub(crate) loads: usize,
    pub(crate) left_out: usize,
}

impl PairedLoads {
    /// Returns `statistic` of each row, with intervals by resampling pages (or runs).
    ///
    /// # Errors
    ///
    /// No page is complete on both sides, or there is no figure.
    pub(crate) fn measured(
        &self,
        levels: Vec<String>,
        statistic: impl Fn(&[FigurePair]) -> f64,
    ) -> Result<MeasuredResult, String> {
        let places: Vec<usize> = (0..self.rows[0].len()).collect();
        let at = |row: &[FigurePair], places: &[usize]| {
            let drawn: Vec<FigurePair> = places.iter().map(|&place| row[place]).collect();
            statistic(&drawn)
        };
        let nothing = || format!("none of {} loads is complete", self.loads);
        let mut points = Vec::new();
        for (level, row) in levels.into_iter().zip(&self.rows) {
            let estimate = Bootstrap::default().of(&places, |drawn| at(row, drawn));
            points.push(Point {
                level,
                estimate: estimate.ok_or_else(nothing)?,
            });
        }
        let rise = match &self.rows[..] {
            [first, .., last] => {
                Bootstrap::default().of(&places, |drawn| at(last, drawn) - at(first, drawn))
            }
            _ => None,
        };
        Ok(self.to_measured(points, rise))
    }

    /// Returns a figure for each of two groups of rows with one pair each. Their intervals, and that of their difference, are by
    /// resampling rows in each group.
    ///
    /// # Errors
    ///
    /// Like [`measured`](Self::measured).
    pub(crate) fn of_groups(
        &self,
        [low, high]: [(&str, &[usize]); 2],
        statistic: impl Fn(&[FigurePair]) -> f64,
    ) -> Result<MeasuredResult, String> {
        let group = |rows: &[usize]| -> Vec<FigurePair> {
            let rows = rows.iter().map(|&row| &self.rows[row]);
            rows.filter_map(|row| row.first().copied()).collect()
        };
        let nothing = || format!("none of {} loads is complete", self.loads);
        let (first, last) = (group(low.1), group(high.1));
        let point = |level: &str, pairs: &[FigurePair]| {
            let estimate = Bootstrap::default().of(pairs, &statistic);
            let level = level.to_owned();
            estimate.map(|estimate| Point { level, estimate })
        };
        let points = [point(low.0, &first), point(high.0, &last)];
        let points = points.into_iter().collect::<Option<Vec<_>>>();
        let rise = Bootstrap::default().of_two((&first, &last), |first, last| {
            statistic(last) - statistic(first)
        });
        Ok(self.to_measured(points.ok_or_else(nothing)?, rise))
    }

    /// Returns one figure of all rows with one pair each, with an interval by resampling rows.
    ///
    /// # Errors
    ///
    /// Like [`measured`](Self::measured).
    pub(crate) fn over_rows(
        &self,
        statistic: impl Fn(&[FigurePair]) -> f64,
    ) -> Result<MeasuredResult, String> {
        let firsts: Vec<FigurePair> = self
            .rows
            .iter()
            .filter_map(|row| row.first().copied())
            .collect();
        let estimate = Bootstrap::default().of(&firsts, statistic);
        let estimate =
            estimate.ok_or_else(|| format!("none of {} loads is complete", self.loads))?;
        let level = String::new();
        Ok(self.to_measured(vec![Point { level, estimate }], None))
    }

    /// Returns one figure without an interval.
    pub(crate) fn exactly(&self, value: f64) -> MeasuredResult {
        let level = String::new();
        let estimate = Estimate::exact(value);
        self.to_measured(vec![Point { level, estimate }], None)
    }

    fn to_measured(&self, points: Vec<Point>, rise: Option<Estimate>) -> MeasuredResult {
        MeasuredResult {
            points,
            rise,
            loads: self.loads,
            left_out: self.left_out,
        }
    }
}

/// Saving of the other side in the sum of `figure`, percent, as in comparisons of means over pages.
pub(crate) fn saving(pairs: &[FigurePair], figure: fn(&Figures) -> f64) -> f64 {
    100.0 * (1.0 - ratio(pairs, figure))
}

/// Ratio of the sums of `figure`, other side over base.
pub(crate) fn ratio(pairs: &[FigurePair], figure: fn(&Figures) -> f64) -> f64 {
    let sum =
        |of: fn(&FigurePair) -> &Figures| pairs.iter().map(|pair| figure(of(pair))).sum::<f64>();
    sum(|pair| &pair.other) / sum(|pair| &pair.base)
}

/// Increase of the sum of `figure` from the base to the other side, percent.
pub(crate) fn change(pairs: &[FigurePair], figure: fn(&Figures) -> f64) -> f64 {
    100.0 * (ratio(pairs, figure) - 1.0)
}

/// Geometric mean of the ratios of load times.
pub(crate) fn geometric_mean(pairs: &[FigurePair]) -> f64 {
    geometric_mean_of(pairs, |it| it.load_ms)
}

/// Geometric mean of the ratios of `figure`.
pub(crate) fn geometric_mean_of(pairs: &[FigurePair], figure: fn(&Figures) -> f64) -> f64 {
    let logs = pairs
        .iter()
        .map(|pair| (figure(&pair.other) / figure(&pair.base)).ln());
    (logs.sum::<f64>() / pairs.len() as f64).exp()
}
