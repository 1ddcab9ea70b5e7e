//! Opens QUIC connections as a client. Each has its own socket, as in browsers.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use quinn::crypto::rustls::QuicClientConfig;
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use spdy::runtime::SharedRuntime;
use spdy_net_core::network::Network;
use spdy_net_core::options::ClientOptions;
use spdy_net_core::protocol::Protocol;
use spdy_net_core::tls::{ClientTls, HandshakeInfo, PeerCertificates};

use crate::quic::early_attempt::{EarlyAttempt, PendingHandshake};
use crate::quic::runtime::QuicRuntime;
use crate::quic::socket::QuicSocket;
use crate::quic::transport::{client_transport, endpoint_config, initial_id};

/// A client's connection, with the endpoint that drives it. Its handshake is complete, except after [`connect_early`].
#[derive(Debug)]
pub struct QuicConnection {
    pub(crate) connection: quinn::Connection,
    pub(crate) endpoint: quinn::Endpoint,
    /// `None` if the connection began to send after its handshake.
    pub(crate) early: Option<EarlyAttempt>,
}

impl QuicConnection {
    /// The handshake of a connection from [`connect_early`]; `None` if it was complete when the connection was returned.
    #[must_use]
    pub fn pending_handshake(&self) -> Option<PendingHandshake> {
        self.early.clone().map(|attempt| PendingHandshake {
            connection: self.connection.clone(),
            attempt,
        })
    }
}

/// Opens a QUIC connection for HTTP/3 to `to`, and verifies that the server's certificate is for `host`. `host` may be an IPv6 address in
/// brackets. `number` must differ between connections with the same `options.quic.seed`: it is mixed into the seed of this connection's
/// random numbers.
///
/// # Errors
///
/// The socket cannot be opened, `host` is not a valid name, the certificate is not trusted, or the server does not answer or does not
/// support HTTP/3.
pub async fn connect(
    network: &dyn Network,
    to: SocketAddr,
    host: &str,
    tls: &ClientTls,
    number: u64,
    options: &ClientOptions,
    runtime: &SharedRuntime,
) -> io::Result<(QuicConnection, HandshakeInfo, PeerCertificates)> {
    let mut crypto = tls.for_quic(host)?;
    Arc::make_mut(&mut crypto).enable_early_data = false;
    let (connecting, endpoint) = begin(network, to, host, crypto, number, options, runtime)?;
    after_handshake(connecting, endpoint).await
}

/// Like [`connect`], but returns at once if `tls` has a session of `host` that allows early data (0-RTT). Then
/// [`Http3Client`](crate::client::Http3Client) sends safe requests without content before the handshake is complete, and sends them
/// again if the server rejects early data. Other requests wait for the handshake.
///
/// Such a connection has no certificates yet. Nothing is known of the server at `to`: use an address that has answered before, and limit
/// the time of [`QuicConnection::pending_handshake`].
///
/// # Errors
///
/// As for [`connect`].
pub async fn connect_early(
    network: &dyn Network,
    to: SocketAddr,
    host: &str,
    tls: &ClientTls,
    number: u64,
    options: &ClientOptions,
    runtime: &SharedRuntime,
) -> io::Result<(QuicConnection, HandshakeInfo, PeerCertificates)> {
    let crypto = tls.for_quic(host)?;
    let (connecting, endpoint) = begin(network, to, host, crypto, number, options, runtime)?;
    let (connection, accepted) = match connecting.into_0rtt() {
        Ok(early) => early,
        Err(connecting) => return after_handshake(connecting, endpoint).await,
    };
    let attempt = EarlyAttempt::default();
    let resolving = attempt.clone();
    runtime.spawn(Box::pin(async move { resolving.resolve(accepted.await) }));
    let quic = QuicConnection {
        connection,
        endpoint,
        early: Some(attempt),
    };
    Ok((quic, HANDSHAKE_INFO, PeerCertificates::from([])))
}

/// What is known of every handshake over QUIC. quinn does not report the cipher suite or resumption, so these are placeholders.
const HANDSHAKE_INFO: HandshakeInfo = HandshakeInfo {
    protocol: Some(Protocol::Http3),
    version: Some(rustls::ProtocolVersion::TLSv1_3),
    suite: None,
    resumed: false,
    is_acme_challenge: false,
};

/// Sends the first packet.
fn begin(
    network: &dyn Network,
    to: SocketAddr,
    host: &str,
    tls: Arc<ClientConfig>,
    number: u64,
    options: &ClientOptions,
    runtime: &SharedRuntime,
) -> io::Result<(quinn::Connecting, quinn::Endpoint)> {
    let unspecified = match to.ip() {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = network.datagrams(SocketAddr::new(unspecified, 0))?;
    let crypto = QuicClientConfig::try_from(tls).map_err(io::Error::other)?;
    let mut config = quinn::ClientConfig::new(Arc::new(crypto));
    if let Some(id) = initial_id(&options.quic, number) {
        config.initial_dst_cid_provider(Arc::new(move || id));
    }
    let quic_runtime = QuicRuntime::shared(runtime);
    #[cfg_attr(
        not(feature = "qlog"),
        expect(unused_mut, reason = "only qlog changes it")
    )]
    let mut transport = client_transport(options);
    #[cfg(feature = "qlog")]
    crate::quic::transport::log(&mut transport, options, number, host, quic_runtime.origin());
    config.transport_config(Arc::new(transport));
    let endpoint = quinn::Endpoint::new_with_abstract_socket(
        endpoint_config(&options.quic, format_args!("client {number}")),
        None,
        QuicSocket::shared(socket),
        quic_runtime,
    )?;
    // quinn expects an IPv6 address without brackets. `for_quic` removes them itself.
    let bare_host = host.trim_start_matches('[').trim_end_matches(']');
    let connecting = endpoint.connect_with(config, to, bare_host);
    let connecting =
        connecting.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    Ok((connecting, endpoint))
}

async fn after_handshake(
    connecting: quinn::Connecting,
    endpoint: quinn::Endpoint,
) -> io::Result<(QuicConnection, HandshakeInfo, PeerCertificates)> {
    let connection = connecting.await?;
    let certificates = certificates(&connection).unwrap_or_else(|| PeerCertificates::from([]));
    let quic = QuicConnection {
        connection,
        endpoint,
        early: None,
    };
    Ok((quic, HANDSHAKE_INFO, certificates))
}

/// The certificates of the server; `None` before the handshake is complete.
pub(crate) fn certificates(connection: &quinn::Connection) -> Option<PeerCertificates> {
    let identity = connection.peer_identity()?;
    let certificates = identity.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    Some(PeerCertificates::from(*certificates))
}
