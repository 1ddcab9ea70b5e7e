//! Summaries of a store: the medians of each cell.

use serde::Serialize;

use crate::experiment::cell::levels_of;
use crate::stats::median;
use crate::store::error::StoreError;
use crate::store::open::Store;
use crate::store::row::Row;
use crate::store::value::Value;

/// The summary of one cell's loads.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellSummary {
    /// Its key.
    pub cell: String,
    /// Number of loads.
    pub runs: usize,
    /// Number of incomplete loads.
    pub failed: usize,
    /// Number of loads that are in no median, because their link in real time was not as configured.
    pub invalid: usize,
    /// Median of DOMContentLoaded, milliseconds.
    pub dom_content_loaded_ms: Option<f64>,
    /// Median of load, milliseconds.
    pub load_ms: Option<f64>,
    /// Fastest load, milliseconds.
    pub fastest_ms: Option<f64>,
    /// Slowest load, milliseconds.
    pub slowest_ms: Option<f64>,
    /// Median time from the first to the last packet, milliseconds.
    pub time_on_wire_ms: Option<f64>,
    /// Names and levels of its key, in the key's order.
    #[serde(skip)]
    pub levels: Vec<(String, String)>,
}

impl CellSummary {
    /// Its level of the factor `name`.
    #[must_use]
    pub fn level(&self, name: &str) -> Option<&str> {
        let found = self.levels.iter().find(|(factor, _)| factor == name);
        found.map(|(_, level)| &level[..])
    }

    /// Summarises all rows of one cell, at least one.
    #[must_use]
    pub fn of(rows: &[Row]) -> Self {
        let cell = rows[0].value("cell").as_str().unwrap_or_default();
        let numbers = |name: &str| -> Vec<f64> {
            rows.iter()
                .filter(|row| row.is_valid())
                .filter_map(|row| row.value(name).as_f64())
                .collect()
        };
        let loads = numbers("load_ms");
        Self {
            cell: cell.to_owned(),
            runs: rows.len(),
            failed: rows
                .iter()
                .filter(|row| *row.value("failures") != Value::Null)
                .count(),
            invalid: rows.iter().filter(|row| !row.is_valid()).count(),
            dom_content_loaded_ms: median(numbers("dom_content_loaded_ms")),
            load_ms: median(loads.iter().copied()),
            fastest_ms: loads.iter().copied().min_by(f64::total_cmp),
            slowest_ms: loads.iter().copied().max_by(f64::total_cmp),
            time_on_wire_ms: median(numbers("time_on_wire_ms")),
            levels: levels_of(cell),
        }
    }
}

/// A summary of each cell of `store`, in the order of the plan. At most the rows of one cell are in memory.
///
/// # Errors
///
/// The store cannot be read.
pub fn of(store: &mut Store) -> Result<Vec<CellSummary>, StoreError> {
    let mut cells = Vec::new();
    store.each_cell(|rows| cells.push(CellSummary::of(rows)))?;
    Ok(cells)
}
