//! Reads a store: its plan, its cells, and their loads in the order of the plan.
//!
//! A store may be untrusted: a reader receives at most as many loads as the plan has, and then an error if there are more.

use std::collections::BTreeSet;

use crate::experiment::plan::MAX_LOADS;
use crate::store::column::{COLUMNS, Column, position};
use crate::store::error::StoreError;
use crate::store::manifest::Manifest;
use crate::store::open::Store;
use crate::store::row::Row;
use crate::store::value::Value;

impl Store {
    /// The plan and pages of its results.
    ///
    /// # Errors
    ///
    /// No plan or several, or more pages than cells; an error of the database.
    pub fn contents(&mut self) -> Result<Manifest, StoreError> {
        let mut plans = Vec::new();
        let query = "SELECT name, hash, program, runs, cells, toml FROM plan LIMIT 2";
        self.each(query, &[], |values| {
            let [name, hash, program, runs, cells, plan] = &values[..] else {
                unreachable!("expected six columns, found {values:?}");
            };
            let count = |value: &Value| value.as_u64().unwrap_or_default();
            plans.push(Manifest {
                name: name.to_string(),
                hash: hash.to_string(),
                program: program.to_string(),
                model: None,
                runs: count(runs),
                cells: count(cells),
                plan: plan.to_string(),
                pages: Vec::new(),
            });
        })?;
        let mut contents = match (plans.pop(), plans.is_empty()) {
            (Some(contents), true) => contents,
            (None, _) => return Err(self.foreign("its table plan is empty".to_owned())),
            (Some(_), false) => return Err(self.foreign("it has more than one plan".to_owned())),
        };
        // Every page has a cell.
        let most = contents.cells.min(MAX_LOADS);
        let query = format!(
            "SELECT name, fingerprint FROM pages ORDER BY id LIMIT {}",
            most + 1
        );
        self.each(&query, &[], |values| {
            let [name, fingerprint] = &values[..] else {
                unreachable!("expected two columns, found {values:?}");
            };
            contents
                .pages
                .push((name.to_string(), fingerprint.to_string()));
        })?;
        if contents.pages.len() as u64 > most {
            return Err(self.foreign(format!(
                "it has more than {most} pages, expected at most one for each cell"
            )));
        }
        contents.model = self.model()?;
        Ok(contents)
    }

    /// The model of its first load, which is that of all loads.
    pub(super) fn model(&mut self) -> Result<Option<u64>, StoreError> {
        let column = COLUMNS[position("model")];
        let query = format!(
            "SELECT {} FROM results ORDER BY id LIMIT 1",
            self.named(column)
        );
        let mut model = None;
        self.each(&query, &[], |values| model = values[0].as_u64())?;
        Ok(model)
    }

    /// Keys of its cells, in the order of the plan.
    ///
    /// # Errors
    ///
    /// More loads than its plan has; an error of the database.
    pub fn keys(&mut self) -> Result<Vec<String>, StoreError> {
        let mut keys = Vec::new();
        // A cell is one transaction, so its first run represents it.
        self.each_load("cell", "WHERE run = 1", &[], |values| {
            keys.push(values[0].to_string());
        })?;
        Ok(keys)
    }

    /// Keys of its cells.
    ///
    /// # Errors
    ///
    /// More loads than its plan has; an error of the database.
    pub fn finished(&mut self) -> Result<BTreeSet<String>, StoreError> {
        Ok(self.keys()?.into_iter().collect())
    }

    /// True if it has this cell.
    ///
    /// # Errors
    ///
    /// An error of the database.
    pub fn has(&mut self, key: &str) -> Result<bool, StoreError> {
        let query = "SELECT id FROM results \
                     WHERE plan = (SELECT hash FROM plan) AND cell = $1 AND run = 1 LIMIT 1";
        let mut found = false;
        self.each(query, &[&Value::text(key)], |_| found = true)?;
        Ok(found)
    }

    /// The rows of the cell with this key, in the order of its runs; empty if it does not exist.
    ///
    /// # Errors
    ///
    /// More loads than its plan has; an error of the database.
    pub fn rows_of(&mut self, key: &str) -> Result<Vec<Row>, StoreError> {
        let its = "WHERE plan = (SELECT hash FROM plan) AND cell = $1";
        let mut rows = Vec::new();
        self.each_load(&self.names(), its, &[&Value::text(key)], |values| {
            rows.push(Row { values });
        })?;
        Ok(rows)
    }

    /// All columns in a query.
    fn names(&self) -> String {
        COLUMNS.map(|column| self.named(column)).join(", ")
    }

    /// A column in a query: its default value if the store lacks it.
    pub(super) fn named(&self, column: Column) -> &'static str {
        match column.default_sql {
            Some(value) if self.absent.contains(&column.name) => value,
            _ => column.name,
        }
    }

    /// Every row, in the order of the plan.
    ///
    /// # Errors
    ///
    /// More loads than its plan has; an error of the database.
    pub fn rows(&mut self) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::new();
        self.each_row(|row| rows.push(row))?;
        Ok(rows)
    }

    /// Passes every row to `take`, in the order of the plan.
    ///
    /// # Errors
    ///
    /// More loads than its plan has; an error of the database.
    pub fn each_row(&mut self, mut take: impl FnMut(Row)) -> Result<(), StoreError> {
        self.each_load(&self.names(), "", &[], |values| take(Row { values }))
    }

    /// Passes the rows of every cell to `take`, in the order of the plan. At most the rows of one cell are in memory.
    ///
    /// # Errors
    ///
    /// More loads than its plan has; an error of the database.
    pub fn each_cell(&mut self, mut take: impl FnMut(&[Row])) -> Result<(), StoreError> {
        let mut cell = Vec::<Row>::new();
        self.each_row(|row| {
            // The rows of a cell are consecutive.
            let last = cell.last().map(|last| last.value("cell"));
            if last.is_some_and(|last| last != row.value("cell")) {
                take(&cell);
                cell.clear();
            }
            cell.push(row);
        })?;
        if !cell.is_empty() {
            take(&cell);
        }
        Ok(())
    }

    /// Passes `columns` of the loads that match `which` to `take`, in the order of the plan; at most as many as the plan has, and as
    /// any plan may have.
    fn each_load(
        &mut self,
        columns: &str,
        which: &str,
        values: &[&Value],
        mut take: impl FnMut(Vec<Value>),
    ) -> Result<(), StoreError> {
        let mut most = 0;
        self.each("SELECT cells, runs FROM plan LIMIT 1", &[], |values| {
            let [cells, runs] = [0, 1].map(|at: usize| values[at].as_u64().unwrap_or_default());
            most = cells.saturating_mul(runs).min(MAX_LOADS);
        })?;
        let query = format!(
            "SELECT {columns} FROM results {which} ORDER BY id LIMIT {}",
            most + 1
        );
        let mut given = 0;
        self.each(&query, values, |values| {
            if given < most {
                take(values);
            }
            given += 1;
        })?;
        match given > most {
            true => Err(self.foreign(format!(
                "it has more than {most} loads, expected those of its plan"
            ))),
            false => Ok(()),
        }
    }
}
