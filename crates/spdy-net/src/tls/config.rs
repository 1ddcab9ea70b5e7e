//! TLS on both sides: who is believed, what is offered, which versions, and sessions taken up again.
//!
//! A [`ClientTls`] or [`ServerTls`] is made once and shared by all connections of a client or a
//! server; clones share its tickets, so that a second connection to the same host resumes.
//! The handshake itself is rustls's; here are only the choices.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use rustls::{ClientConfig, KeyLog, ServerConfig, SupportedProtocolVersion, quic};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::network::BoxIo;
use crate::protocol::Protocol;
use crate::tls::certificates::Identity;
use crate::tls::dynamic_record_size::DynamicRecordSize;
use crate::tls::error::TlsSetupError;
use crate::tls::identities::{ACME_TLS_ALPN, Identities};
use crate::tls::key_log::KeyLogFile;
use crate::tls::verify::Trust;

/// Sessions a client remembers, over all hosts.
const REMEMBERED_SESSIONS: usize = 256;
/// Sessions a server remembers for clients of TLS 1.2 that take no tickets.
const SERVER_SESSIONS: usize = 4096;
/// Bytes that may wait unread or unsent inside one TLS connection.
const TLS_BUFFER_BYTES: usize = 64 * 1024;

/// A version of TLS that is spoken here.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum TlsVersion {
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

impl fmt::Display for TlsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tls12 => "1.2",
            Self::Tls13 => "1.3",
        })
    }
}

impl std::str::FromStr for TlsVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim_start_matches("TLSv").trim_start_matches("tls") {
            "1.2" => Ok(Self::Tls12),
            "1.3" => Ok(Self::Tls13),
            _ => Err(format!(
                "no TLS version is called {text:?}; there are 1.2 and 1.3"
            )),
        }
    }
}

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
    fn open(&self) -> Result<Option<Arc<dyn KeyLog>>, TlsSetupError> {
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

/// Choices of both sides.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// Lowest version spoken.
    pub min: TlsVersion,
    /// Highest version spoken.
    pub max: TlsVersion,
    /// Where secrets go; nowhere by default.
    pub key_log: KeyLogTarget,
    /// The cryptography; aws-lc-rs by default.
    pub provider: Arc<CryptoProvider>,
    /// The hour that certificates and tickets are checked against; the system's clock by default.
    pub wall_now: Option<SystemTime>,
    /// Whether sessions may be taken up again with an abbreviated handshake.
    pub resumption: bool,
    /// Tickets that a server sends after each full TLS 1.3 handshake. Each is good for one connection.
    pub tickets: usize,
}

impl Default for TlsOptions {
    fn default() -> Self {
        Self {
            min: TlsVersion::Tls12,
            max: TlsVersion::Tls13,
            key_log: KeyLogTarget::default(),
            provider: Arc::new(rustls::crypto::aws_lc_rs::default_provider()),
            wall_now: None,
            resumption: true,
            tickets: 2,
        }
    }
}

impl TlsOptions {
    fn versions(&self) -> Result<Vec<&'static SupportedProtocolVersion>, TlsSetupError> {
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

/// An hour that does not pass: virtual runs are shorter than certificates.
#[derive(Debug)]
struct FixedTime(Duration);

impl TimeProvider for FixedTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(self.0))
    }
}

fn alpn(protocols: &[Protocol]) -> Vec<Vec<u8>> {
    protocols
        .iter()
        .map(|protocol| protocol.alpn().as_bytes().to_vec())
        .collect()
}

/// What a handshake came to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HandshakeInfo {
    /// The protocol that ALPN chose; `None` if the peer does not know ALPN.
    pub protocol: Option<Protocol>,
    /// The version of TLS.
    pub version: Option<rustls::ProtocolVersion>,
    /// The cipher suite.
    pub suite: Option<rustls::CipherSuite>,
    /// An earlier session was taken up again: the handshake was an abbreviated one. (QUIC's does not tell, and
    /// counts as a full one.)
    pub resumed: bool,
    /// The client wanted to see a proof of the name and nothing else (`acme-tls/1`, RFC 8737): the connection is over.
    pub is_acme_challenge: bool,
}

fn handshake_info(tls: &rustls::CommonState) -> HandshakeInfo {
    HandshakeInfo {
        protocol: tls.alpn_protocol().and_then(Protocol::from_alpn),
        version: tls.protocol_version(),
        suite: tls.negotiated_cipher_suite().map(|suite| suite.suite()),
        resumed: tls.handshake_kind() == Some(rustls::HandshakeKind::Resumed),
        is_acme_challenge: tls.alpn_protocol() == Some(ACME_TLS_ALPN),
    }
}

