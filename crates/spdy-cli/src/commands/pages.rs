//! Pages by name: those that ship, with those of the lab's experiments, and recordings in files.

use spdy_lab::experiment::shipped;
use spdy_page::notes::ImportNotes;
use spdy_page::open::{self, ImportOptions, OpenError, Opened};

use crate::commands::Usage;

/// Opens a page; a name that nothing has is a usage error.
pub(crate) fn open_replica(name: &str, options: &ImportOptions) -> anyhow::Result<Opened> {
    if let Some(replica) = shipped::page(name) {
        let notes = ImportNotes::default();
        return Ok(Opened { replica, notes });
    }
    open::open_with(name, options).map_err(|error| match error {
        OpenError::NoSuch { name } => {
            let shipped = shipped::PAGES.join(", ");
            Usage(format!(
                "no replica {name:?}: no file of that name, and the shipped ones are {shipped}"
            ))
            .into()
        }
        other => anyhow::Error::new(other).context(format!("cannot open {name}")),
    })
}
