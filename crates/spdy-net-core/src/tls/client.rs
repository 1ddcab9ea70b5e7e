//! The client's side of TLS: trust, ALPN, resumption of sessions.

use std::fmt;
use std::io;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::ServerName;
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, quic};
use tokio_rustls::TlsConnector;

use crate::network::BoxIo;
use crate::protocol::Protocol;
use crate::tls::error::TlsSetupError;
use crate::tls::handshake::{
    HandshakeInfo, PeerCertificates, TLS_BUFFER_BYTES, alpn, handshake_info, quic_config_error,
};
use crate::tls::options::TlsOptions;
use crate::tls::verify::Trust;

/// Limit of remembered sessions over TCP, and of those over QUIC: over all hosts.
const REMEMBERED_SESSIONS: usize = 256;
/// The client's side of TLS. Clones share session tickets.
#[derive(Clone)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
    /// `None` for a configuration of the caller, whose verifier is not accessible.
    check: Option<CertificateCheck>,
    resumption: bool,
    /// A server's tickets for QUIC are not those for TCP, and each can be used once.
    quic_sessions: Resumption,
    /// Whether safe requests over QUIC may be sent in early data.
    early_data: bool,
}

/// Decides whether a certificate is trusted.
#[derive(Clone)]
struct CertificateCheck {
    verifier: Arc<dyn ServerCertVerifier>,
    clock: Arc<dyn TimeProvider>,
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientTls")
    }
}

impl ClientTls {
    /// A client that verifies servers by `trust`.
    ///
    /// # Errors
    ///
    /// The roots, the key log or the versions cannot be used.
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
        config.resumption = sessions(options.resumption);
        if let Some(log) = options.key_log.open()? {
            config.key_log = log;
        }
        Ok(Self {
            config: Arc::new(config),
            check: Some(judge),
            resumption: options.resumption,
            quic_sessions: sessions(options.resumption),
            early_data: true,
        })
    }

    /// The same, with its own store of sessions: it neither uses those of this one nor adds to them.
    #[must_use]
    pub fn with_own_sessions(&self) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.resumption = sessions(self.resumption);
        Self {
            config: Arc::new(config),
            quic_sessions: sessions(self.resumption),
            ..self.clone()
        }
    }

    /// A client with a configuration of the caller; its ALPN list is replaced when connecting.
    #[must_use]
    pub fn from_config(config: Arc<ClientConfig>) -> Self {
        Self {
            quic_sessions: config.resumption.clone(),
            early_data: config.enable_early_data,
            config,
            check: None,
            resumption: true,
        }
    }

    /// The same client, with `protocols` for ALPN, in order of preference. Tickets are still shared.
    #[must_use]
    pub fn with_alpn(&self, protocols: &[Protocol]) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = alpn(protocols);
        Self {
            config: Arc::new(config),
            ..self.clone()
        }
    }

    /// The same for QUIC, which has its own records: only HTTP/3 is offered. Early data (0-RTT) is possible if a session of `host` is
    /// remembered; a configuration of the caller decides that itself.
    ///
    /// # Errors
    ///
    /// `host` is not a valid name, or TLS 1.3 is not among the versions.
    pub fn for_quic(&self, host: &str) -> io::Result<Arc<ClientConfig>> {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = alpn(&[Protocol::Http3]);
        // rustls reports an unusable configuration only when a connection is made, which would use up a ticket.
        config.resumption = Resumption::disabled();
        let tried = quic::ClientConnection::new(
            Arc::new(config.clone()),
            quic::Version::V1,
            server_name(host)?,
            Vec::new(),
        );
        tried.map_err(|error| quic_config_error(&error))?;
        config.resumption = self.quic_sessions.clone();
        config.enable_early_data = self.early_data;
        Ok(Arc::new(config))
    }

    /// True if `shown`, the certificates of an open connection, would have been accepted on a connection to `host`: chain, name,
    /// time and pins, all by the rules of this client (browsers once ignored the pins of a second host: CVE-2014-3166). Always
    /// false if a client certificate may have been requested, or with a configuration of the caller.
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

    /// Does the handshake over `io` with the server `host` (a name or an address).
    ///
    /// # Errors
    ///
    /// The host is not valid, the certificate is not trusted, or the connection failed.
    pub async fn connect(&self, io: BoxIo, host: &str) -> io::Result<(BoxIo, HandshakeInfo)> {
        let (io, agreed, _) = self.connect_with_certificates(io, host).await?;
        Ok((io, agreed))
    }

    /// Like [`connect`](Self::connect); also returns the server's certificates.
    ///
    /// # Errors
    ///
    /// As in [`connect`](Self::connect).
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

/// A new store of sessions, or none.
fn sessions(resumption: bool) -> Resumption {
    match resumption {
        true => Resumption::in_memory_sessions(REMEMBERED_SESSIONS),
        false => Resumption::disabled(),
    }
}

fn server_name(host: &str) -> io::Result<ServerName<'static>> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    ServerName::try_from(bare.to_owned()).map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("invalid hostname {host:?}"),
        )
    })
}
