//! A server of HTTP/3 at a port of loopback, and clients that break its rules. What they send is written out; the types of
//! frames are those of RFC 9114 §7.2.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use spdy::runtime::SharedRuntime;
use spdy_h3::client::Http3Client;
use spdy_h3::quic::{self, QuicEndpoint};
use spdy_h3::serve::serve_quic;
use spdy_net_core::error::ConnectionError;
use spdy_net_core::handler::Handler;
use spdy_net_core::latch::Latch;
use spdy_net_core::network::{Network, SystemNetwork};
use spdy_net_core::options::{ClientOptions, ServerOptions};
use spdy_net_core::protocol::Protocol;
use spdy_net_core::tls::certificates::{Identity, KeyKind, LocalCa};
use spdy_net_core::tls::verify::Trust;
use spdy_net_core::tls::{ClientTls, ServerTls};
use tokio::sync::mpsc;

use super::{echo, runtime, without_key_log};

/// A server at a port of loopback, and what a client needs to reach it.
pub(crate) struct TestServer {
    pub(crate) ca: LocalCa,
    pub(crate) identity: Identity,
    pub(crate) address: SocketAddr,
    pub(crate) stop: Latch,
    /// How connections ended.
    pub(crate) ends: mpsc::UnboundedReceiver<Result<(), ConnectionError>>,
}

pub(crate) const LOOPBACK: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

impl TestServer {
    pub(crate) fn serve(handler: impl Handler, options: ServerOptions) -> Self {
        Self::serve_in(runtime(), handler, options)
    }

    /// Serves in the time of `runtime`.
    pub(crate) fn serve_in(
        runtime: SharedRuntime,
        handler: impl Handler,
        options: ServerOptions,
    ) -> Self {
        let ca = LocalCa::generate(KeyKind::EcdsaP256).unwrap();
        let identity = ca.issue(&["localhost".to_owned()], &[]).unwrap();
        let tls = ServerTls::new(&identity, &Protocol::ALL, &without_key_log()).unwrap();
        let socket = SystemNetwork.datagrams(LOOPBACK).unwrap();
        let endpoint = QuicEndpoint::new(socket, &tls, &options, &runtime).unwrap();
        let (address, stop) = (endpoint.address().unwrap(), Latch::new());
        let (sender, ends) = mpsc::unbounded_channel();
        let (handler, until): (Arc<dyn Handler>, _) = (Arc::new(handler), stop.clone());
        tokio::spawn(async move {
            while let Some(incoming) = endpoint.accept().await {
                let (handler, options) = (handler.clone(), options.clone());
                let (runtime, until, sender) = (runtime.clone(), until.clone(), sender.clone());
                tokio::spawn(async move {
                    let end = serve_quic(incoming, handler, &options, &runtime, &until).await;
                    let _ = sender.send(end);
                });
            }
        });
        Self {
            ca,
            identity,
            address,
            stop,
            ends,
        }
    }

    pub(crate) fn echo() -> Self {
        Self::serve(echo, ServerOptions::default())
    }

    pub(crate) async fn connect_to(&self, address: SocketAddr) -> Http3Client {
        self.connect_in(runtime(), address, ClientOptions::default())
            .await
    }

    /// Connects in the time of `runtime`.
    pub(crate) async fn connect_in(
        &self,
        runtime: SharedRuntime,
        address: SocketAddr,
        options: ClientOptions,
    ) -> Http3Client {
        let trust = Trust::only(vec![self.ca.certificate().clone()]);
        let tls = ClientTls::new(&trust, &without_key_log()).unwrap();
        let network = SystemNetwork;
        let connecting = quic::connect(&network, address, "localhost", &tls, 0, &options, &runtime);
        let (quic, negotiated, chain) = connecting.await.unwrap();
        assert_eq!(negotiated.protocol, Some(Protocol::Http3));
        assert_eq!(chain.first(), self.chain().first());
        Http3Client::start(quic, &options, None, &runtime)
    }

    pub(crate) async fn connect(&self) -> Http3Client {
        self.connect_to(self.address).await
    }

