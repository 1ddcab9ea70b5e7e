//! Why a store cannot be read or written.

use std::path::PathBuf;

use crate::store::schema::VERSION;

/// Why a store cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// SQLite cannot do it.
    #[error("{path}: {cause}", path = .path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What it says.
        cause: rusqlite::Error,
    },
    /// There is no such file.
    #[error("there is no store {path}", path = .path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file is there before us, and is to be made.
    #[error("{path} is there already, and is not written over", path = .path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A file of something else.
    #[error("{path} is no store of experiments: {what}", path = .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What was seen.
        what: String,
    },
    /// A store of another version of this program.
    #[error("{path} is a store of version {got}, want {VERSION}", path = .path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version that it says.
        got: i64,
    },
    /// A store of another plan, page or program.
    #[error("{path} holds results of {of} {got}, want {want}: name another store", path = .path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// What is another one.
        of: String,
        /// What the file says.
        got: String,
        /// What was asked for.
        want: String,
    },
    /// A store where Lulic's database was wanted.
    #[error("{path} is a store of spdy already, want a database of Lulic's: spdy lab show reads it as it is", path = .path.display())]
    Ours {
        /// The file.
        path: PathBuf,
    },
    /// A table to import that is not as Lulic's.
    #[error("{path}, table results: {what}", path = .path.display())]
    Import {
        /// The file.
        path: PathBuf,
        /// What was wanted and what came.
        what: String,
    },
}
