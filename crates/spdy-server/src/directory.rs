//! A folder as a site: read into memory once, and served from memory.
//!
//! ```text
//! site/index.html         /            also /index.html
//! site/a b/c.png          /a%20b/c.png
//! site/docs/index.html    /docs/       and /docs is sent there
//! site/.git/config        not served: hidden, as is any link out of the folder, or to one it lies in
//! ```
//!
//! A request is only looked up in the table of read files, so no target can lead out of the folder.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{self, HeaderMap};
use http::{HeaderValue, Method, StatusCode};

use crate::media_types;
use crate::site::LookupResult;
use crate::stored_response::StoredResponse;

/// Limits on what is read into memory.
#[derive(Clone, Copy, Debug)]
pub struct DirectoryLimits {
    /// Limit of all files together, bytes.
    pub bytes: u64,
    /// Limit of files.
    pub files: usize,
    /// Limit of nested folders.
    pub depth: usize,
}

impl Default for DirectoryLimits {
    fn default() -> Self {
        Self {
            bytes: 1024 * 1024 * 1024,
            files: 100_000,
            depth: 64,
        }
    }
}

/// Why a folder cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DirectoryError {
    /// A file or folder in it could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The folder exceeds a limit.
    #[error("{} has more than {limit} {unit}", path.display())]
    LimitExceeded {
        /// The served folder.
        path: PathBuf,
        /// The unit of the limit: bytes, files or nested folders.
        unit: &'static str,
        /// The limit.
        limit: u64,
    },
}

/// Files by the path of their requests, percent-decoded.
#[derive(Debug)]
pub struct Directory {
    files: BTreeMap<Vec<u8>, StoredResponse>,
}

impl Directory {
    /// Reads the folder at `root`.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or a limit is exceeded.
    pub fn read(root: &Path, limits: &DirectoryLimits) -> Result<Self, DirectoryError> {
        let canonical = root.canonicalize().map_err(|source| fault(root, source))?;
        let mut reading = DirectoryReader {
            root,
            within: vec![canonical.clone()],
            canonical,
            limits,
            bytes: 0,
            files: BTreeMap::new(),
        };
        reading.folder(root, b"/", 0)?;
        Ok(Self {
            files: reading.files,
        })
    }

    /// Number of served paths.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// True if there is no file.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Every served path as a target, with its file.
    pub(crate) fn responses(&self) -> impl Iterator<Item = (String, &StoredResponse)> {
        let files = self.files.iter();
        files.map(|(path, response)| (String::from_utf8_lossy(path).into_owned(), response))
    }

    /// The file at `target`.
    pub(crate) fn response(&self, target: &str) -> Option<&StoredResponse> {
        match self.find(&Method::GET, target) {
            LookupResult::Response(response) => Some(response),
            _ => None,
        }
    }

    /// The result of `method` for `target`; a query is ignored.
    pub(crate) fn find(&self, method: &Method, target: &str) -> LookupResult<'_> {
        let is_end = |byte: u8| matches!(byte, b'?' | b'#');
        let path = &target[..target.bytes().position(is_end).unwrap_or(target.len())];
        let name = percent_decoded(path);
        let Some(response) = self.files.get(&*name) else {
            let folder = [&*name, b"/"].concat();
            return match self.files.contains_key(&folder) {
                // At most one leading slash: "//host/" would be another host (RFC 3986 §4.2).
                true => LookupResult::Redirect(format!("/{}/", path.trim_start_matches('/'))),
                false => LookupResult::NoTarget,
            };
        };
        match *method {
            Method::GET => LookupResult::Response(response),
            _ => LookupResult::OtherMethods(vec![Method::GET]),
        }
    }
}

struct DirectoryReader<'a> {
    root: &'a Path,
    canonical: PathBuf,
    /// The folders that are being read, from the root down: a link to one of them would be a loop.
    within: Vec<PathBuf>,
    limits: &'a DirectoryLimits,
    bytes: u64,
    files: BTreeMap<Vec<u8>, StoredResponse>,
}

