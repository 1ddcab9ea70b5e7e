//! The store of one plan: made or taken up, written cell by cell, read in order.
//!
//! A store may come from anybody: whoever reads is given as many loads as its plan has, and then an error if there are more.

use std::collections::BTreeSet;

use rusqlite::OpenFlags;

use crate::experiment::plan::MAX_LOADS;
use crate::model;
use crate::store::column::{COLUMNS, Column, position};
use crate::store::contents::Contents;
use crate::store::database::{Database, DatabaseError, Found, in_transaction};
use crate::store::error::{RowDifference, StoreError};
use crate::store::location::Location;
use crate::store::postgres::Postgres;
use crate::store::row::Row;
use crate::store::schema::{OLDEST, VERSION};
use crate::store::sqlite::Sqlite;
use crate::store::value::Value;

/// Most parameters of one statement: what SQLite takes (PostgreSQL takes twice as many).
const MAX_PARAMETERS: usize = 32_766;

/// A store that is open.
pub struct Store {
    location: Location,
    database: Box<dyn Database>,
    /// Columns that came after it was made.
    absent: Vec<&'static str>,
}

/// What became of a cell that was to be added.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Added {
    /// It is there now.
    New,
    /// It was there already, and the same.
    Before,
}

impl Store {
    /// The store at `location` for `contents`: made if there is none, else taken up.
    ///
    /// # Errors
    ///
    /// Something else, another version or fewer columns (also what can be read), or a store of another plan, page, program or
    /// model; whatever keeps the database from it.
    pub fn open_or_create(location: &Location, contents: &Contents) -> Result<Self, StoreError> {
        let mut store = Self::connect(location, OpenFlags::SQLITE_OPEN_CREATE)?;
        store.create_if_blank(contents, &[])?;
        store.check(VERSION)?;
        store.check_is_complete()?;
        store.check_is_of(contents)?;
        Ok(store)
    }

    /// The store at `location`, for reading.
    ///
    /// # Errors
    ///
    /// Nothing there, something else, or a version or columns that cannot be read; whatever keeps the database from it.
    pub fn open(location: &Location) -> Result<Self, StoreError> {
        if location.file().is_some_and(|path| !path.exists()) {
            return Err(StoreError::Missing {
                store: location.clone(),
            });
        }
        // Not read-only: what a killed program left half written is put right by whoever opens it next.
        let mut store = Self::connect(location, OpenFlags::empty())?;
        store.check(OLDEST)?;
        Ok(store)
    }

    fn connect(location: &Location, more: OpenFlags) -> Result<Self, StoreError> {
        let fault = |cause| StoreError::Database {
            store: location.clone(),
            cause,
        };
        let database: Box<dyn Database> = match location {
            Location::File(path) => {
                let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | more;
                let sqlite = Sqlite::open(path, flags);
                Box::new(sqlite.map_err(|error| fault(error.into()))?)
            }
            Location::Postgres(url) => Box::new(Postgres::connect(url).map_err(fault)?),
        };
        Ok(Self {
            location: location.clone(),
            database,
            absent: Vec::new(),
        })
    }

    /// Where it is.
    #[must_use]
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// A store of `contents` and `rows`, where none may be yet.
    ///
    /// # Errors
    ///
    /// Anything that is there before; whatever keeps the database from it.
    pub(crate) fn create(
        location: &Location,
        contents: &Contents,
        rows: &[Row],
    ) -> Result<Self, StoreError> {
        let mut store = Self::connect(location, OpenFlags::SQLITE_OPEN_CREATE)?;
        if store.with(|database| database.found())? != Found::Nothing {
            return Err(StoreError::Exists {
                store: location.clone(),
            });
        }
        store.create_if_blank(contents, rows)?;
        store.check_is_of(contents)?; // somebody may have been faster
        Ok(store)
    }

    /// Makes the tables, and says in them whose they are, unless there are some; with `rows`, all in one transaction.
    fn create_if_blank(&mut self, contents: &Contents, rows: &[Row]) -> Result<(), StoreError> {
        self.with(|database| {
            if database.found()? != Found::Nothing {
                return Ok(());
            }
            in_transaction(database, |database| {
                database.keep_others_from_creating()?;
                // Two programs may have found it blank.
                if database.found()? == Found::Nothing {
                    database.create()?;
                    describe(database, contents)?;
                    insert(database, rows)?;
                }
                Ok(())
            })
        })
    }