    pub(crate) fn chain(&self) -> Vec<CertificateDer<'static>> {
        let pem = self.identity.chain_pem();
        CertificateDer::pem_slice_iter(pem.as_bytes())
            .map(Result::unwrap)
            .collect()
    }

    /// A QUIC connection on which the test sends its own bytes.
    pub(crate) async fn raw(&self) -> quinn::Connection {
        self.raw_by(self.address, quinn::TransportConfig::default())
            .await
    }

    /// The same to `address`, with a `transport` of its own.
    pub(crate) async fn raw_by(
        &self,
        address: SocketAddr,
        transport: quinn::TransportConfig,
    ) -> quinn::Connection {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.ca.certificate().clone()).unwrap();
        let mut tls = rustls::ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(tls).unwrap();
        let mut config = quinn::ClientConfig::new(Arc::new(crypto));
        config.transport_config(Arc::new(transport));
        let endpoint = quinn::Endpoint::client(LOOPBACK).unwrap();
        let connecting = endpoint.connect_with(config, address, "localhost");
        connecting.unwrap().await.unwrap()
    }

    /// How the next connection ended.
    pub(crate) async fn end(&mut self) -> Result<(), ConnectionError> {
        self.ends.recv().await.expect("the server runs")
    }
}

/// Codes of RFC 9114 §8.1.
pub(crate) mod code {
    pub(crate) const NO_ERROR: u64 = 0x100;
    pub(crate) const INTERNAL_ERROR: u64 = 0x102;
    pub(crate) const STREAM_CREATION_ERROR: u64 = 0x103;
    pub(crate) const CLOSED_CRITICAL_STREAM: u64 = 0x104;
    pub(crate) const FRAME_UNEXPECTED: u64 = 0x105;
    pub(crate) const FRAME_ERROR: u64 = 0x106;
    pub(crate) const EXCESSIVE_LOAD: u64 = 0x107;
    pub(crate) const ID_ERROR: u64 = 0x108;
    pub(crate) const SETTINGS_ERROR: u64 = 0x109;
    pub(crate) const MISSING_SETTINGS: u64 = 0x10a;
    pub(crate) const REQUEST_CANCELLED: u64 = 0x10c;
    pub(crate) const REQUEST_INCOMPLETE: u64 = 0x10d;
    pub(crate) const MESSAGE_ERROR: u64 = 0x10e;
    pub(crate) const QPACK_DECOMPRESSION_FAILED: u64 = 0x200;
    pub(crate) const QPACK_ENCODER_STREAM_ERROR: u64 = 0x201;
    pub(crate) const QPACK_DECODER_STREAM_ERROR: u64 = 0x202;
}

/// An integer of QUIC's in four bytes.
pub(crate) fn long(value: usize) -> [u8; 4] {
    (u32::try_from(value).unwrap() | 0x8000_0000).to_be_bytes()
}

/// The head of a frame of `kind` with the length `len`, and the first bytes of its payload.
pub(crate) fn announced(kind: u8, len: usize, payload: &[u8]) -> Vec<u8> {
    [&[kind][..], &long(len), payload].concat()
}

/// A header block in a HEADERS: GET https://localhost/1, and `extra` fields of the block.
pub(crate) fn headers(extra: &[u8]) -> Vec<u8> {
    let block = [b"\x00\x00\xd1\xd7\x50\x09localhost\x51\x02/1", extra].concat();
    announced(1, block.len(), &block)
}

/// Sends `bytes` on a stream for a request, ends it, and gives the code that the server resets it or the whole
/// connection with; `None` if it answers.
pub(crate) async fn outcome(connection: &quinn::Connection, bytes: &[u8]) -> Option<u64> {
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    if send.write_all(bytes).await.is_ok() {
        let _ = send.finish();
    }
    match recv.read_to_end(1 << 20).await {
        Ok(_) => None,
        Err(quinn::ReadToEndError::Read(quinn::ReadError::Reset(code))) => Some(code.into_inner()),
        Err(_) => Some(close_code(connection).await),
    }
}

/// Sends `bytes` on a stream of one direction, which stays open unless it is `over`.
pub(crate) async fn uni(
    connection: &quinn::Connection,
    bytes: &[u8],
    over: bool,
) -> quinn::SendStream {
    let mut stream = connection.open_uni().await.unwrap();
    stream.write_all(bytes).await.unwrap();
    if over {
        stream.finish().unwrap();
    }
    stream
}

/// The code that the server closes the connection with.
pub(crate) async fn close_code(connection: &quinn::Connection) -> u64 {
    match connection.closed().await {
        quinn::ConnectionError::ApplicationClosed(close) => close.error_code.into_inner(),
        other => panic!("the server did not close the connection: {other}"),
    }
}

/// SETTINGS, empty, on the control stream.
pub(crate) const CONTROL: &[u8] = &[0x00, 0x04, 0x00];
