//! A store in a file: SQLite.
//!
//! A file may be hostile, and its schema is a program: a view without an end may have the name of a table, a column may be computed,
//! a trigger may write. Nothing of that is run, and such a file is rejected.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, params_from_iter};

use crate::store::database::{Database, DatabaseError, DatabaseState};
use crate::store::schema::{self, APPLICATION, TABLES};
use crate::store::value::Value;

/// Timeout while another program reads or writes the file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// An open SQLite file.
pub(crate) struct Sqlite {
    pub(crate) connection: Connection,
}

impl Sqlite {
    /// Opens `path`; `flags` may allow its creation.
    pub(crate) fn open(path: &Path, flags: OpenFlags) -> rusqlite::Result<Self> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(LOCK_TIMEOUT)?;
        for (setting, on) in [
            (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
            (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        ] {
            connection.set_db_config(setting, on)?;
        }
        Ok(Self { connection })
    }

    /// Returns the reason why `tables`, as far as they exist, are not plain tables with stored rows.
    pub(crate) fn fault_of(&self, tables: &[&str]) -> rusqlite::Result<Option<String>> {
        let trigger = "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'";
        let triggers: i64 = self.connection.query_row(trigger, [], |row| row.get(0))?;
        if triggers > 0 {
            return Ok(Some(format!("it has {triggers} triggers, expected none")));
        }
        for table in tables {
            // As SQLite has parsed the schema, not by its text.
            let kind = "SELECT type FROM pragma_table_list WHERE schema = 'main' AND name = ?1 COLLATE NOCASE";
            let kind = self.connection.query_row(kind, [table], |row| row.get(0));
            let kind: Option<String> = kind.optional()?;
            if let Some(kind) = kind.filter(|kind| kind != "table") {
                return Ok(Some(format!("its {table} is a {kind}, expected a table")));
            }
            let reckoned = "SELECT count(*) FROM pragma_table_xinfo(?1) WHERE hidden <> 0";
            let reckoned: i64 = self
                .connection
                .query_row(reckoned, [table], |row| row.get(0))?;
            if reckoned > 0 {
                return Ok(Some(format!(
                    "its table {table} has {reckoned} generated columns, expected none"
                )));
            }
        }
        Ok(None)
    }

    /// One of the numbers in the file's header.
    pub(crate) fn head(&self, pragma: &str) -> rusqlite::Result<i64> {
        self.connection
            .pragma_query_value(None, pragma, |row| row.get(0))
    }

    fn state(&self) -> rusqlite::Result<DatabaseState> {
        let query = "SELECT count(*) FROM sqlite_schema";
        let tables: i64 = self.connection.query_row(query, [], |row| row.get(0))?;
        if tables == 0 {
            return Ok(DatabaseState::Empty);
        }
        Ok(match self.head("application_id")? {
            APPLICATION => match self.fault_of(&TABLES)? {
                Some(fault) => DatabaseState::Foreign(fault),
                None => DatabaseState::Store(self.head("user_version")?),
            },
            other => DatabaseState::Foreign(format!(
                "its application id is {other:#x}, expected {APPLICATION:#x}"
            )),
        })
    }

    fn batch(&self, sql: &str) -> Result<(), DatabaseError> {
        Ok(self.connection.execute_batch(sql)?)
    }
}

/// Converts `$1` to `?1`: in SQLite the first is a name, which is searched among all earlier parameters, and the second a number.
fn numbered(sql: &str) -> String {
    sql.replace('$', "?")
}

impl Database for Sqlite {
    fn found(&mut self) -> Result<DatabaseState, DatabaseError> {
        match self.state() {
            Err(rusqlite::Error::SqliteFailure(failure, _))
                if failure.code == ErrorCode::NotADatabase =>
            {
                Ok(DatabaseState::Foreign(
                    "it is not an SQLite file".to_owned(),
                ))
            }
            found => Ok(found?),
        }
    }

    fn create(&mut self) -> Result<(), DatabaseError> {
        self.batch(&schema::tables(|declared| declared))?;
        self.batch(&format!(
            "PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {}",
            schema::VERSION
        ))
    }

    fn lock_creation(&mut self) -> Result<(), DatabaseError> {
        Ok(()) // `begin` has already locked
    }

    fn begin(&mut self) -> Result<(), DatabaseError> {
        self.batch("BEGIN IMMEDIATE")
    }

    fn commit(&mut self) -> Result<(), DatabaseError> {
        self.batch("COMMIT")
    }

    fn rollback(&mut self) -> Result<(), DatabaseError> {
        self.batch("ROLLBACK")
    }

    fn execute(&mut self, sql: &str, values: &[&Value]) -> Result<u64, DatabaseError> {
        let sql = numbered(sql);
        let touched = self.connection.execute(&sql, params_from_iter(values))?;
        Ok(touched as u64)
    }

    fn columns(&mut self) -> Result<Vec<String>, DatabaseError> {
        let query = self.connection.prepare("SELECT * FROM results LIMIT 0")?;
        let columns = query.column_names();
        Ok(columns.into_iter().map(str::to_owned).collect())
    }

    fn each(
        &mut self,
        sql: &str,
        values: &[&Value],
        take: &mut dyn FnMut(Vec<Value>),
    ) -> Result<(), DatabaseError> {
        let mut query = self.connection.prepare(&numbered(sql))?;
        let columns = query.column_count();
        let mut rows = query.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            let value = |at| row.get_ref(at).map(Value::of_sql);
            take((0..columns).map(value).collect::<Result<_, _>>()?);
        }
        Ok(())
    }

    fn rewrite_in_order(&mut self) -> Result<(), DatabaseError> {
        self.batch("VACUUM")
    }
}
