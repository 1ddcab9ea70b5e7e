//! The client's side of QUIC: one socket for each connection, as browsers have it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use quinn::crypto::rustls::QuicClientConfig;
use rustls::pki_types::CertificateDer;
use spdy::runtime::SharedRuntime;

use crate::network::Network;
use crate::options::ClientOptions;
use crate::protocol::Protocol;
use crate::quic::runtime::QuicRuntime;
use crate::quic::transport::{client_transport, endpoint_config};
use crate::tls::{ClientTls, HandshakeInfo, PeerCertificates};

/// A client's connection whose handshake is done, and the endpoint that it lives on.
#[derive(Debug)]
pub struct QuicConnection {
    pub(crate) connection: quinn::Connection,
    pub(crate) endpoint: quinn::Endpoint,
}

/// Opens a QUIC connection for HTTP/3 to `to`, whose certificate must be for `host`. `number` names it.
///
/// # Errors
///
/// No socket, a host that is no name, a certificate that is not believed, a server that speaks something else or
/// does not answer.
pub async fn connect(
    network: &dyn Network,
    to: SocketAddr,
    host: &str,
    tls: &ClientTls,
    number: u64,
    options: &ClientOptions,
    runtime: &SharedRuntime,
) -> io::Result<(QuicConnection, HandshakeInfo, PeerCertificates)> {
    let any = match to.ip() {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = network.datagrams(SocketAddr::new(any, 0))?;
    let crypto = QuicClientConfig::try_from(tls.for_quic(host)?).map_err(io::Error::other)?;
    let mut config = quinn::ClientConfig::new(Arc::new(crypto));
    config.transport_config(Arc::new(client_transport(options)));
    let endpoint = quinn::Endpoint::new_with_abstract_socket(
        endpoint_config(&options.quic, format_args!("client {number}")),
        None,
        socket,
        QuicRuntime::shared(runtime),
    )?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let connecting = endpoint.connect_with(config, to, host);
    let connecting =
        connecting.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let connection = connecting.await?;
    let agreed = HandshakeInfo {
        protocol: Some(Protocol::Http3),
        version: Some(rustls::ProtocolVersion::TLSv1_3),
        // quinn does not tell these.
        suite: None,
        resumed: false,
        is_acme_challenge: false,
    };
    let shown = connection
        .peer_identity()
        .and_then(|shown| shown.downcast::<Vec<CertificateDer<'static>>>().ok())
        .map_or_else(
            || PeerCertificates::from([]),
            |shown| PeerCertificates::from(*shown),
        );
    let quic = QuicConnection {
        connection,
        endpoint,
    };
    Ok((quic, agreed, shown))
}
