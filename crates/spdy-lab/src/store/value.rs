//! A value of a store, in databases, JSON and CSV.

use std::fmt::{self, Display};

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};
use serde::{Serialize, Serializer};

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// An integer; booleans are 1 and 0.
    Integer(i64),
    /// A number.
    Real(f64),
    /// A text.
    Text(String),
}

impl Value {
    /// The printed form of `text`.
    pub(crate) fn text(text: impl Display) -> Self {
        Self::Text(text.to_string())
    }

    /// The number, also of an integer.
    #[must_use]
    pub const fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Real(number) => Some(*number),
            Self::Null | Self::Text(_) => None,
        }
    }

    /// The value as a count.
    pub(crate) fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Integer(number) => u64::try_from(*number).ok(),
            Self::Null | Self::Real(_) | Self::Text(_) => None,
        }
    }

    /// The value as a text.
    #[must_use]
    pub const fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text.as_str()),
            Self::Null | Self::Integer(_) | Self::Real(_) => None,
        }
    }

    /// The value in a row of SQLite; bytes that are not UTF-8 are replaced.
    pub(crate) fn of_sql(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Integer(number),
            ValueRef::Real(number) => Self::Real(number),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                Self::Text(String::from_utf8_lossy(bytes).into_owned())
            }
        }
    }
}

impl From<u64> for Value {
    /// Counts of a load are far below SQLite's limit of 2^63.
    fn from(number: u64) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Integer(truth.into())
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Integer(number) => serializer.serialize_i64(*number),
            Self::Real(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

/// As in CSV: empty for no value, numbers that parse to the same value, and texts without quotes.
impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => Ok(()),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Real(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}
