//! Errors of setting up TLS, and of handshakes.

use std::io;
use std::path::PathBuf;

/// Why a TLS configuration cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsSetupError {
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file, or its folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The expected object is not in a PEM text.
    #[error("no {expected} in {what}")]
    EmptyPem {
        /// The expected object.
        expected: &'static str,
        /// The text.
        what: String,
    },
    /// The text is not PEM.
    #[error("{what} is not PEM: {reason}")]
    Pem {
        /// The source of the text.
        what: String,
        /// The error.
        reason: String,
    },
    /// A pin that is not `sha256//` and the base64 of 32 bytes.
    #[error("{0:?} is not a pin, expected sha256// and the base64 of a SHA-256 (44 characters)")]
    Pin(String),
    /// The local authority could not issue a certificate.
    #[error("cannot make a certificate: {0}")]
    Issue(#[from] rcgen::Error),
    /// The TLS library refused the configuration.
    #[error("tls: {0}")]
    Rustls(#[from] rustls::Error),
    /// The certificate verifier could not be built.
    #[error("cannot build the certificate verifier: {0}")]
    Verifier(#[from] rustls::client::VerifierBuilderError),
    /// TLS 1.2 and TLS 1.3 are both disabled.
    #[error("no TLS version is enabled: minimum {min}, maximum {max}")]
    NoVersion {
        /// Configured lower bound.
        min: crate::tls::TlsVersion,
        /// Configured upper bound.
        max: crate::tls::TlsVersion,
    },
}