    /// Whether it is a store of our version, or of one from `oldest` on.
    fn check(&mut self, oldest: i64) -> Result<(), StoreError> {
        let store = self.location.clone();
        match self.with(|database| database.found())? {
            Found::Store(version) if (oldest..=VERSION).contains(&version) => self.check_columns(),
            Found::Store(got) => Err(StoreError::Version { store, got }),
            Found::Other(what) => Err(StoreError::Foreign { store, what }),
            Found::Nothing => Err(StoreError::Missing { store }),
        }
    }

    /// Whether all of its columns are known, and which of ours it lacks.
    fn check_columns(&mut self) -> Result<(), StoreError> {
        let there = self.with(|database| database.columns())?;
        let is_there =
            |column: &Column| there.iter().any(|it| it.eq_ignore_ascii_case(column.name));
        let is_known = |name: &&String| {
            let mut known = COLUMNS.iter();
            known.any(|column| column.name.eq_ignore_ascii_case(name))
        };
        let absent: Vec<_> = COLUMNS.iter().filter(|column| !is_there(column)).collect();
        let needed = absent.iter().find(|column| column.where_absent.is_none());
        let unknown = there.iter().find(|name| !is_known(name));
        let what = match (needed, unknown) {
            (Some(needed), _) => format!("want a column {}, and there is none", needed.name),
            // Rows that differ in it alone would look the same.
            (_, Some(unknown)) => format!("the column {unknown} is not known to this build"),
            (None, None) => {
                self.absent = absent.iter().map(|column| column.name).collect();
                return Ok(());
            }
        };
        let store = self.location.clone();
        Err(StoreError::Columns { store, what })
    }

    /// Finds fault with it if it lacks columns: it can be read, and has no place for what is to be written.
    fn check_is_complete(&self) -> Result<(), StoreError> {
        if self.absent.is_empty() {
            return Ok(());
        }
        Err(StoreError::Columns {
            store: self.location.clone(),
            what: format!(
                "an earlier build made it without the columns {}; it can be read and merged, not added to",
                self.absent.join(", ")
            ),
        })
    }

    /// Finds fault with it unless its results are those of `wanted`.
    ///
    /// # Errors
    ///
    /// A store of another plan, page, program or model; whatever keeps the database from it.
    pub fn check_is_of(&mut self, wanted: &Contents) -> Result<(), StoreError> {
        match self.contents()?.other_than(wanted) {
            None => Ok(()),
            Some((of, got, want)) => Err(StoreError::Other {
                store: self.location.clone(),
                of: of.to_owned(),
                got,
                want,
            }),
        }
    }

    /// Whose results it holds.
    ///
    /// # Errors
    ///
    /// No plan or several, more pages than cells; whatever keeps the database from it.
    pub fn contents(&mut self) -> Result<Contents, StoreError> {
        let mut plans = Vec::new();
        let query = "SELECT name, hash, program, runs, cells, toml FROM plan LIMIT 2";
        self.each(query, &[], |values| {
            let [name, hash, program, runs, cells, plan] = &values[..] else {
                unreachable!("six columns, got {values:?}");
            };
            let count = |value: &Value| value.as_u64().unwrap_or_default();
            plans.push(Contents {
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
                unreachable!("two columns, got {values:?}");
            };
            contents
                .pages
                .push((name.to_string(), fingerprint.to_string()));
        })?;
        if contents.pages.len() as u64 > most {
            return Err(self.foreign(format!("it has more than {most} pages, a cell each")));
        }
        contents.model = self.model()?;
        Ok(contents)
    }

    /// The model of its first load, and so of all: none of another is added.
    fn model(&mut self) -> Result<Option<u64>, StoreError> {
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

    /// Adds the rows of one cell, all or none. Rows that are there already stay as they are, and must be the same if they are of
    /// virtual time.
    ///
    /// # Errors
    ///
    /// [`StoreError::Differs`], rows of another model than those that are there, or whatever keeps the database from it.
    pub fn add(&mut self, rows: &[Row]) -> Result<Added, StoreError> {
        let added = self.add_all(&[rows])?;
        Ok(added[0])
    }

    /// Adds the rows of many cells in one transaction; says of each what became of it.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add) has them. If one cell differs, the others are there all the same.
    pub(crate) fn add_all(
        &mut self,
        cells: &[impl AsRef<[Row]>],
    ) -> Result<Vec<Added>, StoreError> {
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
                added.push(Added::New);
            } else {
                self.check_has(rows)?;
                added.push(Added::Before);
            }
        }
        Ok(added)
    }

