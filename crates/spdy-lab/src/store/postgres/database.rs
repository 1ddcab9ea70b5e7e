//! A store on a server: PostgreSQL, for many machines at once.
//!
//! A store is one schema of one database, the first of the search path. The table `spdy_store` marks it as a store and has its
//! version.
//!
//! Transactions are of the default kind (READ COMMITTED). A client that adds a row which another transaction is adding
//! waits for the end of that transaction. If that transaction commits, the row is there already. If its client dies,
//! the server rolls it back and the row is added after all. If neither happens, the server ends it after half a minute.
//! Rows are added in the order of their ids, so that no two clients wait for each other.

use std::time::Duration;

use ::postgres::Client;
use ::postgres::fallible_iterator::FallibleIterator as _;
use ::postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use bytes::BytesMut;

use crate::store::database::{Database, DatabaseError, DatabaseState};
use crate::store::postgres::tls::Tls;
use crate::store::postgres::url::{PostgresUrl, chain};
use crate::store::schema::{self, APPLICATION};
use crate::store::value::Value;

/// Timeout for another program that writes the same rows, and time after which the server rolls back the transaction of a program
/// that has stopped in the middle.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// A connection to a server.
pub(crate) struct Postgres {
    client: Client,
}

impl From<::postgres::Error> for DatabaseError {
    fn from(error: ::postgres::Error) -> Self {
        // The server's own message has the details.
        let message = error.as_db_error().map(|server_error| {
            let detail = server_error.detail().map(|detail| format!(" ({detail})"));
            format!("{}{}", server_error.message(), detail.unwrap_or_default())
        });
        Self::Postgres(message.unwrap_or_else(|| chain(&error)))
    }
}

impl Postgres {
    /// Connects to `url`.
    pub(crate) fn connect(url: &PostgresUrl) -> Result<Self, DatabaseError> {
        let target = url.target().map_err(DatabaseError::Postgres)?;
        let tls = Tls::new(&target).map_err(|error| DatabaseError::Postgres(chain(&error)))?;
        let mut client = target.config.connect(tls)?;
        // Texts are UTF-8 in any encoding of the database. Settings of the URL or the database stay.
        client.batch_execute(&format!(
            "SET client_encoding = 'UTF8';
             SELECT set_config(name, '{ms}', false) FROM pg_catalog.pg_settings
             WHERE name IN ('lock_timeout', 'idle_in_transaction_session_timeout') AND setting = '0'",
            ms = LOCK_TIMEOUT.as_millis()
        ))?;
        Ok(Self { client })
    }

    fn batch(&mut self, sql: &str) -> Result<(), DatabaseError> {
        Ok(self.client.batch_execute(sql)?)
    }

    /// True if the schema has the table `table`, or any table if `None`.
    fn has(&mut self, table: Option<&str>) -> Result<bool, DatabaseError> {
        let query = "SELECT count(*) FROM pg_catalog.pg_tables \
                     WHERE schemaname = current_schema() AND tablename = coalesce($1, tablename)";
        let tables: i64 = self.client.query_one(query, &[&table])?.try_get(0)?;
        Ok(tables > 0)
    }
}