impl DirectoryReader<'_> {
    fn folder(&mut self, folder: &Path, prefix: &[u8], depth: usize) -> Result<(), DirectoryError> {
        if depth > self.limits.depth {
            return Err(self.over_limit("folders in folders", self.limits.depth as u64));
        }
        let entries = std::fs::read_dir(folder).map_err(|source| fault(folder, source))?;
        let mut paths = Vec::new();
        for entry in entries {
            paths.push(entry.map_err(|source| fault(folder, source))?.path());
        }
        paths.sort();
        for path in paths {
            let Some(name) = path.file_name().map(std::ffi::OsStr::as_encoded_bytes) else {
                continue;
            };
            if is_hidden(name) {
                continue;
            }
            let real = match path.canonicalize() {
                Ok(real) if real.starts_with(&self.canonical) => real,
                _ => continue, // a link to a target outside of the folder, or without a target
            };
            let key = [prefix, name].concat();
            let metadata = std::fs::metadata(&path).map_err(|source| fault(&path, source))?;
            if metadata.is_dir() {
                if self.within.contains(&real) {
                    continue;
                }
                self.within.push(real);
                self.folder(&path, &[&key[..], b"/"].concat(), depth + 1)?;
                self.within.pop();
            } else if metadata.is_file() {
                self.file(&path, key, &metadata)?;
            }
        }
        Ok(())
    }

    fn file(
        &mut self,
        path: &Path,
        key: Vec<u8>,
        metadata: &std::fs::Metadata,
    ) -> Result<(), DirectoryError> {
        self.bytes = self.bytes.saturating_add(metadata.len());
        if self.bytes > self.limits.bytes {
            return Err(self.over_limit("bytes", self.limits.bytes));
        }
        if self.files.len() >= self.limits.files {
            return Err(self.over_limit("files", self.limits.files as u64));
        }
        let body = std::fs::read(path).map_err(|source| fault(path, source))?;
        let name = String::from_utf8_lossy(&key).into_owned();
        let response = file_response(&name, body.into(), metadata.modified().ok());
        if let Some(folder) = key.strip_suffix(b"index.html")
            && folder.ends_with(b"/")
        {
            self.files.insert(folder.to_vec(), response.clone());
        }
        self.files.insert(key, response);
        Ok(())
    }

    fn over_limit(&self, unit: &'static str, limit: u64) -> DirectoryError {
        DirectoryError::LimitExceeded {
            path: self.root.to_owned(),
            unit,
            limit,
        }
    }
}

fn fault(path: &Path, source: io::Error) -> DirectoryError {
    DirectoryError::Read {
        path: path.to_owned(),
        source,
    }
}

/// True for dot files, except the one folder that is meant to be public (RFC 8615).
fn is_hidden(name: &[u8]) -> bool {
    name.starts_with(b".") && name != b".well-known"
}

fn file_response(name: &str, body: Bytes, modified: Option<SystemTime>) -> StoredResponse {
    let mut headers = HeaderMap::new();
    let media_type = HeaderValue::from_static(media_types::of(name));
    headers.insert(header::CONTENT_TYPE, media_type);
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    let age = modified.and_then(|modified| modified.duration_since(UNIX_EPOCH).ok());
    if let Some((age, modified)) = age.zip(modified) {
        let date = httpdate::fmt_http_date(modified);
        let tag = format!("\"{:x}-{:x}\"", age.as_nanos(), body.len());
        let text = |value: String| HeaderValue::try_from(value).expect("visible ASCII");
        headers.insert(header::LAST_MODIFIED, text(date));
        headers.insert(header::ETAG, text(tag));
    }
    StoredResponse::new(StatusCode::OK, headers, body)
}

/// Decodes `%41` to `A`; a `%` without two digits is unchanged.
fn percent_decoded(path: &str) -> Cow<'_, [u8]> {
    let bytes = path.as_bytes();
    if !bytes.contains(&b'%') {
        return Cow::Borrowed(bytes);
    }
    let digit = |at: usize| {
        bytes
            .get(at)
            .and_then(|&byte| char::from(byte).to_digit(16))
    };
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    Cow::Owned(out)
}
