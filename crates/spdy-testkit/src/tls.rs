//! TLS for the two ends of a test.

use spdy_net_core::protocol::Protocol;
use spdy_net_core::tls::certificates::{KeyKind, LocalCa};
use spdy_net_core::tls::verify::Trust;
use spdy_net_core::tls::{ClientTls, KeyLogTarget, ServerTls, TlsOptions};

/// The default options, but without a key log.
#[must_use]
pub fn without_key_log() -> TlsOptions {
    let mut options = TlsOptions::default();
    options.key_log = KeyLogTarget::Disabled;
    options
}

/// A server for `localhost` that offers every protocol over TCP, and a client that trusts only this server's generated CA.
///
/// # Panics
///
/// If a certificate cannot be generated.
#[must_use]
pub fn tls_pair(options: &TlsOptions) -> (ServerTls, ClientTls) {
    let ca = LocalCa::generate(KeyKind::EcdsaP256).expect("generate a CA");
    let identity = ca.issue(&["localhost".to_owned()], &[]);
    let identity = identity.expect("issue a certificate for localhost");
    let trust = Trust::only(vec![ca.certificate().clone()]);
    let server = ServerTls::new(&identity, &Protocol::ALL, options);
    let client = ClientTls::new(&trust, options);
    (
        server.expect("the generated identity is valid"),
        client.expect("the generated CA is valid"),
    )
}
