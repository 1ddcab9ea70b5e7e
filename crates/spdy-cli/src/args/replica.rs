//! Opens pages by name: a shipped one, one of an experiment, or recordings in a file.

use anyhow::Context;
use spdy_lab::experiment::builtin_experiments;
use spdy_page::open::{self, ImportOptions, OpenError, OpenedReplica};
use spdy_page::replica::Replica;
use spdy_sim::load::{MAX_PAGES, check_page_count};

use crate::outcome::Usage;
use crate::output::{Printer, WARN};

/// Opens `flags` or `portal`, a file of that name, or a page of an experiment. An unknown name is a usage error.
pub(crate) fn open_replica(name: &str, options: &ImportOptions) -> anyhow::Result<OpenedReplica> {
    match open::open_with(name, options) {
        Err(OpenError::NotFound { .. }) => of_experiment(name),
        opened => opened.with_context(|| format!("cannot open {name}")),
    }
}

/// Opens the pages of `names`, each with a name of its own. In a visit, a file may have several pages; their number is checked.
/// Else only its first page is opened, and a note states that.
pub(crate) fn open_all(
    names: &[String],
    is_visit: bool,
    printer: &Printer,
) -> anyhow::Result<Vec<Replica>> {
    let mut replicas: Vec<Replica> = Vec::with_capacity(names.len());
    for name in names {
        let opened = match is_visit {
            false => vec![open_replica(name, &ImportOptions::default())?],
            true => open_pages(name, MAX_PAGES)?,
        };
        let file = (opened.len() == 1).then_some(&name[..]);
        for opened in opened {
            if !opened.notes.skipped.is_empty() {
                printer.note(format_args!("{WARN}{name}{WARN:#}: {}", opened.notes));
            }
            if let Some(note) = omitted_pages(opened.notes.pages).filter(|_| !is_visit) {
                printer.note(format_args!("{WARN}note{WARN:#}: {name} {note}"));
            }
            let mut replica = opened.replica;
            replica.name = free_name(&replica.name, file, &replicas);
            replicas.push(replica);
        }
    }
    if is_visit {
        check_page_count(replicas.len()).map_err(Usage)?;
    }
    Ok(replicas)
}

/// States that only the first page of a file with so many is loaded.
fn omitted_pages(pages: usize) -> Option<String> {
    match pages {
        0 | 1 => None,
        2..=MAX_PAGES => Some(format!(
            "has {pages} pages: the first is loaded; --visit loads all"
        )),
        _ => Some(format!("has {pages} pages: the first is loaded")),
    }
}

/// The name of a page in results, which identify pages by it: two files may contain the same page, and one file several pages.
fn free_name(own: &str, file: Option<&str>, others: &[Replica]) -> String {
    let is_free = |name: &String| others.iter().all(|other| other.name != *name);
    let numbered = (2..).map(|number| format!("{own} {number}"));
    let names = [Some(own), file].into_iter().flatten().map(str::to_owned);
    let mut names = names.chain(numbered);
    names.find(is_free).expect("numbers do not end")
}

/// The same as [`open_replica`] with every page of a recording with several, at most `most`.
fn open_pages(name: &str, most: usize) -> anyhow::Result<Vec<OpenedReplica>> {
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
