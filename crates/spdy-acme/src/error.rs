//! Errors of obtaining a certificate.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use spdy_dns::zones::TextError;
use spdy_net::tls::error::TlsSetupError;

/// Why there is no certificate yet, or why it cannot be stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcmeError {
    /// The authority rejected a request, or could not be reached.
    #[error("{directory}: {what}: {source}")]
    Authority {
        /// URL of its directory.
        directory: String,
        /// The requested object.
        what: &'static str,
        /// Its error.
        source: instant_acme::Error,
    },
    /// The authority no longer knows our account.
    #[error("{directory} does not know the account: the next attempt creates another")]
    Account {
        /// URL of its directory.
        directory: String,
    },
    /// The authority requires another challenge than the configured one.
    #[error("{name}: expected the challenge {expected}, found {offered}")]
    ChallengeNotOffered {
        /// The name.
        name: String,
        /// The configured challenge.
        expected: &'static str,
        /// The offered challenges.
        offered: String,
    },
    /// The authority checked the proof and rejected it.
    #[error("{name}: the authority rejected the proof ({challenge}): {reason}")]
    ChallengeFailed {
        /// The name.
        name: String,
        /// The challenge that was used.
        challenge: &'static str,
        /// The reason that the authority states.
        reason: String,
    },
    /// The authority requires a proof for a name that was not ordered.
    #[error("the authority requires a proof for {0}, which is not in the order")]
    UnexpectedName(String),
    /// The order has an unexpected status.
    #[error("the order has the status {0}")]
    Order(String),
    /// The order timed out.
    #[error("no certificate issued within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The certificate that was received cannot be served.
    #[error("unusable certificate: {reason}")]
    Certificate {
        /// The reason.
        reason: String,
    },
    /// The task of the order panicked.
    #[error("internal error, please report it: {0}")]
    Panicked(String),
    /// The certificate cannot be served, or no proof can be created.
    #[error(transparent)]
    Tls(#[from] TlsSetupError),
    /// A key or a certificate request cannot be created.
    #[error("cannot generate a key and a certificate request: {0}")]
    KeyGeneration(#[from] rcgen::Error),
    /// The name's zone does not accept the TXT record of a proof.
    #[error("{name}: {source}")]
    TxtRecord {
        /// The name.
        name: String,
        /// The cause.
        source: TextError,
    },
    /// The folder cannot be used.
    #[error("{}: {source}", path.display())]
    Folder {
        /// The file, or the folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file of the folder is corrupt.
    #[error("{}: {reason}", path.display())]
    CorruptFile {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}
