//! What a store requires of a database.
//!
//! Every statement of the store is written once, in the SQL that SQLite and PostgreSQL share, with parameters `$1`, `$2`,
//! .. in their order. Behind this trait stands only what they do not share: how they are opened, what a transaction is
//! called, how a table is marked as one of a store, and what a value looks like on the way.

use crate::store::value::Value;

/// What stands where a store is looked for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum DatabaseState {
    /// Nothing was ever made there.
    Empty,
    /// A store of this version.
    Store(i64),
    /// Something else: what was seen.
    Foreign(String),
}

/// Why a database cannot do it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// An error of SQLite.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// A PostgreSQL server, or the way to it.
    #[error("{0}")]
    Postgres(String),
}

/// A database that is open.
pub(crate) trait Database {
    /// What is there.
    fn found(&mut self) -> Result<DatabaseState, DatabaseError>;

    /// Makes the tables where nothing is, inside a transaction.
    fn create(&mut self) -> Result<(), DatabaseError>;

    /// Makes other programs that would create tables here wait until the transaction is over.
    fn lock_creation(&mut self) -> Result<(), DatabaseError>;

    /// Begins a transaction.
    fn begin(&mut self) -> Result<(), DatabaseError>;

    /// Ends it for good.
    fn commit(&mut self) -> Result<(), DatabaseError>;

    /// Takes back all of it.
    fn rollback(&mut self) -> Result<(), DatabaseError>;

    /// Does one statement; gives how many rows it touched.
    fn execute(&mut self, sql: &str, values: &[&Value]) -> Result<u64, DatabaseError>;

    /// The columns that the table `results` has, in their order; PostgreSQL has them in lower case.
    fn columns(&mut self) -> Result<Vec<String>, DatabaseError>;

    /// Gives each row of a query to `take` as it comes; never are all held.
    fn each(
        &mut self,
        sql: &str,
        values: &[&Value],
        take: &mut dyn FnMut(Vec<Value>),
    ) -> Result<(), DatabaseError>;

    /// Rewrites the table in row order, so that the position of a row no longer depends on when it was written.
    fn rewrite_in_order(&mut self) -> Result<(), DatabaseError>;
}

/// Does `work` in one transaction: all of it, or nothing.
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
