//! A local authority that outlives the process, so that a browser which trusts it once keeps trusting it.
//!
//! ```text
//! ca.pem        its certificate alone, to be given to clients (0644)
//! ca.key.pem    its key and its certificate, for the owner alone (0600)
//! ```
//!
//! Key and certificate are in one file that is created atomically. If two processes create it at the same time, both use
//! the first one.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::tls::certificates::{KeyKind, LocalCa, read};
use crate::tls::error::TlsSetupError;

impl LocalCa {
    /// Where the key of the authority with this certificate file is.
    #[must_use]
    pub fn key_file(certificate: &Path) -> PathBuf {
        certificate.with_extension("key.pem")
    }

    /// The authority whose certificate is in the file `certificate`, with its key [beside it](Self::key_file); it is made if it has no
    /// key there, and then `certificate` is overwritten. `kind` is that of keys that are made: the authority's and its leaves'.
    ///
    /// # Errors
    ///
    /// Files that cannot be read or written, or that hold no key and its certificate.
    pub fn load_or_create(certificate: &Path, kind: KeyKind) -> Result<Self, TlsSetupError> {
        let ca = match Self::load(certificate, kind)? {
            Some(ca) => ca,
            None => create_ca(&Self::key_file(certificate), kind)?,
        };
        if fs::read(certificate).ok().as_deref() != Some(ca.pem().as_bytes()) {
            let written = write_atomically(certificate, ca.pem().as_bytes(), 0o644, true);
            written.map_err(|source| at(certificate, source))?;
        }
        Ok(ca)
    }

    /// The same if it is there. Nothing is written.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or that holds no key and its certificate.
    pub fn load(certificate: &Path, kind: KeyKind) -> Result<Option<Self>, TlsSetupError> {
        let key_file = Self::key_file(certificate);
        let text = match read(&key_file) {
            Err(TlsSetupError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            text => text?,
        };
        Self::from_pem(&text, &key_file.display().to_string(), kind).map(Some)
    }
}

fn at(path: &Path, source: io::Error) -> TlsSetupError {
    TlsSetupError::Write {
        path: path.to_owned(),
        source,
    }
}

/// Makes an authority, or reads the one of a process that was quicker.
fn create_ca(key_file: &Path, kind: KeyKind) -> Result<LocalCa, TlsSetupError> {
    let made = LocalCa::generate(kind)?;
    let text = format!("{}{}", made.key_pem(), made.pem());
    match write_atomically(key_file, text.as_bytes(), 0o600, false) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let text = read(key_file)?;
            LocalCa::from_pem(&text, &key_file.display().to_string(), kind)
        }
        Err(source) => Err(at(key_file, source)),
        Ok(()) => Ok(made),
    }
}

/// Writes a file that is not there before it is whole. Without `replace` it is an error if it exists.
fn write_atomically(path: &Path, bytes: &[u8], mode: u32, replace: bool) -> io::Result<()> {
    // No other writer uses this name: the number is this process's, the time this call's.
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = since.unwrap_or_default().as_nanos();
    let name = path.file_name().unwrap_or(OsStr::new("authority"));
    let mut new = OsStr::new(".").to_owned();
    new.push(name);
    new.push(format!("-{}-{nanos}", std::process::id()));
    let new = path.with_file_name(new);
    let written = create(&new, mode).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    let placed = written.and_then(|()| match replace {
        true => fs::rename(&new, path),
        false => fs::hard_link(&new, path), // fails if it is there
    });
    if !replace || placed.is_err() {
        let _ = fs::remove_file(&new);
    }
    placed
}

fn create(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    options.open(path)
}
