//! TLS in memory: rustls against itself, with the records as packets, and the secrets.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};

use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use spdy_frame::version::Version;
use spdy_inspect::direction::Direction::{ToClient, ToServer};

use super::frames::Writer;
use super::tcp::Wire;

/// Records the content of an `SSLKEYLOGFILE`.
#[derive(Debug, Default)]
pub(crate) struct Secrets(pub(crate) Mutex<String>);

impl rustls::KeyLog for Secrets {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| {
            bytes
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        let line = format!("{label} {} {}\n", hex(client_random), hex(secret));
        self.0.lock().expect("no thread panicked").push_str(&line);
    }
}

/// Two peers, and the records between them.
pub(crate) struct TlsPair {
    pub(crate) client: ClientConnection,
    pub(crate) server: ServerConnection,
    pub(crate) wire: Wire,
    /// The number of the send to the client whose records are dropped from the capture.
    pub(crate) lose: Option<usize>,
    pub(crate) sends: usize,
}

impl TlsPair {
    /// Moves records until neither side has any.
    pub(crate) fn turn(&mut self) {
        loop {
            let (mut up, mut down) = (Vec::new(), Vec::new());
            while self.client.wants_write() {
                self.client
                    .write_tls(&mut up)
                    .expect("a vector accepts all bytes");
            }
            self.wire.send(ToServer, &up, 1000);
            let mut rest = &up[..];
            while !rest.is_empty() {
                self.server
                    .read_tls(&mut rest)
                    .expect("a slice returns all bytes");
                self.server
                    .process_new_packets()
                    .expect("the handshake succeeds");
            }
            while self.server.wants_write() {
                self.server
                    .write_tls(&mut down)
                    .expect("a vector accepts all bytes");
            }
            for piece in down.chunks(1000) {
                self.sends += 1;
                if self.lose == Some(self.sends) {
                    self.wire.skip(ToClient, piece.len());
                } else {
                    self.wire.send(ToClient, piece, 1000);
                }
            }
            let mut rest = &down[..];
            while !rest.is_empty() {
                self.client
                    .read_tls(&mut rest)
                    .expect("a slice returns all bytes");
                self.client
                    .process_new_packets()
                    .expect("the handshake succeeds");
            }
            if up.is_empty() && down.is_empty() {
                return;
            }
        }
    }

    pub(crate) fn up(&mut self, bytes: &[u8]) {
        self.client
            .writer()
            .write_all(bytes)
            .expect("the data is buffered");
        self.turn();
        let mut received = vec![0; bytes.len()];
        self.server
            .reader()
            .read_exact(&mut received)
            .expect("the data arrived");
    }

    pub(crate) fn down(&mut self, bytes: &[u8]) {
        for bytes in bytes.chunks(16_000) {
            self.server
                .writer()
                .write_all(bytes)
                .expect("the data is buffered");
            self.turn();
            let mut received = vec![0; bytes.len()];
            self.client
                .reader()
                .read_exact(&mut received)
                .expect("the data arrived");
        }
    }
}

/// Two peers with one version and suite; the client offers `alpn`.
pub(crate) fn connect(
    version: &'static rustls::SupportedProtocolVersion,
    suite: rustls::SupportedCipherSuite,
    alpn: Option<&str>,
) -> (TlsPair, Arc<Secrets>) {
    let self_signed =
        rcgen::generate_simple_self_signed(["site.test".to_owned()]).expect("a certificate");
    let certificate = self_signed.cert.der().clone();
    let key = PrivateKeyDer::try_from(self_signed.signing_key.serialize_der()).expect("a key");
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.cipher_suites = vec![suite];
    let provider = Arc::new(provider);
    let protocols: Vec<_> = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[version])
        .expect("the suite belongs to the version")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .expect("the key matches the certificate");
    server.alpn_protocols.clone_from(&protocols);
    let mut roots = RootCertStore::empty();
    roots
        .add(certificate)
        .expect("the certificate can be a root");
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .expect("the suite belongs to the version")
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = protocols;
    let secrets = Arc::new(Secrets::default());
    client.key_log = Arc::clone(&secrets) as Arc<dyn rustls::KeyLog>;
    let name = ServerName::try_from("site.test").expect("a name");
    let mut wire = Wire::new(1, false);
    wire.connect();
    let mut pair = TlsPair {
        client: ClientConnection::new(Arc::new(client), name).expect("a client"),
        server: ServerConnection::new(Arc::new(server)).expect("a server"),
        wire,
        lose: None,
        sends: 0,
    };
    pair.turn();
    assert!(!pair.client.is_handshaking() && !pair.server.is_handshaking());
    (pair, secrets)
}

/// A request and a response of 40,000 bytes.
pub(crate) fn speak(pair: &mut TlsPair) {
    let (mut client, mut server) = (Writer::new(Version::V31), Writer::new(Version::V31));
    pair.up(&client.open(1, true));
    pair.down(&[server.reply(1, false), server.data(1, 40_000, true)].concat());
    pair.up(&client.update(0, 40_000));
    pair.wire.close();
}

pub(crate) fn suites() -> Vec<(
    &'static rustls::SupportedProtocolVersion,
    rustls::SupportedCipherSuite,
)> {
    use rustls::crypto::aws_lc_rs::cipher_suite as suite;
    vec![
        (&rustls::version::TLS13, suite::TLS13_AES_128_GCM_SHA256),
        (&rustls::version::TLS13, suite::TLS13_AES_256_GCM_SHA384),
        (
            &rustls::version::TLS13,
            suite::TLS13_CHACHA20_POLY1305_SHA256,
        ),
        (
            &rustls::version::TLS12,
            suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        ),
        (
            &rustls::version::TLS12,
            suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        ),
        (
            &rustls::version::TLS12,
            suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        ),
    ]
}
