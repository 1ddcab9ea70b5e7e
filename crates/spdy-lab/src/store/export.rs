//! Why a store cannot be written as something else.

use std::io;

use crate::store::error::StoreError;

/// Why a store is no other file yet.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// It cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file cannot be written.
    #[error("cannot write what is exported: {0}")]
    Write(#[from] io::Error),
    /// Parquet cannot hold it, or cannot be written.
    #[cfg(feature = "parquet")]
    #[error("cannot write Parquet: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
}
