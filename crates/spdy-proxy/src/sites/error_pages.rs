//! The pages that a site shows in place of the accelerator's own error messages.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use http::StatusCode;

/// The largest page, bytes.
const MAX_PAGE_BYTES: usize = 1024 * 1024;

/// Pages by status.
#[derive(Clone, Debug, Default)]
pub(crate) struct ErrorPages(BTreeMap<u16, Bytes>);

impl ErrorPages {
    /// Reads the `files`, by status.
    ///
    /// # Errors
    ///
    /// The first file that cannot be read, or is too large.
    pub(crate) fn read(files: &BTreeMap<String, PathBuf>) -> Result<Self, (PathBuf, io::Error)> {
        let mut pages = BTreeMap::new();
        for (status, path) in files {
            let page = read_page(path).map_err(|error| (path.clone(), error))?;
            if let Ok(status) = status.parse() {
                pages.insert(status, page);
            }
        }
        Ok(Self(pages))
    }

    /// The page for `status`.
    pub(crate) fn get(&self, status: StatusCode) -> Option<Bytes> {
        self.0.get(&status.as_u16()).cloned()
    }
}

fn read_page(path: &Path) -> io::Result<Bytes> {
    let page = std::fs::read(path)?;
    match page.len() {
        0..=MAX_PAGE_BYTES => Ok(page.into()),
        found => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has {found} bytes, expected at most {MAX_PAGE_BYTES}"),
        )),
    }
}
