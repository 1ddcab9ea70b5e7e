//! TLS secrets written down for tshark: the file of `SSLKEYLOGFILE`, or one that is named.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::tls_error::TlsSetupError;

/// Appends secrets to a file in NSS key-log format; whoever reads it can decrypt the sessions.
#[derive(Debug)]
pub struct KeyLogFile(Mutex<File>);

impl KeyLogFile {
    /// Opens `path` to append to it.
    ///
    /// # Errors
    ///
    /// The file cannot be opened.
    pub fn open(path: &Path) -> Result<Arc<Self>, TlsSetupError> {
        let file = OpenOptions::new().append(true).create(true).open(path);
        let file = file.map_err(|source| TlsSetupError::File {
            path: path.to_owned(),
            source,
        })?;
        Ok(Arc::new(Self(Mutex::new(file))))
    }
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
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(line.as_bytes()) {
            tracing::warn!(%error, "cannot write the TLS key log");
        }
    }
}
