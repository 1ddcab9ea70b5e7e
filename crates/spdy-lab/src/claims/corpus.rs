//! The user's recordings: pages of the time of SPDY, and the heads of everything in them.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use jiff::Timestamp;
use spdy_page::open::{self, ImportOptions, OpenError};
use spdy_page::replica::Replica;

use crate::claims::headers::Heads;
use crate::workers;

/// Recordings from this day on are of another time.
const ERA_ENDS: &str = "2014-01-01T00:00:00Z";
/// Fewest resources of a page that is loaded: redirects and error pages are none.
const LEAST_RESOURCES: usize = 20;
/// Most bytes of bodies: sizes in some recordings are those of what was unpacked.
const MOST_BYTES: usize = 4_000_000;
/// Most pages of one recording.
const MOST_PAGES: usize = 64;

/// What a folder of recordings holds.
pub struct Corpus {
    pages: Vec<Replica>,
    heads: Vec<Heads>,
}

/// Why there is no corpus.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The folder or file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Nothing in it is of use.
    #[error("{} holds no page of before 2014 with {LEAST_RESOURCES} resources or more", path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
}

impl Corpus {
    /// Reads every recording of `folder`, in the order of their names; what is none is passed over.
    ///
    /// # Errors
    ///
    /// The folder or a file cannot be read, or holds no page of use.
    ///
    /// # Panics
    ///
    /// If an import panics, which is a fault of this program.
    pub fn read(folder: &Path, threads: Option<NonZeroUsize>) -> Result<Self, CorpusError> {
        let fault = |path: &Path| {
            let path = path.to_owned();
            move |source| CorpusError::Read { path, source }
        };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(fault(folder))? {
            files.push(entry.map_err(fault(folder))?.path());
        }
        files.sort();
        let mut read: Vec<Option<_>> = files.iter().map(|_| None).collect();
        let work = |number: usize| {
            let bytes = std::fs::read(&files[number])?;
            Ok(recording(&bytes.into(), &files[number].to_string_lossy()))
        };
        workers::each(files.len(), threads, work, |number, result| {
            read[number] = Some(result);
            ControlFlow::Continue(())
        });
        let mut corpus = Self {
            pages: Vec::new(),
            heads: Vec::new(),
        };
        for (file, result) in files.iter().zip(read.into_iter().flatten()) {
            let (pages, heads) = result.map_err(fault(file))?;
            corpus.pages.extend(pages);
            corpus.heads.extend(heads);
        }
        if corpus.pages.is_empty() {
            let path = folder.to_owned();
            return Err(CorpusError::Empty { path });
        }
        Ok(corpus)
    }

    /// Pages recorded before 2014 that have 20 resources or more and at most 4 MB.
    #[must_use]
    pub fn pages(&self) -> &[Replica] {
        &self.pages
    }

    /// Heads of all exchanges of before 2014, a recording each.
    pub(crate) fn heads(&self) -> &[Heads] {
        &self.heads
    }
}

/// The pages of one file that are of use, and all its heads; nothing if it is no recording, or of another time.
fn recording(file: &Bytes, name: &str) -> (Vec<Replica>, Option<Heads>) {
    let ends: Timestamp = ERA_ENDS.parse().expect("a day");
    let mut pages = Vec::new();
    let mut heads = Heads::default();
    let mut documents = BTreeSet::new();
    for number in 1..=MOST_PAGES {
        let options = ImportOptions {
            page: Some(number),
            ..ImportOptions::default()
        };
        let mut replica = match open::read(file.clone(), name, &options) {
            Ok(opened) => opened.replica,
            Err(OpenError::NoPageLoad { .. }) => continue,
            Err(_) => break,
        };
        if replica.recorded.is_none_or(|recorded| recorded >= ends) {
            continue;
        }
        heads.add(&replica);
        let bytes: usize = replica
            .exchanges
            .iter()
            .map(|exchange| exchange.body.len())
            .sum();
        let fits = replica.exchanges.len() >= LEAST_RESOURCES && bytes <= MOST_BYTES;
        if fits && documents.insert(replica.document().url.clone()) {
            replica.name = format!("{}#{number}", replica.name);
            pages.push(replica);
        }
    }
    (pages, (!heads.is_empty()).then_some(heads))
}
