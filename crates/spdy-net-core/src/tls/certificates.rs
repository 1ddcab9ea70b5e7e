//! Certificates: read from PEM, or issued by a local authority.
//!
//! ```text
//! LocalCa (CA:TRUE, self-signed)  --signs-->  leaf (CA:FALSE, serverAuth, every host and IP as SAN)
//!    `- its PEM is what clients trust (--cacert)
//! ```
//!
//! A leaf is never a CA: webpki refuses such a certificate from a server.

use std::net::IpAddr;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use data_encoding::BASE64;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;

use crate::tls::error::TlsSetupError;
use crate::tls::provider::default_provider;

/// The kind of key of a certificate.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum KeyKind {
    /// ECDSA over P-256: small and fast. The length of a signature varies by a byte or two.
    #[default]
    EcdsaP256,
    /// RSA of 2048 bits, like the servers of 2012. Generating a key takes up to a second.
    Rsa2048,
    /// Ed25519: all lengths are fixed, which repeatable simulations need. Browsers reject it.
    Ed25519,
}

impl KeyKind {
    fn generate(self) -> Result<KeyPair, rcgen::Error> {
        KeyPair::generate_for(match self {
            Self::EcdsaP256 => &rcgen::PKCS_ECDSA_P256_SHA256,
            Self::Rsa2048 => &rcgen::PKCS_RSA_SHA256,
            Self::Ed25519 => &rcgen::PKCS_ED25519,
        })
    }
}

/// A certificate chain, leaf first, and the key of the leaf.
#[derive(Debug)]
pub struct Identity {
    /// Leaf first.
    pub chain: Vec<CertificateDer<'static>>,
    /// Private key of the leaf.
    pub key: PrivateKeyDer<'static>,
}

impl Clone for Identity {
    fn clone(&self) -> Self {
        Self {
            chain: self.chain.clone(),
            key: self.key.clone_key(),
        }
    }
}

impl Identity {
    /// Parses a chain and a key (PKCS #8, PKCS #1 or SEC 1) from PEM text. `what` names the text in errors.
    ///
    /// # Errors
    ///
    /// The text is not PEM, or contains no certificate or no key.
    pub fn from_pem(chain: &[u8], key: &[u8], what: &str) -> Result<Self, TlsSetupError> {
        let chain = certificates_from_pem(chain, what)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
            rustls::pki_types::pem::Error::NoItemsFound => TlsSetupError::EmptyPem {
                expected: "private key",
                what: what.to_owned(),
            },
            other => TlsSetupError::Pem {
                what: what.to_owned(),
                reason: other.to_string(),
            },
        })?;
        Ok(Self { chain, key })
    }

    /// Reads a chain and a key from two PEM files.
    ///
    /// # Errors
    ///
    /// As in [`from_pem`](Self::from_pem), or a file cannot be read.
    pub fn from_files(chain: &Path, key: &Path) -> Result<Self, TlsSetupError> {
        let what = format!("{} and {}", chain.display(), key.display());
        Self::from_pem(&read(chain)?, &read(key)?, &what)
    }

    /// True if the leaf covers the host `name`.
    ///
    /// # Errors
    ///
    /// The leaf cannot be parsed.
    pub fn covers(&self, name: &str) -> Result<bool, TlsSetupError> {
        let Some(leaf) = self.chain.first() else {
            return Ok(false);
        };
        let leaf = ParsedCertificate::try_from(leaf)?;
        let is_for = |name| verify_server_name(&leaf, &name).is_ok();
        Ok(ServerName::try_from(name).is_ok_and(is_for))
    }

    /// The chain as PEM text.
    #[must_use]
    pub fn chain_pem(&self) -> String {
        let certificates = self.chain.iter();
        certificates
            .map(|certificate| pem("CERTIFICATE", certificate))
            .collect()
    }

    /// The key as PEM text.
    #[must_use]
    pub fn key_pem(&self) -> String {
        let label = match self.key {
            PrivateKeyDer::Pkcs1(_) => "RSA PRIVATE KEY",
            PrivateKeyDer::Sec1(_) => "EC PRIVATE KEY",
            _ => "PRIVATE KEY",
        };
        pem(label, self.key.secret_der())
    }

    /// The chain and its key, ready to sign with.
    ///
    /// # Errors
    ///
    /// The provider cannot use the key, or it does not belong to the leaf.
    pub fn certified(&self, provider: &CryptoProvider) -> Result<Arc<CertifiedKey>, TlsSetupError> {
        let key = self.key.clone_key();
        Ok(Arc::new(CertifiedKey::from_der(
            self.chain.clone(),
            key,
            provider,
        )?))
    }
}

/// Encodes DER as text (RFC 7468).
fn pem(label: &str, der: &[u8]) -> String {
    let text = BASE64.encode(der);
    let mut lines = String::new();
    for line in text.as_bytes().chunks(64) {
        lines.push_str(std::str::from_utf8(line).expect("base64 is ASCII"));
        lines.push('\n');
    }
    format!("-----BEGIN {label}-----\n{lines}-----END {label}-----\n")
}

/// All certificates in `pem`. `what` names the text in errors.
///
/// # Errors
///
/// The text is not PEM, or contains no certificate.
pub fn certificates_from_pem(
    pem: &[u8],
    what: &str,
) -> Result<Vec<CertificateDer<'static>>, TlsSetupError> {
    let found = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| TlsSetupError::Pem {
            what: what.to_owned(),
            reason: error.to_string(),
        })?;
    if found.is_empty() {
        return Err(TlsSetupError::EmptyPem {
            expected: "certificate",
            what: what.to_owned(),
        });
    }
    Ok(found)
}

