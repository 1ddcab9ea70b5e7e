//! Opens or creates the store of one plan, and checks it before use. `query.rs` reads it, and `insert.rs` adds to it.

use rusqlite::OpenFlags;

use crate::store::column::{COLUMNS, Column};
use crate::store::database::{Database, DatabaseError, DatabaseState};
use crate::store::error::StoreError;
use crate::store::location::Location;
use crate::store::manifest::Manifest;
use crate::store::postgres::Postgres;
use crate::store::row::Row;
use crate::store::schema::{OLDEST, VERSION};
use crate::store::sqlite::Sqlite;
use crate::store::value::Value;

/// An open store.
pub struct Store {
    pub(super) location: Location,
    database: Box<dyn Database>,
    /// Columns that were added after it was created.
    pub(super) absent: Vec<&'static str>,
}

impl Store {
    /// Opens the store at `location` for `contents`, or creates it.
    ///
    /// # Errors
    ///
    /// Other content, another version, fewer columns (even if they could be read), or a store of another plan, page, program or
    /// model; an error of the database.
    pub fn open_or_create(location: &Location, contents: &Manifest) -> Result<Self, StoreError> {
        let mut store = Self::connect(location, OpenFlags::SQLITE_OPEN_CREATE)?;
        store.create_if_blank(contents, &[])?;
        store.check(VERSION)?;
        store.check_is_complete()?;
        store.check_is_of(contents)?;
        Ok(store)
    }

    /// Opens the store at `location` for reading.
    ///
    /// # Errors
    ///
    /// No store, other content, or a version or columns that cannot be read; an error of the database.
    pub fn open(location: &Location) -> Result<Self, StoreError> {
        if location.file().is_some_and(|path| !path.exists()) {
            return Err(StoreError::Missing {
                store: location.clone(),
            });
        }
        // Not read-only: opening a store repairs it if a program was killed while it wrote.
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

    /// Its location.
    #[must_use]
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Creates a store of `contents` and `rows`, where none exists.
    ///
    /// # Errors
    ///
    /// An existing database content; an error of the database.
    pub(crate) fn create(
        location: &Location,
        contents: &Manifest,
        rows: &[Row],
    ) -> Result<Self, StoreError> {
        let mut store = Self::connect(location, OpenFlags::SQLITE_OPEN_CREATE)?;
        if store.with(|database| database.found())? != DatabaseState::Empty {
            return Err(StoreError::Exists {
                store: location.clone(),
            });
        }
        store.create_if_blank(contents, rows)?;
        store.check_is_of(contents)?; // another program may have created it first
        Ok(store)
    }

    /// Checks that it is a store of our version, or of one from `oldest` on.
    fn check(&mut self, oldest: i64) -> Result<(), StoreError> {
        let store = self.location.clone();
        match self.with(|database| database.found())? {
            DatabaseState::Store(version) if (oldest..=VERSION).contains(&version) => {
                self.check_columns()
            }
            DatabaseState::Store(found) => Err(StoreError::Version { store, found }),
            DatabaseState::Foreign(what) => Err(StoreError::Foreign { store, what }),
            DatabaseState::Empty => Err(StoreError::Missing { store }),
        }
    }

    /// Checks that each of its columns is one of ours, and stores which of ours it lacks.
    fn check_columns(&mut self) -> Result<(), StoreError> {
        let there = self.with(|database| database.columns())?;
        let is_there =
            |column: &Column| there.iter().any(|it| it.eq_ignore_ascii_case(column.name));
        let is_defined = |name: &&String| {
            let mut columns = COLUMNS.iter();
            columns.any(|column| column.name.eq_ignore_ascii_case(name))
        };
        let absent: Vec<_> = COLUMNS.iter().filter(|column| !is_there(column)).collect();
        let needed = absent.iter().find(|column| column.default_sql.is_none());
        let unknown = there.iter().find(|name| !is_defined(name));
        let what = match (needed, unknown) {
            (Some(needed), _) => format!("column {} is missing", needed.name),
            // Rows that differ only in that column would look equal.
            (_, Some(unknown)) => {
                format!("unknown column {unknown}: use the build that created the store")
            }
            (None, None) => {
                self.absent = absent.iter().map(|column| column.name).collect();
                return Ok(());
            }
        };
        let store = self.location.clone();
        Err(StoreError::Columns { store, what })
    }

    /// Returns an error if it lacks columns: it can be read, but not written.
    fn check_is_complete(&self) -> Result<(), StoreError> {
        if self.absent.is_empty() {
            return Ok(());
        }
        Err(StoreError::Columns {
            store: self.location.clone(),
            what: format!(
                "an earlier build created it without the columns {}; it can be read and merged, but not extended",
                self.absent.join(", ")
            ),
        })
    }

    /// Returns an error unless its results are those of `expected`.
    ///
    /// # Errors
    ///
    /// A store of another plan, page, program or model; an error of the database.
    pub fn check_is_of(&mut self, expected: &Manifest) -> Result<(), StoreError> {
        match self.contents()?.difference_from(expected) {
            None => Ok(()),
            Some((of, found, expected)) => Err(StoreError::Mismatch {
                store: self.location.clone(),
                of: of.to_owned(),
                found,
                expected,
            }),
        }
    }

    /// The error that it is no store, with its content.
    pub(super) fn foreign(&self, what: String) -> StoreError {
        StoreError::Foreign {
            store: self.location.clone(),
            what,
        }
    }

    pub(super) fn each(
        &mut self,
        sql: &str,
        values: &[&Value],
        mut take: impl FnMut(Vec<Value>),
    ) -> Result<(), StoreError> {
        self.with(|database| database.each(sql, values, &mut take))
    }

    pub(super) fn with<T>(
        &mut self,
        work: impl FnOnce(&mut dyn Database) -> Result<T, DatabaseError>,
    ) -> Result<T, StoreError> {
        work(&mut *self.database).map_err(|cause| StoreError::Database {
            store: self.location.clone(),
            cause,
        })
    }
}
