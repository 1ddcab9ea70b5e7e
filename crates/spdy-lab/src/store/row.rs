//! Rows of `results`.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::experiment::clock::Clock;
use crate::experiment::runner::{CellLoads, Runner};
use crate::store::column::{COLUMNS, Source, position};
use crate::store::value::Value;

/// One load in the store. In JSON it is an object of the columns, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub(crate) values: Vec<Value>,
}

impl Row {
    /// The value in the column `name`.
    ///
    /// # Panics
    ///
    /// If there is no such [column](COLUMNS).
    #[must_use]
    pub fn value(&self, name: &str) -> &Value {
        &self.values[position(name)]
    }

    /// True if it may be averaged with others: every load in virtual time, and a load in real time whose link was as configured.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        *self.value("invalid") == Value::Null
    }

    /// True if it was loaded in real time, where the same seed has different times.
    #[must_use]
    pub fn is_real(&self) -> bool {
        self.value("clock").as_str() == Some(Clock::Real.name())
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(COLUMNS.len()))?;
        for (column, value) in COLUMNS.iter().zip(&self.values) {
            map.serialize_entry(column.name, value)?;
        }
        map.end()
    }
}

/// Creates rows, with the plan's hash computed once.
pub struct Rows<'a> {
    runner: &'a Runner,
    plan_hash: String,
    program: &'a str,
}

impl<'a> Rows<'a> {
    /// Rows of the loads of `runner`; `program` is the version that loads it.
    #[must_use]
    pub fn new(runner: &'a Runner, program: &'a str) -> Self {
        Self {
            runner,
            plan_hash: runner.plan().hash(),
            program,
        }
    }

    /// The rows of one cell, one for each run.
    #[must_use]
    pub fn of(&self, cell: &CellLoads<'_>) -> Vec<Row> {
        let fingerprint = self.runner.fingerprint(&cell.cell);
        let row = |(run, load): (u32, _)| {
            let source = Source {
                plan_hash: &self.plan_hash,
                program: self.program,
                page_fingerprint: fingerprint.as_str(),
                cell: &cell.cell,
                conditions: &cell.conditions,
                run,
                load,
                real: cell.real.get(run as usize - 1),
            };
            Row {
                values: COLUMNS.iter().map(|column| (column.of)(&source)).collect(),
            }
        };
        (1..).zip(&cell.loads).map(row).collect()
    }
}
