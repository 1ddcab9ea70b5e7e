//! The options of an import, and its result.

use crate::import::notes::ImportNotes;
use crate::limits::Limits;
use crate::replica::{Replica, archive};

/// Options of an import.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ImportOptions {
    /// The page of a recording with several, from 1; `None` for the first that has a document.
    pub page: Option<usize>,
    /// Limits for the file.
    pub limits: Limits,
}

/// A replica with the notes of its import.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OpenedReplica {
    /// The page.
    pub replica: Replica,
    /// Skipped, changed or synthetic parts.
    pub notes: ImportNotes,
}

impl OpenedReplica {
    /// Wraps `replica` without notes.
    #[must_use]
    pub fn whole(replica: Replica) -> Self {
        let mut notes = ImportNotes::new(archive::FORMAT);
        notes.count(&replica.exchanges);
        Self { replica, notes }
    }
}
