//! The cells of a store in the form that drawings use: by trial, by page, along factors.

use std::collections::{BTreeMap, BTreeSet};

use spdy_lab::experiment::cell::levels_of;
use spdy_lab::experiment::ineffective_factors::DuplicateCells;
use spdy_lab::stats::{Bootstrap, MIN_RUNS, Modes, median};
use spdy_lab::store::row::Row;
use spdy_lab::store::value::Value;

use super::filter::LevelFilter;
use super::real_run_row::RealRunRow;

/// Names of levels that are not along an axis.
pub(super) const PAGE: &str = "page";
const PROTOCOL: &str = "protocol";

/// One cell: medians of its runs.
pub(super) struct CellStats {
    pub(super) key: String,
    pub(super) protocol: String,
    /// Number of the first cell with the same effect: that of another cell if its own levels change nothing.
    pub(super) first: usize,
    pub(super) load: MedianTime,
    pub(super) dom_content_loaded: Option<MedianTime>,
    pub(super) time_on_wire: Option<MedianTime>,
    /// First and largest contentful paint.
    pub(super) fcp_ms: Option<f64>,
    pub(super) lcp_ms: Option<f64>,
    pub(super) connections: Option<f64>,
    pub(super) packets: Option<f64>,
    pub(super) bytes: Option<f64>,
    /// Bytes of request and response headers: as text, and on the wire.
    pub(super) header_bytes: Option<[f64; 4]>,
    pub(super) runs: usize,
    /// Loads that are not complete, and the first failure message of them.
    pub(super) failed: usize,
    pub(super) failure: Option<String>,
    /// Runs in real time that do not count.
    pub(super) invalid: usize,
    pub(super) modes: Option<Modes>,
}

impl CellStats {
    /// Upper bound on the number of runs that are incomplete or invalid: one run may be both.
    pub(super) fn invalid_runs(&self) -> usize {
        (self.failed + self.invalid).min(self.runs)
    }

    pub(super) fn moment(&self, moment: Moment) -> Option<MedianTime> {
        match moment {
            Moment::DomContentLoaded => self.dom_content_loaded,
            Moment::Load => Some(self.load),
            Moment::OnWire => self.time_on_wire,
        }
    }
}

/// A median of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MedianTime {
    pub(super) ms: f64,
    /// The 95 % confidence interval, if the runs differ and are enough for one.
    pub(super) interval: Option<(f64, f64)>,
}

impl MedianTime {
    /// Resamples for an interval. It is a mark in a picture, so a few suffice.
    const RESAMPLES: usize = 1_000;

    /// Returns `None` for values that cannot be drawn: an imported table may contain any number.
    fn of(runs: &[f64]) -> Option<Self> {
        let runs: Vec<f64> = runs
            .iter()
            .copied()
            .filter(|ms| ms.is_finite() && *ms >= 0.0)
            .collect();
        let ms = median(runs.iter().copied())?;
        let differ = runs.iter().any(|run| *run != runs[0]);
        let bootstrap = Bootstrap {
            resamples: Self::RESAMPLES,
            ..Bootstrap::default()
        };
        let middle = |runs: &[f64]| median(runs.iter().copied()).unwrap_or(f64::NAN);
        let interval = (differ && runs.len() >= MIN_RUNS)
            .then(|| bootstrap.of(&runs, middle))
            .flatten()
            .map(|estimate| (estimate.low, estimate.high));
        Some(Self { ms, interval })
    }
}

/// A moment of a load that papers compare.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Moment {
    DomContentLoaded,
    Load,
    OnWire,
}

impl Moment {
    pub(super) const ALL: [Self; 3] = [Self::DomContentLoaded, Self::Load, Self::OnWire];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::DomContentLoaded => "DOMContentLoaded",
            Self::Load => "load time",
            Self::OnWire => "time on wire",
        }
    }
}

