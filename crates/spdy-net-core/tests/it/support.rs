//! The two ends of TLS.

use spdy_net_core::protocol::Protocol;
use spdy_net_core::tls::certificates::{KeyKind, LocalCa};
use spdy_net_core::tls::verify::Trust;
use spdy_net_core::tls::{ClientTls, KeyLogTarget, ServerTls, TlsOptions};

/// Every protocol over TCP.
pub(crate) const ALL: [Protocol; 5] = Protocol::ALL;
/// Bytes a pipe holds.
pub(crate) const PIPE: usize = 64 * 1024;

/// TLS without a key log.
pub(crate) fn quiet() -> TlsOptions {
    TlsOptions {
        key_log: KeyLogTarget::Disabled,
        ..TlsOptions::default()
    }
}

/// The two sides of TLS for `localhost`, which trust each other.
pub(crate) fn tls_pair(options: &TlsOptions) -> (ServerTls, ClientTls) {
    let ca = LocalCa::generate(KeyKind::EcdsaP256).unwrap();
    let identity = ca.issue(&["localhost".to_owned()], &[]).unwrap();
    let server = ServerTls::new(&identity, &ALL, options).unwrap();
    let client = ClientTls::new(&Trust::only(vec![ca.certificate().clone()]), options).unwrap();
    (server, client)
}
