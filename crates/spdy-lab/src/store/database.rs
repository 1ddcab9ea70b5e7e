//! The interface of a store to its database.
//!
//! Every statement of the store is written once, in the SQL that SQLite and PostgreSQL share, with parameters `$1`, `$2`, .. in their
//! order. This trait has only their differences: opening, transactions, the marker of a store, and conversion of values.

use crate::store::value::Value;

/// The content of a database before it is used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum DatabaseState {
    /// Empty.
    Empty,
    /// A store of this version.
    Store(i64),
    /// Something else, with a description.
    Foreign(String),
}

/// Why a database operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// An error of SQLite.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// An error of a PostgreSQL server, or of the connection to it.
    #[error("{0}")]
    Postgres(String),
}

/// An open database.
pub(crate) trait Database {
    /// Its content.
    fn found(&mut self) -> Result<DatabaseState, DatabaseError>;

    /// Creates the tables in an empty database, inside a transaction.
    fn create(&mut self) -> Result<(), DatabaseError>;

    /// Blocks other programs that would create tables here, until the transaction ends.
    fn lock_creation(&mut self) -> Result<(), DatabaseError>;

    /// Begins a transaction.
    fn begin(&mut self) -> Result<(), DatabaseError>;

    /// Commits the transaction.
    fn commit(&mut self) -> Result<(), DatabaseError>;

    /// Rolls the transaction back.
    fn rollback(&mut self) -> Result<(), DatabaseError>;

    /// Executes one statement. Returns the number of affected rows.
    fn execute(&mut self, sql: &str, values: &[&Value]) -> Result<u64, DatabaseError>;

    /// The columns that the table `results` has, in their order; PostgreSQL has them in lower case.
    fn columns(&mut self) -> Result<Vec<String>, DatabaseError>;

    /// Passes each row of a query to `take` as it arrives; they are never all in memory.
    fn each(
        &mut self,
        sql: &str,
        values: &[&Value],
        take: &mut dyn FnMut(Vec<Value>),
    ) -> Result<(), DatabaseError>;

    /// Rewrites the table in row order, so that the position of a row no longer depends on when it was written.
    fn rewrite_in_order(&mut self) -> Result<(), DatabaseError>;
}

/// Calls `work` in one transaction.
pub(crate) fn in_transaction<T, E: From<DatabaseError>>(
    database: &mut dyn Database,
    work: impl FnOnce(&mut dyn Database) -> Result<T, E>,
) -> Result<T, E> {
    database.begin()?;
    let done = work(database);
    match done {
        Ok(_) => database.commit()?,
        // The first error is the useful one, so a failed rollback is ignored; a lost connection rolls back by itself.
        Err(_) => drop(database.rollback()),
    }
    done
}