/// Cells that differ only in their protocols.
pub(super) struct Trial {
    pub(super) page: String,
    /// Factors and their levels, in the order of the plan.
    pub(super) levels: Vec<(String, String)>,
    /// A cell for each protocol that ran.
    pub(super) cells: Vec<CellStats>,
    /// Protocols whose cell repeats that of an earlier trial, if the first protocol's cell does too: they are no further evidence.
    duplicate_protocols: Vec<String>,
}

impl Trial {
    /// True if it has evidence on `protocol` that no earlier trial has.
    pub(super) fn is_new(&self, protocol: &str) -> bool {
        !self
            .duplicate_protocols
            .iter()
            .any(|repeated| repeated == protocol)
    }

    pub(super) fn cell(&self, protocol: &str) -> Option<&CellStats> {
        self.cells.iter().find(|cell| cell.protocol == protocol)
    }

    pub(super) fn level(&self, factor: &str) -> Option<&str> {
        let found = self.levels.iter().find(|(name, _)| name == factor);
        found.map(|(_, level)| &level[..])
    }

    /// Load time of `protocol` over that of `reference`.
    pub(super) fn ratio(&self, protocol: &str, reference: &str) -> Option<f64> {
        let of = |protocol| self.cell(protocol).map(|cell| cell.load.ms);
        let (load, reference) = (of(protocol)?, of(reference)?);
        (reference > 0.0).then(|| load / reference)
    }

    /// Its levels of `factors`, as a caption.
    pub(super) fn caption(&self, factors: &[&VariedFactor]) -> String {
        let level =
            |factor: &&VariedFactor| Some(format!("{} {}", factor.name, self.level(&factor.name)?));
        let levels: Vec<String> = factors.iter().filter_map(level).collect();
        levels.join(", ")
    }
}

/// A factor with more than one level.
#[derive(Debug)]
pub(super) struct VariedFactor {
    pub(super) name: String,
    /// Levels and their numbers. They are in numeric order if all are numbers, else in the plan's order.
    pub(super) levels: Vec<(String, f64)>,
    pub(super) is_numeric: bool,
}

/// The data of a store, prepared for drawing.
pub(super) struct ReportData {
    pub(super) trials: Vec<Trial>,
    pub(super) protocols: Vec<String>,
    pub(super) pages: Vec<String>,
    pub(super) factors: Vec<VariedFactor>,
    /// Runs in real time, including invalid ones.
    pub(super) real: Vec<RealRunRow>,
    /// Factors with a single level.
    pub(super) constant: Vec<(String, String)>,
    /// Keys of cells without a valid run, which are in no figure.
    pub(super) cells_without_figures: Vec<String>,
    pub(super) filter: LevelFilter,
}

impl ReportData {
    pub(super) fn of(rows: &[Row]) -> Self {
        let mut trials: Vec<Trial> = Vec::new();
        let mut place = BTreeMap::<String, usize>::new();
        let mut repeats = DuplicateCells::default();
        let mut uncounted = Vec::new();
        for rows in rows.chunk_by(|a, b| a.value("cell") == b.value("cell")) {
            let key = rows[0].value("cell").as_str().unwrap_or_default();
            let levels = levels_of(key);
            let level = |name: &str| {
                let found = levels.iter().find(|(other, _)| other == name);
                found.map(|(_, level)| level.clone()).unwrap_or_default()
            };
            let Some(mut cell) = cell(key, level(PROTOCOL), rows) else {
                uncounted.push(key.to_owned());
                continue;
            };
            cell.first = repeats.first(key);
            let of_factors = |(name, _): &(String, String)| name != PAGE && name != PROTOCOL;
            let page = level(PAGE);
            let levels: Vec<_> = levels.into_iter().filter(of_factors).collect();
            let at = *place
                .entry(format!("{page} {levels:?}"))
                .or_insert(trials.len());
            if at == trials.len() {
                trials.push(Trial {
                    page,
                    levels,
                    cells: Vec::new(),
                    duplicate_protocols: Vec::new(),
                });
            }
            trials[at].cells.push(cell);
        }
        let protocols = distinct(
            trials
                .iter()
                .flat_map(|trial| trial.cells.iter().map(|cell| &cell.protocol)),
        );
        let pages = distinct(trials.iter().map(|trial| &trial.page));
        let names = distinct(
            trials
                .iter()
                .flat_map(|trial| trial.levels.iter().map(|(name, _)| name)),
        );
        let (mut factors, mut constant) = (Vec::new(), Vec::new());
        for name in names {
            let levels = trials.iter().filter_map(|trial| {
                let found = trial.levels.iter().find(|(other, _)| *other == name);
                found.map(|(_, level)| level)
            });
            let levels = distinct(levels);
            match levels.as_slice() {
                [one] => constant.push((name, one.clone())),
                _ => factors.push(factor(name, levels)),
            }
        }
        find_repeated(&mut trials, protocols.first().map_or("", |first| first));
        Self {
            filter: LevelFilter::of(&pages, &factors),
            trials,
            protocols,
            pages,
            factors,
            constant,
            real: rows.iter().filter_map(RealRunRow::of).collect(),
            cells_without_figures: uncounted,
        }
    }

