//! A local authority that is stored in files, so that a browser that trusts it once keeps trusting it.
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
    /// The key file of the authority with this certificate file.
    #[must_use]
    pub fn key_file(certificate: &Path) -> PathBuf {
        certificate.with_extension("key.pem")
    }

    /// Loads the authority whose certificate is in the file `certificate`, with its key in [another file](Self::key_file). If there
    /// is no key file, it creates the authority, and overwrites `certificate`. `kind` is the kind of new keys: the authority's and
    /// its leaves'.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written, or contains no key with its certificate.
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

    /// The same if it exists. Nothing is written.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or contains no key with its certificate.
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

/// Creates an authority, or loads the one that another process created first.
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

/// Writes a file atomically. Without `replace` it fails if the file exists.
fn write_atomically(path: &Path, bytes: &[u8], mode: u32, replace: bool) -> io::Result<()> {
    // No other writer uses this name: the number is that of this process, the time that of this call.
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
        false => fs::hard_link(&new, path), // fails if it exists
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
