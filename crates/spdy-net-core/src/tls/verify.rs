//! Verifies a server's certificate: by roots, by pins, or not at all.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::tls::certificates::{certificates_from_pem, read};
use crate::tls::error::TlsSetupError;
use crate::tls::pins::Pin;

/// Paths of the system's root certificates, in the order in which they are tried.
const SYSTEM_BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The trusted root certificates.
#[derive(Clone, Debug, Default)]
pub enum Roots {
    /// The file named by `SSL_CERT_FILE`, otherwise the system's bundle, otherwise Mozilla's compiled-in list.
    #[default]
    System,
    /// Mozilla's compiled-in list.
    Bundled,
    /// Only those in a PEM file.
    File(PathBuf),
    /// Only these certificates.
    Only(Vec<CertificateDer<'static>>),
    /// These certificates in addition to those of [`System`](Self::System).
    SystemPlus(Vec<CertificateDer<'static>>),
}

impl Roots {
    fn store(&self) -> Result<RootCertStore, TlsSetupError> {
        match self {
            Self::System => match system_bundle() {
                Some(path) => from_file(&path, Strictness::SkipInvalid),
                None => Ok(bundled()),
            },
            Self::Bundled => Ok(bundled()),
            Self::File(path) => from_file(path, Strictness::RequireAll),
            Self::Only(all) => and(RootCertStore::empty(), all),
            Self::SystemPlus(more) => and(Self::System.store()?, more),
        }
    }
}

fn and(
    mut store: RootCertStore,
    more: &[CertificateDer<'static>],
) -> Result<RootCertStore, TlsSetupError> {
    for certificate in more {
        store.add(certificate.clone())?;
    }
    Ok(store)
}

/// The system's bundle may contain a root that rustls cannot parse; a file that was named explicitly may not.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Strictness {
    SkipInvalid,
    RequireAll,
}

fn bundled() -> RootCertStore {
    RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    }
}

fn system_bundle() -> Option<PathBuf> {
    std::env::var_os("SSL_CERT_FILE")
        .map(PathBuf::from)
        .or_else(|| {
            SYSTEM_BUNDLES
                .iter()
                .map(PathBuf::from)
                .find(|path| path.is_file())
        })
}

fn from_file(path: &Path, strictness: Strictness) -> Result<RootCertStore, TlsSetupError> {
    let certificates = certificates_from_pem(&read(path)?, &path.display().to_string())?;
    let mut store = RootCertStore::empty();
    match strictness {
        Strictness::SkipInvalid => drop(store.add_parsable_certificates(certificates)),
        Strictness::RequireAll => {
            for certificate in certificates {
                store.add(certificate)?;
            }
        }
    }
    Ok(store)
}

/// The requirements for a server's certificate.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// The trusted roots.
    pub roots: Roots,
    /// If there are any, the server's own key must be one of these, in all cases.
    pub pins: Vec<Pin>,
    /// Pins of single hosts, by their name in lower case: the key for that host must also be one of them.
    pub host_pins: Vec<(String, Vec<Pin>)>,
    /// Accept any certificate. Pins are still checked.
    pub insecure: bool,
}

impl Trust {
    /// Trusts only certificates signed by `certificates`.
    #[must_use]
    pub fn only(certificates: Vec<CertificateDer<'static>>) -> Self {
        Self {
            roots: Roots::Only(certificates),
            ..Self::default()
        }
    }

    /// Builds the verifier of these requirements.
    ///
    /// # Errors
    ///
    /// The roots cannot be read, or there are none.
    pub fn verifier(
        &self,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ServerCertVerifier>, TlsSetupError> {
        let chain: Arc<dyn ServerCertVerifier> = if self.insecure {
            Arc::new(AcceptAnyVerifier {
                provider: provider.clone(),
            })
        } else {
            let roots = Arc::new(self.roots.store()?);
            WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build()?
        };
        if self.pins.is_empty() && self.host_pins.is_empty() {
            return Ok(chain);
        }
        Ok(Arc::new(PinVerifier {
            pins: self.pins.clone(),
            host_pins: self.host_pins.clone(),
            chain,
        }))
    }
}

/// Checks the key of the leaf, then passes the certificate to `chain`.
#[derive(Debug)]
struct PinVerifier {
    pins: Vec<Pin>,
    host_pins: Vec<(String, Vec<Pin>)>,
    chain: Arc<dyn ServerCertVerifier>,
}

impl ServerCertVerifier for PinVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let presented = Pin::of(end_entity)?;
        let name = server_name.to_str().to_ascii_lowercase();
        let of_host = self.host_pins.iter().filter(|(host, _)| *host == name);
        let everyones = (!self.pins.is_empty()).then_some(&self.pins);
        let mut required = everyones.into_iter().chain(of_host.map(|(_, pins)| pins));
        if required.any(|pins| !pins.contains(&presented)) {
            return Err(Error::General(format!(
                "the key of {name} is {presented}, which is not pinned"
            )));
        }
        self.chain
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}

/// Accepts any chain and any name, but still requires that the handshake is signed by the certificate's key.
#[derive(Debug)]
struct AcceptAnyVerifier {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AcceptAnyVerifier {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
