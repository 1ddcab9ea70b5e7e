//! Parts of the handshake that both sides share, and its result.

use std::io;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;

use crate::protocol::Protocol;
use crate::tls::identities::ACME_TLS_ALPN;

/// Limit of unread or unsent bytes inside one TLS connection.
pub(super) const TLS_BUFFER_BYTES: usize = 64 * 1024;

/// The result of a handshake.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HandshakeInfo {
    /// The protocol that was selected by ALPN; `None` if the peer does not support ALPN.
    pub protocol: Option<Protocol>,
    /// The version of TLS.
    pub version: Option<rustls::ProtocolVersion>,
    /// The cipher suite.
    pub suite: Option<rustls::CipherSuite>,
    /// True if an earlier session was resumed by an abbreviated handshake. (QUIC does not report it, and is always false.)
    pub resumed: bool,
    /// The client requested only a proof of the name (`acme-tls/1`, RFC 8737): the connection is over.
    pub is_acme_challenge: bool,
}

pub(super) fn handshake_info(tls: &rustls::CommonState) -> HandshakeInfo {
    HandshakeInfo {
        protocol: tls.alpn_protocol().and_then(Protocol::from_alpn),
        version: tls.protocol_version(),
        suite: tls.negotiated_cipher_suite().map(|suite| suite.suite()),
        resumed: tls.handshake_kind() == Some(rustls::HandshakeKind::Resumed),
        is_acme_challenge: tls.alpn_protocol() == Some(ACME_TLS_ALPN),
    }
}

/// The certificates of a server, its own first.
pub type PeerCertificates = Arc<[CertificateDer<'static>]>;

/// True if a handshake failed with `error` because the server's certificate was not accepted.
#[must_use]
pub fn is_certificate_error(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    matches!(cause, Some(rustls::Error::InvalidCertificate(_)))
}

pub(super) fn alpn(protocols: &[Protocol]) -> Vec<Vec<u8>> {
    protocols
        .iter()
        .map(|protocol| protocol.alpn().as_bytes().to_vec())
        .collect()
}

pub(super) fn quic_config_error(error: &rustls::Error) -> io::Error {
    let reason = format!("HTTP/3 needs TLS 1.3: {error}");
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}
