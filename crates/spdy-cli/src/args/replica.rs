//! Opens pages by name: a shipped one, one of an experiment, or recordings in a file.

use anyhow::Context;
use spdy_lab::experiment::builtin_experiments;
use spdy_page::open::{self, ImportOptions, OpenError, OpenedReplica};

use crate::outcome::Usage;

/// Opens `flags` or `portal`, a file of that name, or a page of an experiment. An unknown name is a usage error.
pub(crate) fn open_replica(name: &str, options: &ImportOptions) -> anyhow::Result<OpenedReplica> {
    match open::open_with(name, options) {
        Err(OpenError::NotFound { .. }) => of_experiment(name),
        opened => opened.with_context(|| format!("cannot open {name}")),
    }
}

/// The same with every page of a recording with several, at most `most`.
pub(crate) fn open_pages(name: &str, most: usize) -> anyhow::Result<Vec<OpenedReplica>> {
    match open::open_pages(name, most) {
        Err(OpenError::NotFound { .. }) => Ok(vec![of_experiment(name)?]),
        opened => opened.with_context(|| format!("cannot open {name}")),
    }
}

fn of_experiment(name: &str) -> anyhow::Result<OpenedReplica> {
    let page = builtin_experiments::page(name).map(OpenedReplica::whole);
    page.ok_or_else(|| {
        let shipped = builtin_experiments::PAGES.join(", ");
        let reason = format!("no such file; the shipped replicas are {shipped}");
        Usage(format!("unknown replica {name:?}: {reason}")).into()
    })
}
