//! The user's recordings: pages of the time of SPDY, and the heads of everything in them.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use jiff::Timestamp;
use spdy_page::limits::Limits;
use spdy_page::open::{self, ImportOptions, OpenError};
use spdy_page::replica::Replica;
use spdy_sim::workers;

use crate::claims::recorded_heads::Heads;

/// Recordings from this day on are too recent.
const ERA_ENDS: &str = "2014-01-01T00:00:00Z";
/// Minimum number of resources of a page, which excludes redirects and error pages.
const MIN_RESOURCES: usize = 20;
/// Maximum bytes of bodies: some recordings state sizes of uncompressed bodies.
const MAX_BYTES: usize = 4_000_000;
/// Maximum number of pages of one recording.
const MAX_PAGES: usize = 64;

/// The recordings of a folder.
pub struct Corpus {
    pages: Vec<Replica>,
    heads: Vec<Heads>,
}

/// Why there is no corpus.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// The folder cannot be read.
    #[error("cannot read {}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file in it cannot be read.
    #[error(transparent)]
    File(OpenError),
    /// It has no usable recording.
    #[error("{} has no page from before 2014 with {MIN_RESOURCES} resources or more", path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
}

impl Corpus {
    /// Reads every recording of `folder`, in the order of their names. Skips folders, FIFOs, devices, other files and files of more
    /// than `Limits::file_bytes`.
    ///
    /// # Errors
    ///
    /// The folder or a file cannot be read, or no page is usable.
    ///
    /// # Panics
    ///
    /// If an import panics, which is a fault of this program.
    pub fn read(folder: &Path, threads: Option<NonZeroUsize>) -> Result<Self, CorpusError> {
        Self::read_within(folder, threads, &Limits::default())
    }

    fn read_within(
        folder: &Path,
        threads: Option<NonZeroUsize>,
        limits: &Limits,
    ) -> Result<Self, CorpusError> {
        let fault = |source| CorpusError::Folder {
            path: folder.to_owned(),
            source,
        };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(fault)? {
            files.push(entry.map_err(fault)?.path());
        }
        files.sort();
        let mut read: Vec<Option<_>> = files.iter().map(|_| None).collect();
        let work = |number: usize| match open::file(&files[number], limits) {
            Ok(bytes) => Ok(recording(&bytes, &files[number].to_string_lossy())),
            Err(OpenError::NotAFile { .. } | OpenError::Limit { .. }) => Ok((Vec::new(), None)),
            Err(error) => Err(error),
        };
        workers::each(files.len(), threads, work, |number, result| {
            read[number] = Some(result);
            ControlFlow::Continue(())
        });
        let mut corpus = Self {
            pages: Vec::new(),
            heads: Vec::new(),
        };
        for result in read.into_iter().flatten() {
            let (pages, heads) = result.map_err(CorpusError::File)?;
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

    /// Heads of all exchanges before 2014, by recording.
    pub(crate) fn heads(&self) -> &[Heads] {
        &self.heads
    }
}

/// The usable pages of one file, and all its heads; empty if it is no recording, or too recent.
fn recording(file: &Bytes, name: &str) -> (Vec<Replica>, Option<Heads>) {
    let ends: Timestamp = ERA_ENDS.parse().expect("a day");
    let mut pages = Vec::new();
    let mut heads = Heads::default();
    let mut documents = BTreeSet::new();
    for number in 1..=MAX_PAGES {
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
        let fits = replica.exchanges.len() >= MIN_RESOURCES && bytes <= MAX_BYTES;
        if fits && documents.insert(replica.document().url.clone()) {
            replica.name = format!("{}#{number}", replica.name);
            pages.push(replica);
        }
    }
    (pages, (!heads.is_empty()).then_some(heads))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recording of 2013 with this many resources.
    fn har(resources: usize) -> String {
        let entry = |number: usize| {
            let (path, kind) = match number {
                0 => (String::new(), "text/html"),
                _ => (format!("{number}.png"), "image/png"),
            };
            serde_json::json!({
                "pageref": "p", "startedDateTime": format!("2013-06-04T10:00:00.{number:03}Z"), "time": 9,
                "request": {"method": "GET", "url": format!("http://site.test/{path}"), "headers": []},
                "response": {
                    "status": 200, "headers": [{"name": "Content-Type", "value": kind}],
                    "content": {"size": 9, "mimeType": kind}, "bodySize": 9,
                },
                "timings": {"send": 0, "wait": 5, "receive": 4},
            })
        };
        let page = serde_json::json!({
            "id": "p", "startedDateTime": "2013-06-04T10:00:00.000Z", "title": "t", "pageTimings": {},
        });
        let entries: Vec<_> = (0..resources).map(entry).collect();
        let log = serde_json::json!({"version": "1.2", "pages": [page], "entries": entries});
        serde_json::json!({ "log": log }).to_string()
    }

    fn pages(folder: &Path, limits: &Limits) -> Result<usize, CorpusError> {
        Corpus::read_within(folder, None, limits).map(|corpus| corpus.pages().len())
    }

    #[cfg(unix)]
    #[test]
    fn files_that_are_no_recordings_are_skipped_without_blocking() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let text = har(MIN_RESOURCES);
        std::fs::write(at("page.har"), &text).unwrap();
        std::fs::write(at("small.har"), har(MIN_RESOURCES - 1)).unwrap();
        std::fs::write(at("notes.txt"), "no recording").unwrap();
        std::fs::create_dir(at("before")).unwrap();
        std::os::unix::fs::symlink("before", at("linked")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("zero")).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(at("a-fifo"))
            .status();
        assert!(made.unwrap().success());
        let just = Limits {
            file_bytes: text.len(),
            ..Limits::default()
        };
        assert_eq!(pages(folder.path(), &just).unwrap(), 1);

        let one_less = Limits {
            file_bytes: text.len() - 1,
            ..just
        };
        let message = pages(folder.path(), &one_less).unwrap_err().to_string();
        assert!(message.ends_with("20 resources or more"), "{message}");
        // A link without a target is an error, which names the link.
        std::os::unix::fs::symlink("nowhere", at("lost.har")).unwrap();
        let message = pages(folder.path(), &just).unwrap_err().to_string();
        assert!(message.contains("lost.har"), "{message}");
    }
}
