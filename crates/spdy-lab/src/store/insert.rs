//! Adds cells to a store, each in one transaction. A cell that exists already must be equal.

use spdy_sim::model;

use crate::store::column::COLUMNS;
use crate::store::database::{Database, DatabaseError, DatabaseState, in_transaction};
use crate::store::error::{RowDifference, StoreError};
use crate::store::manifest::Manifest;
use crate::store::open::Store;
use crate::store::row::Row;
use crate::store::value::Value;

/// Maximum parameters of one statement: SQLite's limit (PostgreSQL's is twice as high).
const MAX_PARAMETERS: usize = 32_766;

/// The result of adding a cell.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AddOutcome {
    /// It was added.
    Inserted,
    /// It existed already, and is equal.
    AlreadyPresent,
}

impl Store {
    /// Creates the tables with `contents` and `rows` in one transaction, unless they exist.
    pub(super) fn create_if_blank(
        &mut self,
        contents: &Manifest,
        rows: &[Row],
    ) -> Result<(), StoreError> {
        self.with(|database| {
            if database.found()? != DatabaseState::Empty {
                return Ok(());
            }
            in_transaction(database, |database| {
                database.lock_creation()?;
                // Two programs may have found it empty.
                if database.found()? == DatabaseState::Empty {
                    database.create()?;
                    describe(database, contents)?;
                    insert(database, rows)?;
                }
                Ok(())
            })
        })
    }

    /// Adds the rows of one cell, all or none. Existing rows stay as they are, and must be equal if they are of virtual time.
    ///
    /// # Errors
    ///
    /// [`StoreError::Differs`], rows of another model than the existing ones, or an error of the database.
    pub fn add(&mut self, rows: &[Row]) -> Result<AddOutcome, StoreError> {
        let added = self.add_all(&[rows])?;
        Ok(added[0])
    }

    /// Adds the rows of many cells in one transaction. Returns the result for each.
    ///
    /// # Errors
    ///
    /// Like [`add`](Self::add). If one cell differs, the others are added nevertheless.
    pub(crate) fn add_all(
        &mut self,
        cells: &[impl AsRef<[Row]>],
    ) -> Result<Vec<AddOutcome>, StoreError> {
        self.check_model(cells.iter().flat_map(AsRef::as_ref))?;
        let insert = |database: &mut dyn Database| {
            let cells = cells.iter();
            cells
                .map(|rows| insert(database, rows.as_ref()))
                .collect::<Result<Vec<_>, _>>()
        };
        let inserted = self.with(|database| in_transaction(database, insert))?;
        let mut added = Vec::with_capacity(cells.len());
        for (rows, inserted) in cells.iter().zip(inserted) {
            let rows = rows.as_ref();
            if inserted == rows.len() as u64 {
                added.push(AddOutcome::Inserted);
            } else {
                self.check_has(rows)?;
                added.push(AddOutcome::AlreadyPresent);
            }
        }
        Ok(added)
    }

    /// Returns an error unless `rows` are of one model, which is that of existing rows.
    fn check_model<'a>(&mut self, rows: impl Iterator<Item = &'a Row>) -> Result<(), StoreError> {
        let mut there = self.model()?;
        for expected in rows.filter_map(|row| row.value("model").as_u64()) {
            let found = *there.get_or_insert(expected);
            if found != expected {
                return Err(StoreError::Mismatch {
                    store: self.location.clone(),
                    of: "the model".to_owned(),
                    found: model::format(found),
                    expected: model::format(expected),
                });
            }
        }
        Ok(())
    }

    /// Returns an error unless the store has exactly these rows of their cell. Another program added them for the same cell of the
    /// same plan, so in virtual time they must be equal to the last digit.
    fn check_has(&mut self, rows: &[Row]) -> Result<(), StoreError> {
        let key = rows[0].value("cell").to_string();
        let there = self.rows_of(&key)?;
        if there.len() != rows.len() {
            return Err(self.foreign(format!(
                "cell {key} has {} rows, expected {} or none",
                there.len(),
                rows.len()
            )));
        }
        // Real-time loads are not reproducible; the first writer's rows stay.
        let exact = rows.iter().zip(&there).filter(|(row, _)| !row.is_real());
        for (expected, found) in exact {
            if let Some(at) =
                (0..COLUMNS.len()).find(|at| expected.values[*at] != found.values[*at])
            {
                let difference = RowDifference {
                    cell: key,
                    run: expected.value("run").to_string(),
                    column: COLUMNS[at].name,
                    found: found.values[at].to_string(),
                    expected: expected.values[at].to_string(),
                };
                return Err(StoreError::Differs {
                    store: self.location.clone(),
                    difference: Box::new(difference),
                });
            }
        }
        Ok(())
    }

    /// Finishes the store if it has all cells: stores the rows in order, so that their positions do not depend on when they were
    /// written. Returns true if it has all cells.
    ///
    /// # Errors
    ///
    /// An error of the database.
    pub fn finish(&mut self) -> Result<bool, StoreError> {
        let query = "SELECT done, cells, (SELECT count(*) FROM results WHERE run = 1) FROM plan";
        let (mut done, mut whole) = (false, false);
        self.each(query, &[], |values| {
            done = values[0] != Value::Integer(0);
            whole = values[1] == values[2];
        })?;
        if whole && !done {
            // If the program is killed between the two, the next one repeats both.
            self.with(|database| {
                database.rewrite_in_order()?;
                database.execute("UPDATE plan SET done = 1 WHERE done = 0", &[])
            })?;
        }
        Ok(whole)
    }
}

/// Stores the description of its results.
fn describe(database: &mut dyn Database, contents: &Manifest) -> Result<(), DatabaseError> {
    let Manifest {
        name,
        hash,
        program,
        model: _, // every load has it
        runs,
        cells,
        plan,
        pages,
    } = contents;
    let [hash, name, program, plan] = [hash, name, program, plan].map(Value::text);
    let (runs, cells, done) = (Value::from(*runs), Value::from(*cells), Value::Integer(0));
    database.execute(
        "INSERT INTO plan VALUES ($1, $2, $3, $4, $5, $6, $7)",
        &[&hash, &name, &program, &runs, &cells, &plan, &done],
    )?;
    for (id, (name, fingerprint)) in (1_u64..).zip(pages) {
        let values = [id.into(), Value::text(name), Value::text(fingerprint)];
        let [id, name, fingerprint] = &values;
        database.execute(
            "INSERT INTO pages VALUES ($1, $2, $3)",
            &[id, name, fingerprint],
        )?;
    }
    Ok(())
}

/// Inserts those of `rows` that do not exist. Returns their number.
fn insert(database: &mut dyn Database, rows: &[Row]) -> Result<u64, DatabaseError> {
    let mut inserted = 0;
    let names = COLUMNS.map(|column| column.name).join(", ");
    for rows in rows.chunks(MAX_PARAMETERS / COLUMNS.len()) {
        let places: Vec<_> = (0..rows.len())
            .map(|row| {
                let first = row * COLUMNS.len() + 1;
                let row: Vec<_> = (first..first + COLUMNS.len())
                    .map(|place| format!("${place}"))
                    .collect();
                format!("({})", row.join(", "))
            })
            .collect();
        let insert = format!(
            "INSERT INTO results ({names}) VALUES {} ON CONFLICT DO NOTHING",
            places.join(", ")
        );
        let values: Vec<_> = rows.iter().flat_map(|row| &row.values).collect();
        inserted += database.execute(&insert, &values)?;
    }
    Ok(inserted)
}
