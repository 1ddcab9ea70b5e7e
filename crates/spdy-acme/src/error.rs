//! Why there is no certificate.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use spdy_dns::zones::TextError;
use spdy_net::tls::error::TlsSetupError;

/// Why there is no certificate yet, or why it cannot be stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcmeError {
    /// The authority refused, or could not be reached.
    #[error("{directory}: {what}: {source}")]
    Authority {
        /// Its directory.
        directory: String,
        /// What was wanted of it.
        what: &'static str,
        /// Its error.
        source: instant_acme::Error,
    },
    /// The authority knows our account no longer.
    #[error("{directory} does not know the account: the next attempt creates another")]
    Account {
        /// Its directory.
        directory: String,
    },
    /// The authority requires another challenge than the configured one.
    #[error("{name}: expected the challenge {expected}, found {offered}")]
    ChallengeNotOffered {
        /// The name.
        name: String,
        /// The configured challenge.
        expected: &'static str,
        /// The challenges that it offers.
        offered: String,
    },
    /// The authority checked the proof and rejected it.
    #[error("{name}: the authority rejected the proof ({challenge}): {reason}")]
    ChallengeFailed {
        /// The name.
        name: String,
        /// The challenge that was used.
        challenge: &'static str,
        /// The reason that the authority gives.
        reason: String,
    },
    /// It wants to see another name proven than those that were ordered.
    #[error("the authority requires a proof for {0}, which is not in the order")]
    UnexpectedName(String),
    /// The order ended another way.
    #[error("the order has the status {0}")]
    Order(String),
    /// It took too long.
    #[error("no certificate issued within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The certificate that was received cannot be served.
    #[error("unusable certificate: {reason}")]
    Certificate {
        /// What is wrong with it.
        reason: String,
    },
    /// The task of the order panicked.
    #[error("internal error, please report it: {0}")]
    Panicked(String),
    /// What came cannot be shown, or no proof can be made.
    #[error(transparent)]
    Tls(#[from] TlsSetupError),
    /// A key or a request for a certificate cannot be made.
    #[error("cannot generate a key and a certificate request: {0}")]
    KeyGeneration(#[from] rcgen::Error),
    /// The name's zone does not take the text of a proof.
    #[error("{name}: {source}")]
    TxtRecord {
        /// The name.
        name: String,
        /// Why.
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
        /// What is wrong with it.
        reason: String,
    },
}
