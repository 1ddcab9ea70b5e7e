//! Opens a page by its name: a shipped one, one of an experiment, or a recording in a file.

use anyhow::Context;
use spdy_lab::experiment::builtin_experiments;
use spdy_page::open::{self, ImportOptions, OpenError, OpenedReplica};

use crate::outcome::Usage;

/// Opens `flags` or `portal`, a file of that name, or a page of an experiment. An unknown name is a usage error.
pub(crate) fn open_replica(name: &str, options: &ImportOptions) -> anyhow::Result<OpenedReplica> {
    match open::open_with(name, options) {
        Err(OpenError::NotFound { name, .. }) => {
            let of_experiment = builtin_experiments::page(&name).map(OpenedReplica::whole);
            of_experiment.ok_or_else(|| {
                let shipped = builtin_experiments::PAGES.join(", ");
                let reason = format!("no such file; the shipped replicas are {shipped}");
                Usage(format!("unknown replica {name:?}: {reason}")).into()
            })
        }
        opened => opened.with_context(|| format!("cannot open {name}")),
    }
}
