//! Opens an experiment by its name (a shipped one, or a file), and its pages.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use anyhow::Context;
use spdy_lab::experiment::builtin_experiments;
use spdy_lab::experiment::ineffective_factors::{self, IneffectiveFactor};
use spdy_lab::experiment::plan::Plan;
use spdy_lab::experiment::runner::Runner;
use spdy_page::open::ImportOptions;

use crate::args::open_replica;
use crate::outcome::Usage;
use crate::output::{Printer, WARN};

/// The version of this program; each row of a store has it.
pub(crate) const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// Largest size of an experiment's file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// A plan, and the folder of its relative paths.
pub(crate) struct Experiment {
    pub(crate) plan: Plan,
    folder: PathBuf,
}

impl Experiment {
    /// The shipped experiment called `name`, or the file at that path.
    pub(crate) fn open(name: &str) -> anyhow::Result<Self> {
        let (text, folder) = match builtin_experiments::experiment(name) {
            Some(text) => (text.to_owned(), PathBuf::new()),
            None => {
                let path = Path::new(name);
                (
                    read(path)?,
                    path.parent().unwrap_or(Path::new("")).to_owned(),
                )
            }
        };
        let plan = Plan::parse(&text).with_context(|| format!("invalid experiment {name}"))?;
        Ok(Self { plan, folder })
    }

    /// Prints which factors have no effect for which protocols, so that equal results are not misread.
    pub(crate) fn warn_ineffective(&self, printer: &Printer) {
        for IneffectiveFactor {
            factor,
            protocols,
            cells,
            reason,
        } in ineffective_factors::ineffective_factors(&self.plan)
        {
            let names: Vec<_> = protocols.iter().map(|protocol| protocol.name()).collect();
            let (names, all) = (names.join(", "), self.plan.len());
            printer.note(format_args!(
                "{WARN}{factor}{WARN:#} has no effect on {cells} of {all} cells ({names}): {reason}"
            ));
        }
        if let repeats @ 1.. = ineffective_factors::duplicate_cells(&self.plan) {
            printer.note(format_args!(
                "{repeats} cells differ from other cells only in their seeds; a report counts them once"
            ));
        }
    }

    /// The plan in a store. Its paths are relative to `folder` and must stay below it: a store may come from another
    /// person and must not choose which of our files are read.
    pub(crate) fn stored(plan: &str, folder: &Path) -> anyhow::Result<Self> {
        let plan = Plan::parse(plan).context("invalid plan in the store")?;
        for name in plan.pages() {
            anyhow::ensure!(
                stays_below(Path::new(name)),
                "the store has the page {name}, expected a path below the folder of the pages"
            );
        }
        let folder = folder.to_owned();
        Ok(Self { plan, folder })
    }

    /// Opens the pages: shipped ones by name, others from their files, whose paths start beside the experiment's.
    pub(crate) fn into_runner(self, printer: &Printer) -> anyhow::Result<Runner> {
        let mut replicas = Vec::with_capacity(self.plan.pages().len());
        for name in self.plan.pages() {
            let shipped = builtin_experiments::page(name);
            replicas.push(match shipped {
                Some(replica) => replica,
                None => {
                    let path = self.folder.join(name);
                    let opened = open_replica(&path.to_string_lossy(), &ImportOptions::default())?;
                    if !opened.notes.skipped.is_empty() {
                        printer.note(format_args!("{WARN}{name}{WARN:#}: {}", opened.notes));
                    }
                    opened.replica
                }
            });
        }
        Ok(Runner::new(self.plan, replicas))
    }
}

/// Whether `path` stays below the folder that it is relative to.
fn stays_below(path: &Path) -> bool {
    path.components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

fn read(path: &Path) -> anyhow::Result<String> {
    let shown = path.display();
    let file = File::open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            let shipped = builtin_experiments::EXPERIMENTS.join(", ");
            Usage(format!(
                "unknown experiment {shown}: no such file; the shipped experiments are {shipped}"
            ))
            .into()
        }
        _ => anyhow::Error::new(error).context(format!("cannot read {shown}")),
    })?;
    let mut text = String::new();
    let read = file.take(MAX_BYTES + 1).read_to_string(&mut text);
    read.with_context(|| format!("cannot read {shown}"))?;
    anyhow::ensure!(
        text.len() as u64 <= MAX_BYTES,
        "{shown} is longer than {MAX_BYTES} bytes"
    );
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_plan_reads_no_page_above_its_folder() {
        let stored = |page: &str| {
            let plan = format!("name = 'x'\npages = ['{page}']\n[factors]\nnetwork = 'dsl'\n");
            let stored = Experiment::stored(&plan, Path::new("pages"));
            stored.map(drop).map_err(|error| error.to_string())
        };
        for page in ["portal", "a.warc.gz", "./deep/a.warc.gz"] {
            assert_eq!(stored(page), Ok(()), "{page}");
        }
        for page in ["/dev/zero", "../a.warc.gz", "deep/../../a.warc.gz"] {
            let message = format!(
                "the store has the page {page}, expected a path below the folder of the pages"
            );
            assert_eq!(stored(page), Err(message));
        }
    }
}
