//! The authorities that sign clients' certificates (mutual TLS).

use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};

use crate::tls::certificates::certificates_from_pem;
use crate::tls::error::TlsSetupError;
use crate::tls::provider::default_provider;

/// The authorities that sign clients' certificates, and whether a client needs one. Clones share the authorities, which may be replaced
/// while a server uses them.
///
/// A server with this resumes no sessions: a resumed handshake does not verify the certificate again.
#[derive(Clone)]
pub struct ClientCertificates {
    is_required: bool,
    verifier: Arc<RwLock<Arc<dyn ClientCertVerifier>>>,
}

impl fmt::Debug for ClientCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCertificates")
            .field("is_required", &self.is_required)
            .finish_non_exhaustive()
    }
}

impl ClientCertificates {
    /// Accepts certificates of the authorities in `pem`; `what` names it in errors. If one `is_required`, the handshake of a client
    /// without one fails. A client with an invalid one always fails.
    ///
    /// # Errors
    ///
    /// `pem` has no certificate, or an invalid one.
    pub fn from_pem(pem: &[u8], what: &str, is_required: bool) -> Result<Self, TlsSetupError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates_from_pem(pem, what)? {
            roots.add(certificate)?;
        }
        let provider = Arc::new(default_provider());
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier = builder.allow_unauthenticated().build()?;
        Ok(Self {
            is_required,
            verifier: Arc::new(RwLock::new(verifier)),
        })
    }

    /// Accepts the certificates of the authorities of `other` from the next handshake on. Open connections continue.
    pub fn replace(&self, other: &Self) {
        let verifier = other.current();
        *self.verifier.write() = verifier;
    }

    fn current(&self) -> Arc<dyn ClientCertVerifier> {
        self.verifier.read().clone()
    }
}

impl ClientCertVerifier for ClientCertificates {
    fn client_auth_mandatory(&self) -> bool {
        self.is_required
    }

    /// None, because they may change: a client then offers any certificate that it has.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.current()
            .verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.current()
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.current()
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.current().supported_verify_schemes()
    }
}