    /// CSS classes of a panel that shows `trials`, which differ only in their levels of `apart`.
    pub(super) fn filter_classes(&self, trials: &[&Trial], apart: &[&str]) -> String {
        let first = trials.first();
        first.map_or_else(String::new, |trial| self.filter.classes(trial, apart))
    }

    /// Number of cells that repeat other cells with other seeds.
    pub(super) fn repeats(&self) -> usize {
        let cells = || self.trials.iter().flat_map(|trial| &trial.cells);
        cells().count()
            - cells()
                .map(|cell| cell.first)
                .collect::<BTreeSet<_>>()
                .len()
    }

    /// Trials with evidence on `protocol` that no earlier trial has.
    pub(super) fn new_of<'a>(&'a self, protocol: &'a str) -> impl Iterator<Item = &'a Trial> {
        self.trials.iter().filter(|trial| trial.is_new(protocol))
    }

    /// Factors that are drawn along an axis.
    pub(super) fn axes(&self) -> impl Iterator<Item = &VariedFactor> {
        self.factors.iter().filter(|factor| factor.is_numeric)
    }

    /// The protocol that the others are compared with, which is the first.
    pub(super) fn reference(&self) -> &str {
        self.protocols.first().map_or("", |protocol| protocol)
    }

    /// Trials of `page`, by their levels of all factors but `apart`, in the order of the plan.
    pub(super) fn panels<'a>(
        &'a self,
        page: &str,
        apart: &[&str],
    ) -> Vec<(String, Vec<&'a Trial>)> {
        let others: Vec<&VariedFactor> = self
            .factors
            .iter()
            .filter(|factor| !apart.contains(&&factor.name[..]))
            .collect();
        let mut panels: Vec<(String, Vec<&Trial>)> = Vec::new();
        for trial in self.trials.iter().filter(|trial| trial.page == page) {
            let caption = trial.caption(&others);
            match panels.iter_mut().find(|(existing, _)| *existing == caption) {
                Some((_, trials)) => trials.push(trial),
                None => panels.push((caption, vec![trial])),
            }
        }
        panels
    }
}

/// Sets the protocols of each of `trials` whose cell repeats that of an earlier trial.
fn find_repeated(trials: &mut [Trial], reference: &str) {
    let mut seen = BTreeSet::new();
    for trial in trials {
        let against = trial.cell(reference).map(|cell| cell.first);
        let is_repeated = |cell: &&CellStats| !seen.insert((against, cell.first));
        let repeated = trial.cells.iter().filter(is_repeated);
        trial.duplicate_protocols = repeated.map(|cell| cell.protocol.clone()).collect();
    }
}

