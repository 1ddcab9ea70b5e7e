//! Two stores against each other, cell by cell.
//!
//! Cells with the same key belong together, whatever else has changed: the page behind a name, the program, a choice that
//! the plan does not name. Where a cell's runs have the same seeds in both they met the same chance, and are compared in
//! pairs.

use std::collections::BTreeSet;

use serde::Serialize;
use spdy_netem::profile::Profile;

use crate::stats::{Bootstrap, Comparison, Difference, Estimate, Modes, median};
use crate::store::error::StoreError;
use crate::store::open::Store;
use crate::store::row::Row;
use crate::store::value::Value;

/// What is compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Measure {
    /// Load.
    Load,
    /// DOMContentLoaded.
    DomContentLoaded,
    /// First to last packet.
    TimeOnWire,
    /// Bytes of IP, both ways.
    Bytes,
    /// Packets, both ways.
    Packets,
    /// TCP connections.
    Connections,
}

impl Measure {
    /// All of them.
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

    /// What it is in; empty for what is counted.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Load | Self::DomContentLoaded | Self::TimeOnWire => "ms",
            Self::Bytes => "B",
            Self::Packets | Self::Connections => "",
        }
    }

    /// The columns whose sum it is.
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

    /// Of one load; `None` where it was not stored.
    fn of(self, row: &Row) -> Option<f64> {
        let columns = self.columns().iter();
        columns.map(|column| row.value(column).as_f64()).sum()
    }
}

/// A cell that both stores have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellComparison {
    /// Its key.
    pub cell: String,
    /// Median before.
    pub before: f64,
    /// Median after.
    pub after: f64,
    /// Runs before and after.
    pub runs: (usize, usize),
    /// Whether runs were compared in pairs.
    pub paired: bool,
    /// The result of the comparison.
    #[serde(flatten)]
    pub comparison: Comparison,
    /// The two heaps that the runs before fall into, if they do.
    pub modes_before: Option<Modes>,
    /// Those of the runs after.
    pub modes_after: Option<Modes>,
    /// Loads after that did not get all of their page.
    pub failed_after: usize,
}

/// Two stores.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoreComparison {
    /// What was compared.
    pub measure: &'static str,
    /// The [model](spdy_sim::model) of the loads before; nothing if they are of none.
    pub model_before: Option<u64>,
    /// That of the loads after.
    pub model_after: Option<u64>,
    /// Cells of both, in the order of the first.
    pub cells: Vec<CellComparison>,
    /// Geometric mean of all ratios, with what it may be if other cells of the kind had been chosen. `None` without cells.
    pub overall: Option<Estimate>,
    /// Keys that only the first has.
    pub only_before: Vec<String>,
    /// Keys that only the second has.
    pub only_after: Vec<String>,
    /// Keys of both in which the measure is missing or nothing.
    pub not_compared: Vec<String>,
}

impl StoreComparison {
    /// Compares two stores; differences under `margin`, a part of what was before, do not matter. No more than the rows of
    /// one cell of each are held at a time.
    ///
    /// # Errors
    ///
    /// Whatever keeps a store from being read.
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

    /// How many cells differ so.
    #[must_use]
    pub fn count(&self, difference: Difference) -> usize {
        let cells = self.cells.iter();
        cells
            .filter(|cell| cell.comparison.difference == difference)
            .count()
    }

    /// Cells of this verdict that take more than `budget` more, a part of what was before.
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
    // What does not count is never averaged in.
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
    // Imported loads have no seed, and pair with nothing.
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

/// Whether nothing random happens on the network of a load, so that every run of it is the same.
fn is_without_chance(row: &Row) -> bool {
    if row.is_real() {
        return false;
    }
    let network = row.value("network").as_str().unwrap_or_default();
    let profile = network.parse::<Profile>();
    profile.is_ok_and(|profile| !profile.path.is_random())
}
