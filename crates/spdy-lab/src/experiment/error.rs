//! Why a text is no experiment: the line, and what was expected there.

use std::fmt;

/// Why an experiment cannot be run.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The text is not what an experiment is written in.
    #[error("{place}: {what}")]
    Text {
        /// Where.
        place: TextPosition,
        /// What was expected and what was found.
        what: String,
    },
    /// Each level is right by itself, and together they are not.
    #[error("cell {key}: {what}")]
    Cell {
        /// The cell.
        key: String,
        /// What does not go together.
        what: String,
    },
}

/// A place in a text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TextPosition {
    /// From 1.
    pub line: usize,
    /// Characters from the start of the line, from 1.
    pub column: usize,
}

impl TextPosition {
    /// Where byte `at` of `text` is.
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