    /// Finds fault with `rows` unless they are of one model, which is that of the rows that are there.
    fn check_model<'a>(&mut self, rows: impl Iterator<Item = &'a Row>) -> Result<(), StoreError> {
        let mut there = self.model()?;
        for want in rows.filter_map(|row| row.value("model").as_u64()) {
            let got = *there.get_or_insert(want);
            if got != want {
                return Err(StoreError::Other {
                    store: self.location.clone(),
                    of: "the model".to_owned(),
                    got: model::told(got),
                    want: model::told(want),
                });
            }
        }
        Ok(())
    }

    /// Finds fault with it unless it has just these rows of their cell. Somebody else has added them: it is the same cell of
    /// the same plan, and ought to be the same to the last digit, in virtual time.
    fn check_has(&mut self, rows: &[Row]) -> Result<(), StoreError> {
        let key = rows[0].value("cell").to_string();
        let there = self.rows_of(&key)?;
        if there.len() != rows.len() {
            return Err(self.foreign(format!(
                "of the cell {key} it has {} rows, want {} or none",
                there.len(),
                rows.len()
            )));
        }
        // What the kernel did is not done twice; who was first stays.
        let exact = rows.iter().zip(&there).filter(|(row, _)| !row.is_real());
        for (want, got) in exact {
            if let Some(at) = (0..COLUMNS.len()).find(|at| want.values[*at] != got.values[*at]) {
                let difference = RowDifference {
                    cell: key,
                    run: want.value("run").to_string(),
                    column: COLUMNS[at].name,
                    got: got.values[at].to_string(),
                    want: want.values[at].to_string(),
                };
                return Err(StoreError::Differs {
                    store: self.location.clone(),
                    difference: Box::new(difference),
                });
            }
        }
        Ok(())
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
    fn named(&self, column: Column) -> &'static str {
        match column.where_absent {
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

    /// Gives it its last form, once, if everything is there: rows laid out in their order, so that where a row lies tells no
    /// longer when it was written. Gives whether everything is.
    ///
    /// # Errors
    ///
    /// Whatever keeps the database from it.
    pub fn finish(&mut self) -> Result<bool, StoreError> {
        let query = "SELECT done, cells, (SELECT count(*) FROM results WHERE run = 1) FROM plan";
        let (mut done, mut whole) = (false, false);
        self.each(query, &[], |values| {
            done = values[0] != Value::Integer(0);
            whole = values[1] == values[2];
        })?;
        if whole && !done {
            // Killed between the two, the next one does both again.
            self.with(|database| {
                database.lay_out_anew()?;
                database.execute("UPDATE plan SET done = 1 WHERE done = 0", &[])
            })?;
        }
        Ok(whole)
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
                "it has more than {most} loads, want those of its plan"
            ))),
            false => Ok(()),
        }
    }

    /// That it is none, for what was seen.
    fn foreign(&self, what: String) -> StoreError {
        StoreError::Foreign {
            store: self.location.clone(),
            what,
        }
    }

    fn each(
        &mut self,
        sql: &str,
        values: &[&Value],
        mut take: impl FnMut(Vec<Value>),
    ) -> Result<(), StoreError> {
        self.with(|database| database.each(sql, values, &mut take))
    }

    fn with<T>(
        &mut self,
        work: impl FnOnce(&mut dyn Database) -> Result<T, DatabaseError>,
    ) -> Result<T, StoreError> {
        work(&mut *self.database).map_err(|cause| StoreError::Database {
            store: self.location.clone(),
            cause,
        })
    }
}

/// Writes down whose results these are.
fn describe(database: &mut dyn Database, contents: &Contents) -> Result<(), DatabaseError> {
    let Contents {
        name,
        hash,
        program,
        model: _, // every load says it
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

/// Inserts `rows` that are not there; gives how many.
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
