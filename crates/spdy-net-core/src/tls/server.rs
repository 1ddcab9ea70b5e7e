//! The server's side of TLS: certificates by host name, ALPN, session tickets.

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};

use rustls::server::{ProducesTickets, ServerSessionMemoryCache, StoresServerSessions};
use rustls::{ServerConfig, quic};
use tokio_rustls::TlsAcceptor;

use crate::client_certificate::ClientCertificate;
use crate::network::BoxIo;
use crate::protocol::Protocol;
use crate::tls::certificates::Identity;
use crate::tls::dynamic_record_size::DynamicRecordSize;
use crate::tls::error::TlsSetupError;
use crate::tls::handshake::{
    HandshakeInfo, TLS_BUFFER_BYTES, alpn, handshake_info, quic_config_error,
};
use crate::tls::identities::{ACME_TLS_ALPN, Identities};
use crate::tls::options::TlsOptions;
use crate::tls::provider::Ticketer;

/// Limit of remembered sessions for TLS 1.2 clients without ticket support.
const SERVER_SESSIONS: usize = 4096;
/// Limit of sessions over QUIC that are stored for resumption; the oldest are dropped. Each takes about 300 bytes, and at most 600,
/// depending on the length of the host name.
const QUIC_SESSIONS: usize = 16 * 1024;

/// No ticket contains its session: each ticket is the ID of a stored session.
#[derive(Debug)]
struct NoTicketer;

impl ProducesTickets for NoTicketer {
    fn enabled(&self) -> bool {
        false
    }

    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, _plain: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn decrypt(&self, _ticket: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

/// The sessions of QUIC connections, for all listeners.
///
/// A session is removed when it is used. So early data is accepted at most once for each ticket, and a replayed first packet gets a
/// full handshake (RFC 8446 §8.1). A ticket that contains its session could be used again.
#[derive(Clone, Debug, Default)]
struct QuicSessions(Arc<OnceLock<Arc<ServerSessionMemoryCache>>>);

impl QuicSessions {
    /// The store, which is created for the first listener.
    fn store(&self) -> Arc<dyn StoresServerSessions> {
        let store = || ServerSessionMemoryCache::new(QUIC_SESSIONS);
        self.0.get_or_init(store).clone()
    }
}

/// The server's side of TLS.
#[derive(Clone)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
    dynamic_record_size: bool,
    /// `None`: without resumption, or for a configuration of the caller.
    quic_sessions: Option<QuicSessions>,
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerTls")
    }
}

impl ServerTls {
    /// A server that uses `identity` for all names and supports `protocols`, in order of preference.
    ///
    /// # Errors
    ///
    /// The key does not match, or the key log or the versions cannot be used.
    pub fn new(
        identity: &Identity,
        protocols: &[Protocol],
        options: &TlsOptions,
    ) -> Result<Self, TlsSetupError> {
        Self::with_identities(&[], identity, protocols, options)
    }

    /// A server that uses the identity of each host (by SNI, any case), and `fallback` for others.
    ///
    /// # Errors
    ///
    /// As in [`new`](Self::new).
    pub fn with_identities(
        hosts: &[(String, Identity)],
        fallback: &Identity,
        protocols: &[Protocol],
        options: &TlsOptions,
    ) -> Result<Self, TlsSetupError> {
        let identities = Identities::new(hosts, fallback, options)?;
        Self::of(&identities, protocols, options)
    }

