//! A local authority that outlives the process: made once, kept in a folder, trusted once.
//!
//! ```text
//! FOLDER/authority.pem      the key and the certificate, for the owner's eyes (0600)
//! FOLDER/authority.crt.pem  the certificate alone, for whoever shall trust it
//! ```
//!
//! Key and certificate stand in one file that appears whole or not at all: of two processes that make it at once both use
//! the one that was first.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::certificates::{KeyKind, LocalCa, read};
use crate::tls_error::TlsSetupError;

/// Key and certificate.
const BOTH: &str = "authority.pem";
/// The certificate alone.
const CERTIFICATE: &str = "authority.crt.pem";

impl LocalCa {
    /// The authority that is kept in `folder`; one is made, and the folder too, if there is none. `kind` is that of keys
    /// that are made: the authority's, if it is made now, and its leaves'.
    ///
    /// # Errors
    ///
    /// Files that cannot be read or written, or that hold no key and its certificate.
    pub fn kept_in(folder: &Path, kind: KeyKind) -> Result<Self, TlsSetupError> {
        let (both, certificate) = (folder.join(BOTH), folder.join(CERTIFICATE));
        if !both.exists() {
            make(folder, &both, kind)?;
        }
        let kept = read(&both)?;
        let ca = Self::from_pem(&kept, &both.display().to_string(), kind)?;
        if fs::read(&certificate).ok().as_deref() != Some(ca.pem().as_bytes()) {
            let written = write_whole(folder, &certificate, ca.pem().as_bytes(), 0o644, true);
            written.map_err(|source| at(certificate, source))?;
        }
        Ok(ca)
    }
}

fn at(path: PathBuf, source: io::Error) -> TlsSetupError {
    TlsSetupError::Write { path, source }
}

/// Makes an authority, unless another process was quicker.
fn make(folder: &Path, both: &Path, kind: KeyKind) -> Result<(), TlsSetupError> {
    fs::create_dir_all(folder).map_err(|source| at(folder.to_owned(), source))?;
    let made = LocalCa::generate(kind)?;
    let text = format!("{}{}", made.key_pem(), made.pem());
    match write_whole(folder, both, text.as_bytes(), 0o600, false) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        written => written.map_err(|source| at(both.to_owned(), source)),
    }
}

/// Writes a file that nobody sees before it is whole. Without `replace` one that is there stays, and is told.
fn write_whole(
    folder: &Path,
    path: &Path,
    bytes: &[u8],
    mode: u32,
    replace: bool,
) -> io::Result<()> {
    // Nobody else has this name: the number is this process's, the time this call's.
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = since.unwrap_or_default().as_nanos();
    let new = folder.join(format!(".authority-{}-{nanos}", std::process::id()));
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
