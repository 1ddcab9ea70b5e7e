//! Compares two stores, cell by cell.
//!
//! Cells with the same key are compared, even if other things changed: the page with a name, the program, or an option that the plan
//! does not set. If the runs of a cell have the same seeds in both stores, they have the same random numbers, and are compared in
//! pairs.

use std::collections::BTreeSet;

use serde::Serialize;
use spdy_sim::options::RaceProtocol;
use spdy_sim::race::RaceNetwork;

use crate::stats::{Bootstrap, Comparison, Difference, Estimate, Modes, median};
use crate::store::error::StoreError;
use crate::store::open::Store;
use crate::store::row::Row;
use crate::store::value::Value;

/// The compared value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Measure {
    /// Load.
    Load,
    /// DOMContentLoaded.
    DomContentLoaded,
    /// From the first to the last packet.
    TimeOnWire,
    /// Bytes of IP, in both directions.
    Bytes,
    /// Packets, in both directions.
    Packets,
    /// TCP connections.
    Connections,
}

impl Measure {
    /// All measures.
    pub const ALL: [Self; 6] = [
        Self::Load,
        Self::DomContentLoaded,
        Self::TimeOnWire,
        Self::Bytes,
        Self::Packets,
        Self::Connections,
    ];

    /// Its name on the command line and in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::DomContentLoaded => "dcl",
            Self::TimeOnWire => "tow",
            Self::Bytes => "bytes",
            Self::Packets => "packets",
            Self::Connections => "connections",
        }
    }

    /// Its unit; empty for counts.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Load | Self::DomContentLoaded | Self::TimeOnWire => "ms",
            Self::Bytes => "B",
            Self::Packets | Self::Connections => "",
        }
    }

    /// The columns that it sums.
    const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Load => &["load_ms"],
            Self::DomContentLoaded => &["dom_content_loaded_ms"],
            Self::TimeOnWire => &["time_on_wire_ms"],
            Self::Bytes => &["bytes_up", "bytes_down"],
            Self::Packets => &["packets_up", "packets_down"],
            Self::Connections => &["connections"],
        }
    }

    /// Its value in one load; `None` if it was not stored.
    fn of(self, row: &Row) -> Option<f64> {
        let columns = self.columns().iter();
        columns.map(|column| row.value(column).as_f64()).sum()
    }
}

/// A cell that both stores have.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellComparison {
    /// Its key.
    pub cell: String,
    /// Median before, in the unit of the compared value.
    pub before: f64,
    /// Median after, in the unit of the compared value.
    pub after: f64,
    /// Runs before and after.
    pub runs: (usize, usize),
    /// Whether runs were compared in pairs.
    pub paired: bool,
    /// The result of the comparison.
    #[serde(flatten)]
    pub comparison: Comparison,
    /// The two modes of the runs before, if there are two.
    pub modes_before: Option<Modes>,
    /// The two modes of the runs after.
    pub modes_after: Option<Modes>,
    /// Incomplete loads after.
    pub failed_after: usize,
}

/// A comparison of two stores.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StoreComparison {
    /// Name of the compared value.
    pub measure: &'static str,
    /// The [model](spdy_sim::model) of the loads before; `None` if they have none.
    pub model_before: Option<u64>,
    /// The model of the loads after.
    pub model_after: Option<u64>,
    /// Cells of both, in the order of the first.
    pub cells: Vec<CellComparison>,
    /// Geometric mean of all ratios, with an interval by resampling cells. `None` without cells.
    pub overall: Option<Estimate>,
    /// Keys of the first store only.
    pub only_before: Vec<String>,
    /// Keys of the second store only.
    pub only_after: Vec<String>,
    /// Keys of both without a value, or with the value 0.
    pub not_compared: Vec<String>,
}

