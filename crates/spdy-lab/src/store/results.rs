//! The store of one plan: made or taken up, written cell by cell, read in order.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior, params};

use crate::experiment::runner::Runner;
use crate::store::column::COLUMNS;
use crate::store::error::StoreError;
use crate::store::row::Row;
use crate::store::schema;
use crate::store::value::Value;

/// How long to wait while another program reads or writes the file.
const PATIENCE: Duration = Duration::from_secs(30);

/// A store that is open.
pub struct Store {
    pub(crate) path: PathBuf,
    pub(crate) connection: Connection,
}

/// Whose results a store holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Contents {
    /// Name of the experiment.
    pub name: String,
    /// Hash of its plan; of imported results, of the file they came from.
    pub hash: String,
    /// The version of the program that made them; empty if it was no version of this one.
    pub program: String,
    /// Loads of each cell.
    pub runs: u64,
    /// Cells when all are done.
    pub cells: u64,
    /// The plan as canonical text; empty for imported results.
    pub plan: String,
}

impl Store {
    /// The store at `path` for what `runner` loads with the version `program`: made if there is no file, else taken up.
    ///
    /// # Errors
    ///
    /// A file of something else, of another version, or of another plan, page or program; whatever keeps SQLite from it.
    pub fn open_or_create(path: &Path, runner: &Runner, program: &str) -> Result<Self, StoreError> {
        let store = Self::connect(
            path,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
        )?;
        store.create_if_blank(|connection| {
            let plan = runner.plan();
            connection.execute(
                "INSERT INTO plan VALUES (?, ?, ?, ?, ?, ?, 0)",
                params![
                    plan.hash(),
                    plan.name(),
                    program,
                    plan.runs(),
                    Value::from(plan.len() as u64),
                    plan.canonical()
                ],
            )?;
            let pages = plan.pages().iter().zip(runner.fingerprints());
            for (id, (name, fingerprint)) in (1_i64..).zip(pages) {
                connection.execute(
                    "INSERT INTO pages VALUES (?, ?, ?)",
                    params![id, name, fingerprint.as_str()],
                )?;
            }
            Ok(())
        })?;
        store.check()?;
        store.check_is_of(runner, program)?;
        Ok(store)
    }

