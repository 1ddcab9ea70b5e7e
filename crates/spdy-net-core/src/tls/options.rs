//! Options of TLS for clients and servers: versions, key log, clock, session resumption.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::UnixTime;
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use rustls::{KeyLog, SupportedProtocolVersion};

use crate::tls::error::TlsSetupError;
use crate::tls::key_log::KeyLogFile;
use crate::tls::provider::default_provider;
use crate::tls::{ClientCertificates, TlsVersion};

/// Where TLS secrets are written for a packet analyser.
#[derive(Clone, Debug, Default)]
pub enum KeyLogTarget {
    /// Nowhere, even if `SSLKEYLOGFILE` is set. A server must not take the file of `SSLKEYLOGFILE`: a variable that was set for a
    /// client would disclose all of its clients' sessions.
    #[default]
    Disabled,
    /// The file named by `SSLKEYLOGFILE`, if it is set and can be opened, as command-line clients do (curl).
    Environment,
    /// This file.
    File(PathBuf),
}

impl KeyLogTarget {
    pub(super) fn open(&self) -> Result<Option<Arc<dyn KeyLog>>, TlsSetupError> {
        Ok(match self {
            Self::Disabled => None,
            Self::Environment => {
                let path = std::env::var_os("SSLKEYLOGFILE").filter(|path| !path.is_empty());
                match path.map(|path| KeyLogFile::open(path.as_ref())) {
                    None => None,
                    Some(Ok(file)) => Some(file as Arc<dyn KeyLog>),
                    Some(Err(error)) => {
                        tracing::warn!(%error, "no TLS key log is written");
                        None
                    }
                }
            }
            Self::File(path) => Some(KeyLogFile::open(path)?),
        })
    }
}

/// Options of both sides.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TlsOptions {
    /// Minimum version.
    pub min: TlsVersion,
    /// Maximum version.
    pub max: TlsVersion,
    /// The target of the key log; none by default.
    pub key_log: KeyLogTarget,
    /// The cryptography. The default is aws-lc-rs, or ring without the feature `aws-lc-rs`.
    pub provider: Arc<CryptoProvider>,
    /// The time at which certificates and tickets are checked; the system's clock by default.
    pub wall_now: Option<SystemTime>,
    /// Whether sessions may be resumed by an abbreviated handshake.
    pub resumption: bool,
    /// Tickets that a server sends after each full TLS 1.3 handshake. Each can be used for one connection.
    pub tickets: usize,
    /// The certificates that a server accepts from clients; `None`, the default: it requests none. With them, no session is resumed.
    pub client_certificates: Option<ClientCertificates>,
}

impl Default for TlsOptions {
    fn default() -> Self {
        Self {
            min: TlsVersion::Tls12,
            max: TlsVersion::Tls13,
            key_log: KeyLogTarget::default(),
            provider: Arc::new(default_provider()),
            wall_now: None,
            resumption: true,
            tickets: 2,
            client_certificates: None,
        }
    }
}

impl TlsOptions {
    pub(super) fn versions(&self) -> Result<Vec<&'static SupportedProtocolVersion>, TlsSetupError> {
        let all = [
            (TlsVersion::Tls13, &rustls::version::TLS13),
            (TlsVersion::Tls12, &rustls::version::TLS12),
        ];
        let range = self.min..=self.max;
        let left: Vec<_> = all
            .into_iter()
            .filter(|(v, _)| range.contains(v))
            .map(|(_, v)| v)
            .collect();
        if left.is_empty() {
            return Err(TlsSetupError::NoVersion {
                min: self.min,
                max: self.max,
            });
        }
        Ok(left)
    }

    pub(crate) fn clock(&self) -> Arc<dyn TimeProvider> {
        match self.wall_now {
            None => Arc::new(DefaultTimeProvider),
            Some(hour) => Arc::new(FixedTime(
                hour.duration_since(UNIX_EPOCH).unwrap_or_default(),
            )),
        }
    }
}

/// A constant time: virtual runs are shorter than the validity of certificates.
#[derive(Debug)]
struct FixedTime(Duration);

impl TimeProvider for FixedTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(self.0))
    }
}