impl StoreComparison {
    /// Compares two stores; differences under `margin`, a part of the value before, do not matter. At most the rows of one cell of
    /// each store are in memory.
    ///
    /// # Errors
    ///
    /// A store cannot be read.
    pub fn of(
        before: &mut Store,
        after: &mut Store,
        measure: Measure,
        margin: f64,
    ) -> Result<Self, StoreError> {
        let (mut cells, mut only_before, mut not_compared) = (Vec::new(), Vec::new(), Vec::new());
        let mut only_after = after.keys()?;
        let (mut of_both, mut fault) = (BTreeSet::new(), None);
        before.each_cell(|rows| {
            if fault.is_some() {
                return;
            }
            let key = rows[0].value("cell").to_string();
            match after.rows_of(&key) {
                Err(error) => fault = Some(error),
                Ok(rows_after) if rows_after.is_empty() => only_before.push(key),
                Ok(rows_after) => {
                    match compare(&key, rows, &rows_after, measure, margin) {
                        Some(cell) => cells.push(cell),
                        None => not_compared.push(key.clone()),
                    }
                    of_both.insert(key);
                }
            }
        })?;
        if let Some(error) = fault {
            return Err(error);
        }
        only_after.retain(|key| !of_both.contains(key));
        let logs: Vec<f64> = cells
            .iter()
            .map(|cell| cell.comparison.ratio.value.ln())
            .collect();
        let mean = |logs: &[f64]| (logs.iter().sum::<f64>() / logs.len() as f64).exp();
        Ok(Self {
            measure: measure.name(),
            model_before: before.contents()?.model,
            model_after: after.contents()?.model,
            overall: Bootstrap::default().of(&logs, mean),
            cells,
            only_before,
            only_after,
            not_compared,
        })
    }

    /// Number of cells with this difference.
    #[must_use]
    pub fn count(&self, difference: Difference) -> usize {
        let cells = self.cells.iter();
        cells
            .filter(|cell| cell.comparison.difference == difference)
            .count()
    }

    /// Cells with this verdict whose value increases by more than `budget`, a part of the value before.
    pub fn over(&self, budget: f64, verdict: Difference) -> impl Iterator<Item = &CellComparison> {
        self.cells.iter().filter(move |cell| {
            cell.comparison.difference == verdict && cell.comparison.ratio.value > 1.0 + budget
        })
    }
}

fn compare(
    key: &str,
    before: &[Row],
    after: &[Row],
    measure: Measure,
    margin: f64,
) -> Option<CellComparison> {
    let values =
        |rows: &[Row]| -> Option<Vec<f64>> { rows.iter().map(|row| measure.of(row)).collect() };
    // Invalid runs are never averaged.
    let counting = |rows: &[Row]| -> Vec<Row> {
        let rows = rows.iter().filter(|row| row.is_valid());
        rows.cloned().collect()
    };
    let (before, after) = (&counting(before)[..], &counting(after)[..]);
    if before.is_empty() || after.is_empty() {
        return None;
    }
    let (of_before, of_after) = (values(before)?, values(after)?);
    let chance = |row: &Row| (row.value("seed").clone(), row.value("run").clone());
    // Imported loads have no seed, and are not paired.
    let seeded = |row: &Row| *row.value("seed") != Value::Null;
    let same = |(a, b): (&Row, &Row)| chance(a) == chance(b);
    let paired = before.len() == after.len()
        && before.iter().all(seeded)
        && before.iter().zip(after).all(same);
    let comparison = if paired {
        let pairs = of_before.iter().copied().zip(of_after.iter().copied());
        let exact = before.iter().chain(after).all(is_without_chance);
        Comparison::of_pairs(&pairs.collect::<Vec<_>>(), margin, exact)?
    } else {
        Comparison::of_groups(&of_before, &of_after, margin)?
    };
    let failed = |row: &&Row| *row.value("failures") != Value::Null;
    Some(CellComparison {
        cell: key.to_owned(),
        before: median(of_before.iter().copied())?,
        after: median(of_after.iter().copied())?,
        runs: (before.len(), after.len()),
        paired,
        comparison,
        modes_before: Modes::of(&of_before),
        modes_after: Modes::of(&of_after),
        failed_after: after.iter().filter(failed).count(),
    })
}

/// True if nothing in a load is random, so that all runs are equal.
fn is_without_chance(row: &Row) -> bool {
    if row.is_real() {
        return false;
    }
    let network = row.value("network").as_str().unwrap_or_default();
    let protocol = row.value("method").as_str().unwrap_or_default();
    let network = RaceNetwork::parse(network);
    let protocol = protocol.parse::<RaceProtocol>();
    match (network, protocol) {
        (Ok(network), Ok(protocol)) => !network.differs_by_seed(protocol),
        _ => false,
    }
}