/// The client's side of TLS. Clones share tickets.
#[derive(Clone)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
    /// `None` for a configuration made elsewhere, which does not show its own.
    check: Option<CertificateCheck>,
}

/// Who says whether a certificate is believed.
#[derive(Clone)]
struct CertificateCheck {
    verifier: Arc<dyn ServerCertVerifier>,
    clock: Arc<dyn TimeProvider>,
}

/// The certificates that a server showed, its own first.
pub type PeerCertificates = Arc<[CertificateDer<'static>]>;

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientTls")
    }
}

impl ClientTls {
    /// A client that believes what `trust` says.
    ///
    /// # Errors
    ///
    /// Roots, key log or versions that cannot be used.
    pub fn new(trust: &Trust, options: &TlsOptions) -> Result<Self, TlsSetupError> {
        let judge = CertificateCheck {
            verifier: trust.verifier(&options.provider)?,
            clock: options.clock(),
        };
        let mut config =
            ClientConfig::builder_with_details(options.provider.clone(), options.clock())
                .with_protocol_versions(&options.versions()?)?
                .dangerous()
                .with_custom_certificate_verifier(judge.verifier.clone())
                .with_no_client_auth();
        config.resumption = match options.resumption {
            true => Resumption::in_memory_sessions(REMEMBERED_SESSIONS),
            false => Resumption::disabled(),
        };
        if let Some(log) = options.key_log.open()? {
            config.key_log = log;
        }
        Ok(Self {
            config: Arc::new(config),
            check: Some(judge),
        })
    }

    /// A client of a configuration made elsewhere; its list for ALPN is replaced on connecting.
    #[must_use]
    pub fn from_config(config: Arc<ClientConfig>) -> Self {
        Self {
            config,
            check: None,
        }
    }

    /// The same client, offering `protocols` by ALPN, best first. Tickets stay shared.
    #[must_use]
    pub fn with_alpn(&self, protocols: &[Protocol]) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = alpn(protocols);
        Self {
            config: Arc::new(config),
            check: self.check.clone(),
        }
    }

    /// The same for QUIC, which has records of its own: HTTP/3 alone is offered.
    ///
    /// # Errors
    ///
    /// `host` is no name, or TLS 1.3 is not among the versions.
    pub(crate) fn for_quic(&self, host: &str) -> io::Result<Arc<ClientConfig>> {
        let config = self.with_alpn(&[Protocol::Http3]).config;
        // rustls tells only by trying.
        let tried = quic::ClientConnection::new(
            config.clone(),
            quic::Version::V1,
            server_name(host)?,
            Vec::new(),
        );
        tried.map_err(|error| quic_config_error(&error))?;
        Ok(config)
    }

    /// Whether `shown`, the certificates of a connection that stands, would have been believed on a
    /// connection to `host`: chain, name, hour and pins, all by the rules of this client (the pins of a
    /// second host were forgotten once: CVE-2014-3166). Never where a client certificate may have been
    /// asked for, or the configuration was made elsewhere.
    #[must_use]
    pub fn would_trust(&self, shown: &PeerCertificates, host: &str) -> bool {
        let (Some(judge), Ok(name)) = (&self.check, server_name(host)) else {
            return false;
        };
        let (Some((own, chain)), Some(hour)) = (shown.split_first(), judge.clock.current_time())
        else {
            return false;
        };
        let verified = judge
            .verifier
            .verify_server_cert(own, chain, &name, &[], hour);
        verified.is_ok() && !self.config.client_auth_cert_resolver.has_certs()
    }

    /// Shakes hands over `io` with the server called `host` (a name or an address).
    ///
    /// # Errors
    ///
    /// A host that is no name, a certificate that is not believed, or a connection that broke.
    pub async fn connect(&self, io: BoxIo, host: &str) -> io::Result<(BoxIo, HandshakeInfo)> {
        let (io, agreed, _) = self.connect_with_certificates(io, host).await?;
        Ok((io, agreed))
    }

    /// As [`connect`](Self::connect), with what the server showed.
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn connect_with_certificates(
        &self,
        io: BoxIo,
        host: &str,
    ) -> io::Result<(BoxIo, HandshakeInfo, PeerCertificates)> {
        let name = server_name(host)?;
        let connector = TlsConnector::from(self.config.clone());
        let stream = connector
            .connect_with(name, io, |tls| tls.set_buffer_limit(Some(TLS_BUFFER_BYTES)))
            .await?;
        let tls = stream.get_ref().1;
        let agreed = handshake_info(tls);
        let shown = tls.peer_certificates().unwrap_or_default().into();
        Ok((Box::new(stream), agreed, shown))
    }
}

/// Whether a handshake failed with `error` because the server's certificate was not accepted.
#[must_use]
pub fn is_certificate_error(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    matches!(cause, Some(rustls::Error::InvalidCertificate(_)))
}

