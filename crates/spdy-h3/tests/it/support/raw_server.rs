//! A server's end of QUIC that a test writes to by hand, and our client's connection to it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use spdy::runtime::SharedRuntime;
use spdy_h3::client::Http3Client;
use spdy_h3::quic;
use spdy_net_core::network::SystemNetwork;
use spdy_net_core::options::ClientOptions;
use spdy_net_core::tls::ClientTls;
use spdy_net_core::tls::certificates::{KeyKind, LocalCa};
use spdy_net_core::tls::verify::Trust;

use super::http3::CONTROL;
use super::{runtime, without_key_log};

/// HEADERS with `:status: 200`, by the static table.
pub(crate) const OK: &[u8] = &[0x01, 0x03, 0x00, 0x00, 0xd9];

/// A server's end of QUIC, its control stream, and our client's connection to it.
pub(crate) struct ClientServerPair {
    pub(crate) client: Http3Client,
    pub(crate) server: quinn::Connection,
    pub(crate) control: quinn::SendStream,
    _endpoint: quinn::Endpoint,
}

/// Connects client and server; the client may have `max_requests` requests open.
pub(crate) async fn connect_pair(max_requests: u32) -> ClientServerPair {
    let mut transport = quinn::TransportConfig::default();
    transport.max_concurrent_bidi_streams(max_requests.into());
    connect_pair_in(runtime(), transport).await
}

/// Connects client and server, whose control stream begins with `control`.
pub(crate) async fn connect_pair_with(
    control: &[u8],
    transport: quinn::TransportConfig,
) -> ClientServerPair {
    connect(runtime(), transport, control).await
}

/// Connects client and server, the client in the time of `runtime` and the server with its own `transport`.
pub(crate) async fn connect_pair_in(
    runtime: SharedRuntime,
    transport: quinn::TransportConfig,
) -> ClientServerPair {
    connect(runtime, transport, CONTROL).await
}

async fn connect(
    runtime: SharedRuntime,
    transport: quinn::TransportConfig,
    opening: &[u8],
) -> ClientServerPair {
    let ca = LocalCa::generate(KeyKind::EcdsaP256).unwrap();
    let identity = ca.issue(&["localhost".to_owned()], &[]).unwrap();
    let chain = rustls::pki_types::CertificateDer::pem_slice_iter(identity.chain_pem().as_bytes())
        .map(Result::unwrap)
        .collect();
    let key = PrivateKeyDer::from_pem_slice(identity.key_pem().as_bytes()).unwrap();
    let mut tls = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let crypto = quinn::crypto::rustls::QuicServerConfig::try_from(tls).unwrap();
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(Arc::new(transport));
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let endpoint = quinn::Endpoint::server(config, anywhere).unwrap();
    let address = endpoint.local_addr().unwrap();
    let trust = Trust::only(vec![ca.certificate().clone()]);
    let tls = ClientTls::new(&trust, &without_key_log()).unwrap();
    let options = ClientOptions::default();
    let network = SystemNetwork;
    let connecting = quic::connect(&network, address, "localhost", &tls, 0, &options, &runtime);
    let accepting = async { endpoint.accept().await.unwrap().await.unwrap() };
    let (connected, server) = tokio::join!(connecting, accepting);
    let client = Http3Client::start(connected.unwrap().0, &options, None, &runtime);
    let mut control = server.open_uni().await.unwrap();
    control.write_all(opening).await.unwrap();
    ClientServerPair {
        client,
        server,
        control,
        _endpoint: endpoint,
    }
}