    /// A server that uses the current `identities` at each handshake: they may be replaced while it serves.
    ///
    /// # Errors
    ///
    /// The key log or the versions cannot be used.
    pub fn of(
        identities: &Identities,
        protocols: &[Protocol],
        options: &TlsOptions,
    ) -> Result<Self, TlsSetupError> {
        let builder = ServerConfig::builder_with_details(options.provider.clone(), options.clock())
            .with_protocol_versions(&options.versions()?)?;
        let builder = match options.client_certificates.clone() {
            Some(accepted) => builder.with_client_cert_verifier(Arc::new(accepted)),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(Arc::new(identities.clone()));
        config.alpn_protocols = alpn(&Protocol::over_tcp(protocols));
        // A resumed session would not verify the client's certificate again.
        let resumes = options.resumption && options.client_certificates.is_none();
        if resumes {
            // Tickets for clients that accept them; TLS 1.2 session IDs for the others.
            config.ticketer = Ticketer::new()?;
            config.session_storage = ServerSessionMemoryCache::new(SERVER_SESSIONS);
            config.send_tls13_tickets = options.tickets;
        } else {
            config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        if let Some(log) = options.key_log.open()? {
            config.key_log = log;
        }
        Ok(Self {
            quic_sessions: resumes.then(QuicSessions::default),
            ..Self::from_config(Arc::new(config))
        })
    }

    /// A server with a configuration of the caller, including ALPN.
    #[must_use]
    pub fn from_config(config: Arc<ServerConfig>) -> Self {
        Self {
            config,
            dynamic_record_size: false,
            quic_sessions: None,
        }
    }

    /// The same with records that start at the size of a packet and grow, so that a client can read the first bytes before 16 KiB
    /// have arrived. The lab's servers do not use it: the servers that they represent (nginx, Apache) send full records.
    #[must_use]
    pub fn with_dynamic_record_size(mut self) -> Self {
        self.dynamic_record_size = true;
        self
    }

    /// The same, with support for certificate authorities: a client that offers only `acme-tls/1` gets the
    /// [`AcmeChallenge`](crate::tls::identities::AcmeChallenge) of the requested name, if there is one, and nothing else.
    #[must_use]
    pub fn with_acme_challenges(mut self) -> Self {
        // The last one: it is selected only if nothing else is possible.
        let config = Arc::make_mut(&mut self.config);
        config.alpn_protocols.push(ACME_TLS_ALPN.to_vec());
        self
    }

    /// The same for QUIC, which has its own records: only HTTP/3 is supported. Early data (0-RTT) is accepted if sessions are resumed. A
    /// configuration of the caller decides that itself.
    ///
    /// # Errors
    ///
    /// TLS 1.3 is not among the versions.
    pub fn for_quic(&self) -> io::Result<Arc<ServerConfig>> {
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols = alpn(&[Protocol::Http3]);
        if let Some(sessions) = &self.quic_sessions {
            config.ticketer = Arc::new(NoTicketer);
            config.session_storage = sessions.store();
            config.max_early_data_size = u32::MAX; // QUIC has its own limits (RFC 9001 §4.6.1)
        }
        let config = Arc::new(config);
        let tried = quic::ServerConnection::new(config.clone(), quic::Version::V1, Vec::new());
        tried.map_err(|error| quic_config_error(&error))?;
        Ok(config)
    }

    /// Does the handshake over `io`.
    ///
    /// # Errors
    ///
    /// The client does not use TLS, offers no supported parameters, or disconnected.
    pub async fn accept(&self, io: BoxIo) -> io::Result<(BoxIo, HandshakeInfo)> {
        let (io, agreed, _) = self.accept_client(io).await?;
        Ok((io, agreed))
    }

    /// The same, with the client's certificate if it has one.
    ///
    /// # Errors
    ///
    /// As in [`accept`](Self::accept). Also, the client's certificate is invalid, or is missing although it is required.
    pub async fn accept_client(
        &self,
        io: BoxIo,
    ) -> io::Result<(BoxIo, HandshakeInfo, Option<ClientCertificate>)> {
        let acceptor = TlsAcceptor::from(self.config.clone());
        let stream = acceptor
            .accept_with(io, |tls| tls.set_buffer_limit(Some(TLS_BUFFER_BYTES)))
            .await?;
        let session = stream.get_ref().1;
        let agreed = handshake_info(session);
        let certificate = session.peer_certificates().and_then(<[_]>::first);
        let certificate = certificate.map(|certificate| ClientCertificate::new(certificate));
        let io: BoxIo = match self.dynamic_record_size {
            true => Box::new(DynamicRecordSize::new(stream)),
            false => Box::new(stream),
        };
        Ok((io, agreed, certificate))
    }
}