    /// The store at `path`, for reading.
    ///
    /// # Errors
    ///
    /// No file, a file of something else or of another version; whatever keeps SQLite from it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if !path.exists() {
            return Err(StoreError::Missing {
                path: path.to_owned(),
            });
        }
        // Not read-only: what a killed program left half written is put right by whoever opens it next.
        let store = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        store.check()?;
        Ok(store)
    }

    pub(crate) fn connect(path: &Path, flags: OpenFlags) -> Result<Self, StoreError> {
        let fault = |cause| StoreError::Sqlite {
            path: path.to_owned(),
            cause,
        };
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(fault)?;
        connection.busy_timeout(PATIENCE).map_err(fault)?;
        Ok(Self {
            path: path.to_owned(),
            connection,
        })
    }

    /// Makes the tables and what `fill` puts into them, in one transaction, unless there are some.
    pub(crate) fn create_if_blank(
        &self,
        fill: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        let create = || {
            if !schema::is_blank(&self.connection)? {
                return Ok(());
            }
            let transaction = rusqlite::Transaction::new_unchecked(
                &self.connection,
                TransactionBehavior::Immediate,
            )?;
            // Two programs may have found it blank.
            if schema::is_blank(&transaction)? {
                schema::create(&transaction)?;
                fill(&transaction)?;
            }
            transaction.commit()
        };
        create().map_err(|cause| self.sqlite(cause))
    }

    /// Whether it is a store of our version.
    fn check(&self) -> Result<(), StoreError> {
        let head =
            |pragma| schema::head(&self.connection, pragma).map_err(|cause| self.sqlite(cause));
        match head("application_id")? {
            schema::APPLICATION => {}
            other => {
                return Err(self.foreign(format!(
                    "its application id is {other:#x}, want {:#x}",
                    schema::APPLICATION
                )));
            }
        }
        match head("user_version")? {
            schema::VERSION => Ok(()),
            got => Err(StoreError::Version {
                path: self.path.clone(),
                got,
            }),
        }
    }

    /// Whether its results are those of `runner` and `program`.
    fn check_is_of(&self, runner: &Runner, program: &str) -> Result<(), StoreError> {
        let other = |of: &str, got: &str, want: &str| StoreError::Other {
            path: self.path.clone(),
            of: of.to_owned(),
            got: got.to_owned(),
            want: want.to_owned(),
        };
        let contents = self.contents()?;
        let named = |name: &str, hash: &str| format!("{name} ({})", short(hash));
        let hash = runner.plan().hash();
        if contents.hash != hash {
            let (got, want) = (
                named(&contents.name, &contents.hash),
                named(runner.plan().name(), &hash),
            );
            return Err(other("the plan", &got, &want));
        }
        let pages = runner.plan().pages().iter().zip(runner.fingerprints());
        for (id, (name, fingerprint)) in (1_i64..).zip(pages) {
            let query = "SELECT fingerprint FROM pages WHERE id = ?";
            let got: Option<String> = self
                .connection
                .query_row(query, [id], |row| row.get(0))
                .optional()
                .map_err(|cause| self.sqlite(cause))?;
            let got = got.unwrap_or_default();
            if got != fingerprint.as_str() {
                return Err(other(
                    "the page",
                    &named(name, &got),
                    &named(name, fingerprint.as_str()),
                ));
            }
        }
        if contents.program != program {
            return Err(other("the version", &contents.program, program));
        }
        Ok(())
    }

    /// Whose results it holds.
    ///
    /// # Errors
    ///
    /// Whatever keeps SQLite from it.
    pub fn contents(&self) -> Result<Contents, StoreError> {
        let query = "SELECT name, hash, program, runs, cells, toml FROM plan";
        let read = self.connection.query_row(query, [], |row| {
            Ok(Contents {
                name: row.get(0)?,
                hash: row.get(1)?,
                program: row.get(2)?,
                runs: row.get::<_, i64>(3)?.unsigned_abs(),
                cells: row.get::<_, i64>(4)?.unsigned_abs(),
                plan: row.get(5)?,
            })
        });
        read.map_err(|cause| self.sqlite(cause))
    }

    /// Keys of the cells that it holds.
    ///
    /// # Errors
    ///
    /// Whatever keeps SQLite from it.
    pub fn finished(&self) -> Result<BTreeSet<String>, StoreError> {
        // A cell is one transaction, so its first run stands for all.
        let read = || -> rusqlite::Result<_> {
            let mut query = self
                .connection
                .prepare("SELECT cell FROM results WHERE run = 1")?;
            query.query_map([], |row| row.get(0))?.collect()
        };
        read().map_err(|cause| self.sqlite(cause))
    }

    /// Adds the rows of one cell, all or none. Rows that are there already stay as they are.
    ///
    /// # Errors
    ///
    /// Whatever keeps SQLite from it.
    pub fn add(&mut self, rows: &[Row]) -> Result<(), StoreError> {
        let Self { path, connection } = self;
        let mut add = || {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            insert(&transaction, rows)?;
            transaction.commit()
        };
        add().map_err(|cause| StoreError::Sqlite {
            path: path.clone(),
            cause,
        })
    }

    /// Every row, in the order of the plan.
    ///
    /// # Errors
    ///
    /// Whatever keeps SQLite from it.
    pub fn rows(&self) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::new();
        self.each_row(|row| rows.push(row))?;
        Ok(rows)
    }

    /// Gives every row to `take`, in the order of the plan.
    ///
    /// # Errors
    ///
    /// Whatever keeps SQLite from it.
    pub fn each_row(&self, mut take: impl FnMut(Row)) -> Result<(), StoreError> {
        let names = COLUMNS.map(|column| column.name).join(", ");
        let mut read = || {
            let mut query = self
                .connection
                .prepare(&format!("SELECT {names} FROM results ORDER BY id"))?;
            let mut rows = query.query([])?;
            while let Some(row) = rows.next()? {
                let value = |at| row.get_ref(at).map(Value::of_sql);
                let values = (0..COLUMNS.len()).map(value).collect::<Result<_, _>>()?;
                take(Row { values });
            }
            Ok(())
        };
        read().map_err(|cause| self.sqlite(cause))
    }

    /// Lays the file out anew, in the order of its rows, so that where a row lies tells no longer when it was written; once, when
    /// everything is there.
    ///
    /// # Errors
    ///
    /// Whatever keeps SQLite from it.
    pub fn finish(&self) -> Result<(), StoreError> {
        let finish = || {
            let done: i64 = self
                .connection
                .query_row("SELECT done FROM plan", [], |row| row.get(0))?;
            if done == 0 {
                // Killed between the two, the next run does both again.
                self.connection.execute_batch("VACUUM")?;
                self.connection.execute("UPDATE plan SET done = 1", [])?;
            }
            Ok(())
        };
        finish().map_err(|cause| self.sqlite(cause))
    }

    pub(crate) fn sqlite(&self, cause: rusqlite::Error) -> StoreError {
        match cause {
            rusqlite::Error::SqliteFailure(failure, _)
                if failure.code == rusqlite::ErrorCode::NotADatabase =>
            {
                self.foreign("it is no SQLite file")
            }
            cause => StoreError::Sqlite {
                path: self.path.clone(),
                cause,
            },
        }
    }

    fn foreign(&self, what: impl Into<String>) -> StoreError {
        StoreError::Foreign {
            path: self.path.clone(),
            what: what.into(),
        }
    }
}

/// Inserts `rows` that are not there.
pub(crate) fn insert(connection: &Connection, rows: &[Row]) -> rusqlite::Result<()> {
    let places = ["?"; COLUMNS.len()].join(", ");
    let mut insert = connection.prepare(&format!(
        "INSERT INTO results VALUES ({places}) ON CONFLICT DO NOTHING"
    ))?;
    for row in rows {
        insert.execute(rusqlite::params_from_iter(&row.values))?;
    }
    Ok(())
}

/// As much of a hash as people compare.
fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}