fn quic_config_error(error: &rustls::Error) -> io::Error {
    let why = format!("TLS without what HTTP/3 wants, version 1.3: {error}");
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

fn server_name(host: &str) -> io::Result<ServerName<'static>> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    ServerName::try_from(bare.to_owned()).map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{host:?} is no host name"),
        )
    })
}

/// The server's side of TLS.
#[derive(Clone)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
    dynamic_record_size: bool,
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerTls")
    }
}

impl ServerTls {
    /// A server that shows `identity` to everyone and speaks `protocols`, best first.
    ///
    /// # Errors
    ///
    /// A key that does not fit, or a key log or versions that cannot be used.
    pub fn new(
        identity: &Identity,
        protocols: &[Protocol],
        options: &TlsOptions,
    ) -> Result<Self, TlsSetupError> {
        Self::with_identities(&[], identity, protocols, options)
    }

    /// A server that shows each host's own identity (by SNI, any case), and `fallback` to the rest.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_identities(
        hosts: &[(String, Identity)],
        fallback: &Identity,
        protocols: &[Protocol],
        options: &TlsOptions,
    ) -> Result<Self, TlsSetupError> {
        let identities = Identities::new(hosts, fallback, options)?;
        Self::of(&identities, protocols, options)
    }

    /// A server that shows of `identities` what they are at each handshake: they may be exchanged while it serves.
    ///
    /// # Errors
    ///
    /// A key log or versions that cannot be used.
    pub fn of(
        identities: &Identities,
        protocols: &[Protocol],
        options: &TlsOptions,
    ) -> Result<Self, TlsSetupError> {
        let mut config =
            ServerConfig::builder_with_details(options.provider.clone(), options.clock())
                .with_protocol_versions(&options.versions()?)?
                .with_no_client_auth()
                .with_cert_resolver(Arc::new(identities.clone()));
        config.alpn_protocols = alpn(&Protocol::over_tcp(protocols));
        if options.resumption {
            // Tickets for clients that take them; TLS 1.2 session ids for the rest.
            config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new()?;
            config.session_storage = rustls::server::ServerSessionMemoryCache::new(SERVER_SESSIONS);
            config.send_tls13_tickets = options.tickets;
        } else {
            config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        if let Some(log) = options.key_log.open()? {
            config.key_log = log;
        }
        Ok(Self::from_config(Arc::new(config)))
    }

    /// A server of a configuration made elsewhere, ALPN included.
    #[must_use]
    pub fn from_config(config: Arc<ServerConfig>) -> Self {
        Self {
            config,
            dynamic_record_size: false,
        }
    }

    /// The same with records that begin at the length of a packet and grow, so that a client can read what came first
    /// before 16 KiB are there. The lab's servers have none: what they stand for (nginx, Apache) sends full ones.
    #[must_use]
    pub fn with_dynamic_record_size(mut self) -> Self {
        self.dynamic_record_size = true;
        self
    }

    /// The same for authorities as well: a client that offers only `acme-tls/1` gets the
    /// [`AcmeChallenge`](crate::tls::identities::AcmeChallenge) of the name that it requests, if there is one, and
    /// nothing else.
    #[must_use]
    pub fn with_acme_challenges(mut self) -> Self {
        // The last one: it is agreed on where nothing else can be.
        let config = Arc::make_mut(&mut self.config);
        config.alpn_protocols.push(ACME_TLS_ALPN.to_vec());
        self
    }

    /// The same for QUIC, which has records of its own: HTTP/3 alone is spoken.
    ///
    /// # Errors
    ///
    /// TLS 1.3 is not among the versions.
    pub(crate) fn for_quic(&self) -> io::Result<Arc<ServerConfig>> {
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols = alpn(&[Protocol::Http3]);
        let config = Arc::new(config);
        let tried = quic::ServerConnection::new(config.clone(), quic::Version::V1, Vec::new());
        tried.map_err(|error| quic_config_error(&error))?;
        Ok(config)
    }

    /// Shakes hands over `io`.
    ///
    /// # Errors
    ///
    /// A client that speaks no TLS, offers nothing we speak, or broke off.
    pub async fn accept(&self, io: BoxIo) -> io::Result<(BoxIo, HandshakeInfo)> {
        let acceptor = TlsAcceptor::from(self.config.clone());
        let stream = acceptor
            .accept_with(io, |tls| tls.set_buffer_limit(Some(TLS_BUFFER_BYTES)))
            .await?;
        let agreed = handshake_info(stream.get_ref().1);
        let io: BoxIo = match self.dynamic_record_size {
            true => Box::new(DynamicRecordSize::new(stream)),
            false => Box::new(stream),
        };
        Ok((io, agreed))
    }
}
