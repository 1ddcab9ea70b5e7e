//! Reading a store: the plan of its results, its cells, and their loads in the order of the plan.
//!
//! A store may be untrusted: a reader gets at most as many loads as its plan has, and then an error if there are more.

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
    /// No plan or several, more pages than cells; whatever keeps the database from it.
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

    /// The model of its first load, and so of all: none of another is added.
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

    /// Keys of the cells that it holds, in the order of the plan.
    ///
    /// # Errors
    ///
    /// More loads than its plan has; whatever keeps the database from it.
    pub fn keys(&mut self) -> Result<Vec<String>, StoreError> {
        let mut keys = Vec::new();
        // A cell is one transaction, so its first run stands for all.
        self.each_load("cell", "WHERE run = 1", &[], |values| {
            keys.push(values[0].to_string());
        })?;
        Ok(keys)
    }

    /// Keys of the cells that it holds.
    ///
    /// # Errors
    ///
    /// More loads than its plan has; whatever keeps the database from it.
    pub fn finished(&mut self) -> Result<BTreeSet<String>, StoreError> {
        Ok(self.keys()?.into_iter().collect())
    }

    /// Whether it holds that cell.
    ///
    /// # Errors
    ///
    /// Whatever keeps the database from it.
    pub fn has(&mut self, key: &str) -> Result<bool, StoreError> {
        let query = "SELECT id FROM results \
                     WHERE plan = (SELECT hash FROM plan) AND cell = $1 AND run = 1 LIMIT 1";
        let mut found = false;
        self.each(query, &[&Value::text(key)], |_| found = true)?;
        Ok(found)
    }

    /// The rows of the cell of this key, in the order of its runs; none if it is not there.
    ///
    /// # Errors
    ///
    /// More loads than its plan has; whatever keeps the database from it.
    pub fn rows_of(&mut self, key: &str) -> Result<Vec<Row>, StoreError> {
        let its = "WHERE plan = (SELECT hash FROM plan) AND cell = $1";
        let mut rows = Vec::new();
        self.each_load(&self.names(), its, &[&Value::text(key)], |values| {
            rows.push(Row { values });
        })?;
        Ok(rows)
    }

    /// All columns, as a query names them.
    fn names(&self) -> String {
        COLUMNS.map(|column| self.named(column)).join(", ")
    }

    /// A column, as a query names it: what it is read as, if it is not there.
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
    /// More loads than its plan has; whatever keeps the database from it.
    pub fn rows(&mut self) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::new();
        self.each_row(|row| rows.push(row))?;
        Ok(rows)
    }

    /// Gives every row to `take`, in the order of the plan.
    ///
    /// # Errors
    ///
    /// More loads than its plan has; whatever keeps the database from it.
    pub fn each_row(&mut self, mut take: impl FnMut(Row)) -> Result<(), StoreError> {
        self.each_load(&self.names(), "", &[], |values| take(Row { values }))
    }

    /// Gives the rows of every cell to `take`, in the order of the plan. No more than those of one cell are held at a time.
    ///
    /// # Errors
    ///
    /// More loads than its plan has; whatever keeps the database from it.
    pub fn each_cell(&mut self, mut take: impl FnMut(&[Row])) -> Result<(), StoreError> {
        let mut cell = Vec::<Row>::new();
        self.each_row(|row| {
            // The rows of a cell stand together.
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

    /// Gives `columns` of the loads that are `which` to `take`, in the order of the plan; no more than the plan has, nor than
    /// any may have.
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
