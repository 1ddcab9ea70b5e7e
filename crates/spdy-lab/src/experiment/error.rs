//! Errors of an experiment's text: the line, and the expected content.

use std::fmt;

/// Why an experiment cannot be run.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The text is no experiment.
    #[error("{place}: {what}")]
    Text {
        /// The position.
        place: TextPosition,
        /// Expected and found content.
        what: String,
    },
    /// Each level is valid by itself, but they contradict each other.
    #[error("cell {key}: {what}")]
    Cell {
        /// The cell.
        key: String,
        /// The contradiction.
        what: String,
    },
}

/// A position in a text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TextPosition {
    /// From 1.
    pub line: usize,
    /// Characters from the start of the line, from 1.
    pub column: usize,
}

impl TextPosition {
    /// The position of byte `at` of `text`.
    pub(crate) fn of(text: &str, at: usize) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for TextPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}
