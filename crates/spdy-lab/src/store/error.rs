//! Errors of stores.

use std::io;
use std::path::PathBuf;

use crate::store::database::DatabaseError;
use crate::store::location::Location;
use crate::store::schema::VERSION;

/// Why a store cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A database operation failed.
    #[error("{store}: {cause}")]
    Database {
        /// The store.
        store: Location,
        /// The cause.
        cause: DatabaseError,
    },
    /// The store does not exist.
    #[error("store {store} does not exist")]
    Missing {
        /// The store.
        store: Location,
    },
    /// It exists already.
    #[error("{store} already exists and is not overwritten")]
    Exists {
        /// The store.
        store: Location,
    },
    /// The database is not a store.
    #[error("{store} is not an experiment store: {what}")]
    Foreign {
        /// The store.
        store: Location,
        /// Its content.
        what: String,
    },
    /// A store of another version of this program.
    #[error("{store} is a store of version {found}, expected {VERSION}")]
    Version {
        /// The store.
        store: Location,
        /// Its version.
        found: i64,
    },
    /// A store with columns that this build does not have, or without columns that it writes.
    #[error("{store}, table results: {what}")]
    Columns {
        /// The store.
        store: Location,
        /// What was expected and what was found.
        what: String,
    },
    /// A store of another plan, page, program or model.
    #[error("{store} has results of {of} {found}, expected {expected}: use another store")]
    Mismatch {
        /// The store.
        store: Location,
        /// The differing property.
        of: String,
        /// The value in the store.
        found: String,
        /// The requested value.
        expected: String,
    },
    /// A cell that was loaded twice has two results, which one program never has.
    #[error("{store} has other results of the {difference}; use stores of the same build")]
    Differs {
        /// The store.
        store: Location,
        /// The difference.
        difference: Box<RowDifference>,
    },
    /// A store where Lulic's database was expected.
    #[error("{path} is an experiment store of spdy, expected a database of Lulic's: use spdy lab show to read it", path = .path.display())]
    OwnStore {
        /// The file.
        path: PathBuf,
    },
    /// A table to import that does not have Lulic's format.
    #[error("{path}, table results: {what}", path = .path.display())]
    Import {
        /// The file.
        path: PathBuf,
        /// Expected and found content.
        what: String,
    },
}

/// The difference between two rows of the same load.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "cell {cell}: {column} is {found:?} of run {run} in the store, and {expected:?} in this run"
)]
pub struct RowDifference {
    /// Key of the cell.
    pub cell: String,
    /// Number of the run.
    pub run: String,
    /// The first column that differs.
    pub column: &'static str,
    /// The value in the store.
    pub found: String,
    /// The value to be added.
    pub expected: String,
}

/// A store could not be written as another file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// It cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file cannot be written.
    #[error("cannot write the export: {0}")]
    Write(#[from] io::Error),
    /// Parquet cannot represent it, or cannot be written.
    #[cfg(feature = "parquet")]
    #[error("cannot write Parquet: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
}