fn cell(key: &str, protocol: String, rows: &[Row]) -> Option<CellStats> {
    // Invalid runs are in no figure.
    let counting = || rows.iter().filter(|row| row.is_valid());
    let middle = |of: &dyn Fn(&Row) -> Option<f64>| {
        let values: Option<Vec<f64>> = counting().map(of).collect();
        median(values?)
    };
    let column = |name: &'static str| middle(&|row| row.value(name).as_f64());
    let sum = |a: &'static str, b: &'static str| {
        middle(&|row| Some(row.value(a).as_f64()? + row.value(b).as_f64()?))
    };
    let times = |name: &'static str| -> Vec<f64> {
        let values = counting().filter_map(|row| row.value(name).as_f64());
        values.collect()
    };
    let loads = times("load_ms");
    let broken = |row: &&Row| *row.value("failures") != Value::Null;
    let header_bytes = || {
        Some([
            column("request_header_bytes")?,
            column("request_header_bytes_wire")?,
            column("response_header_bytes")?,
            column("response_header_bytes_wire")?,
        ])
    };
    Some(CellStats {
        key: key.to_owned(),
        protocol,
        first: 0,
        load: MedianTime::of(&loads)?,
        dom_content_loaded: MedianTime::of(&times("dom_content_loaded_ms")),
        time_on_wire: MedianTime::of(&times("time_on_wire_ms")),
        fcp_ms: column("fcp_ms"),
        lcp_ms: column("lcp_ms"),
        connections: column("connections"),
        packets: sum("packets_up", "packets_down"),
        bytes: sum("bytes_up", "bytes_down"),
        header_bytes: header_bytes(),
        runs: rows.len(),
        invalid: rows.len() - counting().count(),
        failed: rows.iter().filter(broken).count(),
        failure: rows
            .iter()
            .find(broken)
            .and_then(|row| row.value("failures").as_str())
            .map(str::to_owned),
        modes: Modes::of(&loads),
    })
}

fn factor(name: String, levels: Vec<String>) -> VariedFactor {
    let numbers: Option<Vec<f64>> = levels.iter().map(|level| number(level)).collect();
    let is_numeric = numbers.is_some();
    let numbers = numbers.unwrap_or_else(|| (0..levels.len()).map(|at| at as f64).collect());
    let mut levels: Vec<_> = levels.into_iter().zip(numbers).collect();
    levels.sort_by(|a, b| a.1.total_cmp(&b.1));
    VariedFactor {
        name,
        levels,
        is_numeric,
    }
}

fn distinct<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for name in names {
        if !seen.contains(name) {
            seen.push(name.clone());
        }
    }
    seen
}

/// `1.5mbit`, `100ms`, `2%` or `10` as a number of its smallest unit.
fn number(level: &str) -> Option<f64> {
    let digits = level.len()
        - level
            .trim_start_matches(|char: char| char.is_ascii_digit() || char == '.')
            .len();
    let (number, unit) = level.split_at(digits);
    let scale = match unit {
        "" | "%" | "bit" | "us" | "p" | "b" => 1.0,
        "kbit" | "ms" | "kb" => 1e3,
        "mbit" | "s" | "mb" => 1e6,
        "gbit" => 1e9,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_with_units_are_numbers_and_names_are_not() {
        assert_eq!(number("1.5mbit"), Some(1.5e6));
        assert_eq!(number("100ms"), Some(1e5));
        assert_eq!(number("2%"), Some(2.0));
        assert_eq!(number("10"), Some(10.0));
        assert_eq!(number("today"), None);
        assert_eq!(number("2x"), None);
        assert_eq!(number(""), None);
    }

    #[test]
    fn numeric_levels_are_in_numeric_order() {
        let levels = ["10240kbit", "100kbit", "1mbit"]
            .map(str::to_owned)
            .to_vec();
        let factor = factor("rate".to_owned(), levels);
        let names: Vec<_> = factor.levels.iter().map(|(name, _)| &name[..]).collect();
        assert_eq!(names, ["100kbit", "1mbit", "10240kbit"]);
        assert!(factor.is_numeric);
    }
}
