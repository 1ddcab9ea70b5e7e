//! Differences between the two clocks: for each cell, and summarised.
//!
//! Without loss, the median of a cell's valid runs is compared with the one virtual time. With loss, the mean of its runs is compared
//! with the mean over the same seeds.

use serde::Serialize;

use crate::calibrate::download_cell::{ConnectionMode, DownloadCell};
use crate::calibrate::workload::Workload;
use crate::stats::median;

/// Maximum mean error over loss-free single downloads.
pub const MAX_LOSS_FREE_ERROR: f64 = 0.01;
/// Maximum mean error of the mean over lossy downloads.
pub const MAX_LOSSY_ERROR: f64 = 0.08;
/// Ratios this close to 1 favour neither side.
pub const EVEN: f64 = 0.03;

/// A cell, and its times in both clocks.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellResult<S> {
    /// The cell.
    #[serde(flatten)]
    pub subject: S,
    /// Milliseconds in virtual time: one value, or for a lossy cell one for each run in real time.
    pub virtual_ms: Vec<f64>,
    /// Milliseconds of each valid run in real time.
    pub real_ms: Vec<f64>,
    /// Milliseconds for which both ends computed in each of them, if the system reports it. In virtual time only the latency of programs
    /// takes time.
    pub computed_ms: Vec<f64>,
    /// Number of valid runs in real time that were requested.
    pub requested_runs: u32,
    /// Number of invalid runs, which were repeated.
    pub repeated: u32,
    /// Why the last of them was invalid, for a cell with fewer runs than requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete_reason: Option<String>,
}

impl<S: Workload> CellResult<S> {
    /// The time of one clock.
    fn figure(&self, runs: &[f64]) -> Option<f64> {
        if self.subject.is_lossy() {
            (!runs.is_empty()).then(|| mean(runs))
        } else {
            median(runs.iter().copied())
        }
    }

    /// Milliseconds in virtual time.
    #[must_use]
    pub fn virtual_figure(&self) -> Option<f64> {
        self.figure(&self.virtual_ms)
    }

    /// Milliseconds in real time; `None` if no run is valid.
    #[must_use]
    pub fn real_figure(&self) -> Option<f64> {
        self.figure(&self.real_ms)
    }

    /// Virtual over real, less 1.
    #[must_use]
    pub fn error(&self) -> Option<f64> {
        Some(self.virtual_figure()? / self.real_figure()? - 1.0)
    }