/// Reads a file for TLS.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, TlsSetupError> {
    std::fs::read(path).map_err(|source| TlsSetupError::File {
        path: path.to_owned(),
        source,
    })
}

/// A certificate authority for a local server. It exists as long as the process, or is [stored in files](LocalCa::load_or_create).
pub struct LocalCa {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
    kind: KeyKind,
}

impl std::fmt::Debug for LocalCa {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalCa")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl LocalCa {
    /// Creates an authority with keys of `kind`, its own and its leaves'.
    ///
    /// # Errors
    ///
    /// The system has no entropy, or the provider does not support the kind of key.
    pub fn generate(kind: KeyKind) -> Result<Self, TlsSetupError> {
        let params = authority_params();
        let key = kind.generate()?;
        let certificate = params.self_signed(&key)?;
        Ok(Self {
            pem: certificate.pem(),
            certificate: certificate.der().clone(),
            issuer: Issuer::new(params, key),
            kind,
        })
    }

    /// Parses an authority from the PEM of its key and of its certificate; `what` names the text in errors.
    ///
    /// # Errors
    ///
    /// The text is not PEM, or has no key or no certificate, or a certificate of another key.
    pub(crate) fn from_pem(text: &[u8], what: &str, kind: KeyKind) -> Result<Self, TlsSetupError> {
        let identity = Identity::from_pem(text, text, what)?;
        // The certificate must match the key: no client accepts a signature of another key.
        identity.certified(&default_provider())?;
        let key = KeyPair::from_pem(&identity.key_pem())?;
        let pem = identity.chain_pem();
        let Some(certificate) = identity.chain.into_iter().next() else {
            unreachable!("a parsed chain without a certificate")
        };
        Ok(Self {
            issuer: Issuer::new(authority_params(), key),
            certificate,
            pem,
            kind,
        })
    }

    /// The key as PEM text.
    pub(crate) fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// Signs a certificate for `names` (hosts, wildcards, or addresses as text) and `addresses`. It is valid at any time.
    ///
    /// # Errors
    ///
    /// A name cannot be in a certificate.
    pub fn issue(&self, names: &[String], addresses: &[IpAddr]) -> Result<Identity, TlsSetupError> {
        self.sign(params(common_name(names)), names, addresses)
    }

    /// The same, valid only for `during`. A public server needs that: clients reject certificates that are valid for years. (Apple:
    /// 825 days, for every issuer.)
    ///
    /// # Errors
    ///
    /// As in [`issue`](Self::issue).
    pub fn issue_for(
        &self,
        names: &[String],
        addresses: &[IpAddr],
        during: Range<SystemTime>,
    ) -> Result<Identity, TlsSetupError> {
        let mut params = params(common_name(names));
        params.not_before = during.start.into();
        params.not_after = during.end.into();
        self.sign(params, names, addresses)
    }

    /// Checks that a certificate can contain `name`.
    ///
    /// # Errors
    ///
    /// It cannot.
    pub(crate) fn check_name(name: &str) -> Result<(), TlsSetupError> {
        subject_names(&[name.to_owned()], &[]).map(|_| ())
    }

    fn sign(
        &self,
        mut params: CertificateParams,
        names: &[String],
        addresses: &[IpAddr],
    ) -> Result<Identity, TlsSetupError> {
        params.subject_alt_names = subject_names(names, addresses)?;
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyEncipherment,
        ];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        // An explicit CA:FALSE: some clients require it.
        params.is_ca = IsCa::ExplicitNoCa;
        let key = self.kind.generate()?;
        let leaf = params.signed_by(&key, &self.issuer)?;
        let key =
            PrivateKeyDer::try_from(key.serialize_der()).expect("a generated key can be parsed");
        Ok(Identity {
            chain: vec![leaf.der().clone(), self.certificate.clone()],
            key,
        })
    }

    /// The authority's own certificate, for clients that must trust it.
    #[must_use]
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// The same as PEM text.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.pem
    }
}

/// The parameters of the authority's certificate. They are constant, so an authority that is loaded from files needs only its key.
fn authority_params() -> CertificateParams {
    let mut params = params("spdy local authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn common_name(names: &[String]) -> &str {
    names.first().map_or("localhost", String::as_str)
}

/// Valid from 1975 to 4096: an expired local certificate is only an obstacle.
fn params(common_name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    let mut name = DistinguishedName::new();
    // X.520 limits a common name to 64 characters.
    name.push(
        DnType::CommonName,
        common_name.chars().take(64).collect::<String>(),
    );
    params.distinguished_name = name;
    params
}

/// All names without duplicates, in the given order.
fn subject_names(names: &[String], addresses: &[IpAddr]) -> Result<Vec<SanType>, TlsSetupError> {
    let mut all = Vec::with_capacity(names.len() + addresses.len());
    for name in names {
        let name = name.trim_start_matches('[').trim_end_matches(']');
        let san = match name.parse::<IpAddr>() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName(name.to_ascii_lowercase().try_into()?),
        };
        if !all.contains(&san) {
            all.push(san);
        }
    }
    for &address in addresses {
        let san = SanType::IpAddress(address);
        if !all.contains(&san) {
            all.push(san);
        }
    }
    Ok(all)
}
