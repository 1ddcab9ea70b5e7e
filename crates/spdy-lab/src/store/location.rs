//! The location of a store: a SQLite file, or a schema of a PostgreSQL database.

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use crate::store::postgres::url::PostgresUrl;

/// The location of a store.
#[derive(Clone, Debug)]
pub enum Location {
    /// A SQLite file.
    File(PathBuf),
    /// A PostgreSQL database.
    Postgres(PostgresUrl),
}

impl Location {
    /// Parses `text`: a PostgreSQL URL is a database, any other text is a file. It is not checked here: opening fails if it is
    /// invalid or cannot be reached.
    #[must_use]
    pub fn new(text: &OsStr) -> Self {
        match text.to_str().and_then(PostgresUrl::new) {
            Some(url) => Self::Postgres(url),
            None => Self::File(text.into()),
        }
    }

    /// The path, if it is a file.
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

/// As it was written, without secrets.
impl Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Postgres(url) => url.fmt(f),
        }
    }
}