    /// A message that it has fewer runs than requested, with the reason; `None` if it has them all.
    #[must_use]
    pub fn missing_runs(&self) -> Option<String> {
        let reason = self.incomplete_reason.as_ref()?;
        let (what, count, requested) = (&self.subject, self.real_ms.len(), self.requested_runs);
        Some(format!(
            "{what}: only {count} of {requested} runs are valid: {reason}"
        ))
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Magnitudes of the errors of several cells.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorStats {
    /// Number of cells.
    pub cells: usize,
    /// Mean magnitude; of all errors here, 0.01 is 1 %.
    pub mean: f64,
    /// Median magnitude.
    pub median: f64,
    /// 90th percentile of the magnitudes.
    pub p90: f64,
    /// Maximum magnitude.
    pub max: f64,
    /// Mean of the errors with their signs; below zero virtual time is too fast.
    pub bias: f64,
}

impl ErrorStats {
    /// Summarises the cells that have an error; `None` if there is none.
    #[must_use]
    pub fn of<'a, S: Workload + 'a>(
        cells: impl IntoIterator<Item = &'a CellResult<S>>,
    ) -> Option<Self> {
        let signed: Vec<f64> = cells.into_iter().filter_map(CellResult::error).collect();
        let mut sizes: Vec<f64> = signed.iter().map(|error| error.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let last = sizes.len().checked_sub(1)?;
        Some(Self {
            cells: sizes.len(),
            mean: mean(&sizes),
            median: median(sizes.iter().copied())?,
            p90: sizes[(sizes.len() * 9).div_ceil(10) - 1],
            max: sizes[last],
            bias: mean(&signed),
        })
    }
}

/// Six connections against one over the same link: time of one connection over time of six.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SixVsOne {
    /// The cell with one connection.
    #[serde(flatten)]
    pub cell: DownloadCell,
    /// The ratio in virtual time.
    pub virtual_ratio: f64,
    /// The ratio in real time.
    pub real_ratio: f64,
}

impl SixVsOne {
    /// True if one connection is faster in both clocks, or six are; or if the ratios differ by at most [`EVEN`].
    #[must_use]
    pub fn agrees(&self) -> bool {
        let (real, ours) = (self.real_ratio, self.virtual_ratio);
        (real < 1.0) == (ours < 1.0) || self.distance() <= EVEN
    }

    /// Difference of the ratios.
    #[must_use]
    pub fn distance(&self) -> f64 {
        (self.real_ratio - self.virtual_ratio).abs()
    }
}

/// Summary of the downloads.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DownloadSummary {
    /// Single downloads without loss.
    pub loss_free: Option<ErrorStats>,
    /// Single downloads with loss.
    pub lossy: Option<ErrorStats>,
    /// Six connections or one, without loss.
    pub several_loss_free: Option<ErrorStats>,
    /// Six connections or one, with loss.
    pub several_lossy: Option<ErrorStats>,
    /// Six connections against one.
    pub pairs: Vec<SixVsOne>,
    /// Number of pairs that agree.
    pub pairs_that_agree: usize,
    /// Cells without a valid run.
    pub unmeasured: usize,
    /// Number of invalid runs.
    pub repeated: u32,
    /// Exceeded limits.
    pub exceeded_limits: Vec<String>,
}

impl DownloadSummary {
    /// Summarises `results`, in any order.
    #[must_use]
    pub fn of(results: &[CellResult<DownloadCell>]) -> Self {
        let errors = |single: bool, lossy: bool| {
            ErrorStats::of(results.iter().filter(|it| {
                (it.subject.manner == ConnectionMode::Single) == single
                    && it.subject.is_lossy() == lossy
            }))
        };
        let pairs = pairs(results);
        let mut summary = Self {
            loss_free: errors(true, false),
            lossy: errors(true, true),
            several_loss_free: errors(false, false),
            several_lossy: errors(false, true),
            pairs_that_agree: pairs.iter().filter(|pair| pair.agrees()).count(),
            pairs,
            unmeasured: results.iter().filter(|it| it.real_ms.is_empty()).count(),
            repeated: results.iter().map(|it| it.repeated).sum(),
            exceeded_limits: Vec::new(),
        };
        summary.exceeded_limits = summary.check_limits();
        let short = results.iter().filter_map(CellResult::missing_runs);
        summary.exceeded_limits.extend(short);
        summary
    }

