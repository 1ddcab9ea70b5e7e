//! TLS secrets written to a file for a packet analyser, in the format of NSS (`SSLKEYLOGFILE`).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::tls::error::TlsSetupError;

/// Appends secrets to a file. A reader of the file can decrypt the sessions.
#[derive(Debug)]
pub struct KeyLogFile(Mutex<File>);

impl KeyLogFile {
    /// Opens `path` to append to it. A new file is created for its owner only (0600). An existing file keeps its permissions, and a warning
    /// is logged if other users can read it.
    ///
    /// # Errors
    ///
    /// The file cannot be opened.
    pub fn open(path: &Path) -> Result<Arc<Self>, TlsSetupError> {
        let file = open(path).map_err(|source| TlsSetupError::File {
            path: path.to_owned(),
            source,
        })?;
        if is_readable_by_others(&file) {
            let path = path.display();
            tracing::warn!(%path, "other users can read the TLS key log, and with it decrypt the sessions");
        }
        Ok(Arc::new(Self(Mutex::new(file))))
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Whether it is a regular file that its group or all users may read.
#[cfg(unix)]
fn is_readable_by_others(file: &File) -> bool {
    use std::os::unix::fs::PermissionsExt;

    let about = file.metadata();
    about.is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o044 != 0)
}

#[cfg(not(unix))]
fn is_readable_by_others(_: &File) -> bool {
    false // access control lists decide, and they are those of the folder
}

impl rustls::KeyLog for KeyLogFile {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut line =
            String::with_capacity(label.len() + 2 * (client_random.len() + secret.len()) + 3);
        line.push_str(label);
        for part in [client_random, secret] {
            line.push(' ');
            for byte in part {
                let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('?');
                line.push(digit(byte >> 4));
                line.push(digit(byte & 15));
            }
        }
        line.push('\n');
        let mut file = self.0.lock();
        if let Err(error) = file.write_all(line.as_bytes()) {
            tracing::warn!(%error, "cannot write the TLS key log");
        }
    }
}
