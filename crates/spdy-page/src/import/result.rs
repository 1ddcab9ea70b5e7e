//! The options of an import, and what it returns.

use crate::import::notes::ImportNotes;
use crate::limits::Limits;
use crate::replica::{Replica, archive};

/// Options of an import.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ImportOptions {
    /// Which page of a recording of several, from 1; `None` for the first that has a document.
    pub page: Option<usize>,
    /// Bounds of what the file may make us hold.
    pub limits: Limits,
}

/// A replica, and what its import left out.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OpenedReplica {
    /// The page.
    pub replica: Replica,
    /// What was skipped, changed or made up.
    pub notes: ImportNotes,
}

impl OpenedReplica {
    /// `replica` as it is.
    #[must_use]
    pub fn whole(replica: Replica) -> Self {
        let mut notes = ImportNotes::new(archive::FORMAT);
        notes.count(&replica.exchanges);
        Self { replica, notes }
    }
}