    fn check_limits(&self) -> Vec<String> {
        let bars = [
            (
                "loss-free single downloads",
                self.loss_free,
                MAX_LOSS_FREE_ERROR,
            ),
            ("lossy single downloads", self.lossy, MAX_LOSSY_ERROR),
        ];
        let past = bars.into_iter().filter_map(|(what, errors, bar)| {
            let mean = errors?.mean;
            (mean > bar).then(|| {
                let (mean, bar) = (mean * 100.0, bar * 100.0);
                format!("{what}: mean error {mean:.2} %, limit {bar} %")
            })
        });
        let mut past: Vec<String> = past.collect();
        for pair in self.pairs.iter().filter(|pair| !pair.agrees()) {
            let (real, ours) = (pair.real_ratio, pair.virtual_ratio);
            past.push(format!(
                "{}: the ratio of one connection to six is {real:.3} in real time and {ours:.3} in virtual time",
                pair.cell
            ));
        }
        past
    }
}

fn pairs(results: &[CellResult<DownloadCell>]) -> Vec<SixVsOne> {
    let of = |cell: DownloadCell| results.iter().find(|it| it.subject == cell);
    let pair = |one: &CellResult<DownloadCell>| {
        let manner = ConnectionMode::Six;
        let six = of(DownloadCell {
            manner,
            ..one.subject
        })?;
        Some(SixVsOne {
            cell: one.subject,
            virtual_ratio: one.virtual_figure()? / six.virtual_figure()?,
            real_ratio: one.real_figure()? / six.real_figure()?,
        })
    };
    let ones = results
        .iter()
        .filter(|it| it.subject.manner == ConnectionMode::One);
    ones.filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::download_cell;

    fn result(cell: DownloadCell, virtual_ms: &[f64], real_ms: &[f64]) -> CellResult<DownloadCell> {
        CellResult {
            subject: cell,
            virtual_ms: virtual_ms.to_vec(),
            real_ms: real_ms.to_vec(),
            computed_ms: Vec::new(),
            requested_runs: 3,
            repeated: 1,
            incomplete_reason: None,
        }
    }

    #[test]
    fn loss_free_cells_use_the_median_and_lossy_cells_the_mean() {
        let loss_free = result(
            download_cell::loss_free()[0],
            &[99.0],
            &[100.0, 500.0, 90.0],
        );
        assert!((loss_free.error().unwrap() + 0.01).abs() < 1e-12);
        let lossy = result(download_cell::lossy()[0], &[100.0, 120.0], &[90.0, 110.0]);
        assert!((lossy.error().unwrap() - 0.1).abs() < 1e-12);
        assert_eq!(result(download_cell::lossy()[0], &[], &[]).error(), None);
    }

    #[test]
    fn a_mean_error_is_reported_only_above_its_limit() {
        let cells = download_cell::loss_free();
        let at = |error: f64| {
            let one = result(cells[0], &[100.0 * (1.0 + error)], &[100.0]);
            let two = result(cells[1], &[100.0], &[100.0]);
            DownloadSummary::of(&[one, two])
        };
        assert_eq!(at(0.0199).exceeded_limits, Vec::<String>::new());
        let past = at(-0.03);
        assert_eq!(
            past.exceeded_limits,
            ["loss-free single downloads: mean error 1.50 %, limit 1 %"]
        );
        let errors = past.loss_free.unwrap();
        assert_eq!(
            (errors.cells, errors.max, errors.median),
            (2, errors.p90, errors.mean)
        );
        assert!(errors.bias < 0.0);
    }

    #[test]
    fn a_pair_that_disagrees_exceeds_the_limit_unless_even() {
        let [six, one] = *download_cell::pairs().first_chunk().unwrap();
        let at = |virtual_one: f64| {
            let results = [
                result(six, &[100.0], &[100.0]),
                result(one, &[virtual_one], &[98.0]),
            ];
            DownloadSummary::of(&results)
        };
        assert_eq!(at(50.0).pairs_that_agree, 1);
        assert_eq!(at(100.9).pairs_that_agree, 1, "no farther apart than 0.03");
        let apart = at(102.0);
        assert_eq!(
            (apart.pairs_that_agree, apart.exceeded_limits.len()),
            (0, 1),
            "{apart:?}"
        );
    }

    #[test]
    fn a_cell_with_missing_runs_fails() {
        let at = |real_ms: &[f64], reason: &str| CellResult {
            incomplete_reason: Some(reason.to_owned()),
            ..result(download_cell::loss_free()[0], &[1.0], real_ms)
        };
        let summary = DownloadSummary::of(&[at(&[], "it did not end")]);
        assert_eq!((summary.unmeasured, summary.loss_free), (1, None));
        assert_eq!(
            summary.exceeded_limits,
            ["250 kbps, 10 ms, 0 %, single 1 x 1000 B: only 0 of 3 runs are valid: it did not end"]
        );
        let summary = DownloadSummary::of(&[at(&[1.0, 1.0], "it was late")]);
        assert_eq!(summary.unmeasured, 0);
        assert_eq!(
            summary.exceeded_limits,
            ["250 kbps, 10 ms, 0 %, single 1 x 1000 B: only 2 of 3 runs are valid: it was late"]
        );
    }
}
