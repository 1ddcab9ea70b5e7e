//! Where a store is: a SQLite file, or a schema of a PostgreSQL database.

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use crate::store::postgres::url::PostgresUrl;

/// Where a store is.
#[derive(Clone, Debug)]
pub enum Location {
    /// A SQLite file.
    File(PathBuf),
    /// A PostgreSQL database.
    Postgres(PostgresUrl),
}

impl Location {
    /// What `text` names: a database if it is a URL of PostgreSQL, else a file. It is not checked here:
    /// opening it fails if it is invalid or cannot be reached.
    #[must_use]
    pub fn new(text: &OsStr) -> Self {
        match text.to_str().and_then(PostgresUrl::new) {
            Some(url) => Self::Postgres(url),
            None => Self::File(text.into()),
        }
    }

    /// The file that it is, if it is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Postgres(_) => None,
        }
    }
}

impl From<OsString> for Location {
    fn from(text: OsString) -> Self {
        Self::new(&text)
    }
}

/// As it was named, without secrets.
impl Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Postgres(url) => url.fmt(f),
        }
    }
}
