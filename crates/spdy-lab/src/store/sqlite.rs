//! A store in a file: SQLite.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, params_from_iter};

use crate::store::database::{Database, DatabaseError, Found};
use crate::store::schema::{self, APPLICATION};
use crate::store::value::Value;

/// How long to wait while another program reads or writes the file.
const PATIENCE: Duration = Duration::from_secs(30);

/// A SQLite file that is open.
pub(crate) struct Sqlite {
    pub(crate) connection: Connection,
}

impl Sqlite {
    /// Opens `path`, which `flags` may say to make.
    pub(crate) fn open(path: &Path, flags: OpenFlags) -> rusqlite::Result<Self> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(PATIENCE)?;
        Ok(Self { connection })
    }

    /// One of the numbers in the file's head.
    pub(crate) fn head(&self, pragma: &str) -> rusqlite::Result<i64> {
        self.connection
            .pragma_query_value(None, pragma, |row| row.get(0))
    }

    fn look(&self) -> rusqlite::Result<Found> {
        let query = "SELECT count(*) FROM sqlite_schema";
        let tables: i64 = self.connection.query_row(query, [], |row| row.get(0))?;
        if tables == 0 {
            return Ok(Found::Nothing);
        }
        Ok(match self.head("application_id")? {
            APPLICATION => Found::Store(self.head("user_version")?),
            other => Found::Other(format!(
                "its application id is {other:#x}, want {APPLICATION:#x}"
            )),
        })
    }

    fn batch(&self, sql: &str) -> Result<(), DatabaseError> {
        Ok(self.connection.execute_batch(sql)?)
    }
}

/// `$1` as `?1`: to SQLite the one is a name, which it looks for among all that came before, the other a number.
fn numbered(sql: &str) -> String {
    sql.replace('$', "?")
}

impl Database for Sqlite {
    fn found(&mut self) -> Result<Found, DatabaseError> {
        match self.look() {
            Err(rusqlite::Error::SqliteFailure(failure, _))
                if failure.code == ErrorCode::NotADatabase =>
            {
                Ok(Found::Other("it is no SQLite file".to_owned()))
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

    fn keep_others_from_creating(&mut self) -> Result<(), DatabaseError> {
        Ok(()) // `begin` has
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

    fn lay_out_anew(&mut self) -> Result<(), DatabaseError> {
        self.batch("VACUUM")
    }
}