/// Converts SQLite's types to PostgreSQL's, whose INT and REAL have four bytes.
fn as_declared(declared: &'static str) -> &'static str {
    match declared {
        "INTEGER PRIMARY KEY" => "BIGINT PRIMARY KEY",
        "INT" => "BIGINT",
        "REAL" | "FLOAT" => "DOUBLE PRECISION",
        text => text,
    }
}

impl Database for Postgres {
    fn found(&mut self) -> Result<DatabaseState, DatabaseError> {
        if self.has(Some("spdy_store"))? {
            let query = "SELECT version FROM spdy_store";
            let version = self.client.query_one(query, &[])?.try_get(0)?;
            return Ok(DatabaseState::Store(version));
        }
        Ok(match self.has(None)? {
            false => DatabaseState::Empty,
            true => DatabaseState::Foreign("it has tables, but no table spdy_store".to_owned()),
        })
    }

    fn create(&mut self) -> Result<(), DatabaseError> {
        self.batch(&schema::tables(as_declared))?;
        self.batch(&format!(
            "CREATE TABLE spdy_store (version BIGINT); INSERT INTO spdy_store VALUES ({})",
            schema::VERSION
        ))
    }

    fn lock_creation(&mut self) -> Result<(), DatabaseError> {
        self.batch(&format!("SELECT pg_advisory_xact_lock({APPLICATION})"))
    }

    fn begin(&mut self) -> Result<(), DatabaseError> {
        self.batch("BEGIN")
    }

    fn commit(&mut self) -> Result<(), DatabaseError> {
        self.batch("COMMIT")
    }

    fn rollback(&mut self) -> Result<(), DatabaseError> {
        self.batch("ROLLBACK")
    }

    fn execute(&mut self, sql: &str, values: &[&Value]) -> Result<u64, DatabaseError> {
        let values: Vec<_> = values
            .iter()
            .map(|value| *value as &(dyn ToSql + Sync))
            .collect();
        Ok(self.client.execute(sql, &values)?)
    }

    fn columns(&mut self) -> Result<Vec<String>, DatabaseError> {
        let query = self.client.prepare("SELECT * FROM results LIMIT 0")?;
        let columns = query.columns().iter();
        Ok(columns.map(|column| column.name().to_owned()).collect())
    }

    fn each(
        &mut self,
        sql: &str,
        values: &[&Value],
        take: &mut dyn FnMut(Vec<Value>),
    ) -> Result<(), DatabaseError> {
        let mut rows = self.client.query_raw(sql, values.iter().copied())?;
        while let Some(row) = rows.next()? {
            let value = |at| row.try_get::<_, Value>(at);
            take((0..row.len()).map(value).collect::<Result<_, _>>()?);
        }
        Ok(())
    }

    fn rewrite_in_order(&mut self) -> Result<(), DatabaseError> {
        Ok(()) // the server decides about the position of a row
    }
}

/// The error of a value that does not fit its column.
#[derive(Debug, thiserror::Error)]
#[error("cannot store {value:?} in a column of {column_type}")]
struct NotOfType {
    value: Value,
    column_type: Type,
}

impl ToSql for Value {
    /// As in SQLite, an integer may be stored in a column of reals, and vice versa if nothing is lost.
    fn to_sql(
        &self,
        column_type: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match (self, column_type) {
            (Self::Null, _) => Ok(IsNull::Yes),
            (Self::Integer(number), &Type::INT8) => number.to_sql(column_type, out),
            (Self::Integer(number), &Type::FLOAT8) => (*number as f64).to_sql(column_type, out),
            (Self::Real(number), &Type::FLOAT8) => number.to_sql(column_type, out),
            (Self::Real(number), &Type::INT8) if (*number as i64) as f64 == *number => {
                (*number as i64).to_sql(column_type, out)
            }
            (Self::Text(text), _) => text.to_sql(column_type, out),
            _ => Err(Box::new(NotOfType {
                value: self.clone(),
                column_type: column_type.clone(),
            })),
        }
    }

    fn accepts(column_type: &Type) -> bool {
        [Type::INT8, Type::FLOAT8, Type::TEXT].contains(column_type)
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Value {
    fn from_sql(
        of: &Type,
        raw: &'a [u8],
    ) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(match *of {
            Type::INT8 => Self::Integer(i64::from_sql(of, raw)?),
            Type::INT4 => Self::Integer(i32::from_sql(of, raw)?.into()),
            Type::FLOAT8 => Self::Real(f64::from_sql(of, raw)?),
            _ => Self::Text(String::from_sql(of, raw)?),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self::Null)
    }

    fn accepts(of: &Type) -> bool {
        // A number in a query has the smaller type.
        *of == Type::INT4 || <Self as ToSql>::accepts(of)
    }
}
