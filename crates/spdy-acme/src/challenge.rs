//! Challenges (RFC 8555 §8): proofs that are published while an order is open.
//!
//! | challenge | request of the authority | response |
//! | --- | --- | --- |
//! | tls-alpn-01 (RFC 8737) | a TLS client that offers `acme-tls/1` alone, at port 443 | a certificate with the digest in it |
//! | http-01 (RFC 8555 §8.3) | a GET of `/.well-known/acme-challenge/TOKEN`, at port 80 | the key authorization |
//! | dns-01 (§8.4) | a query for TXT of `_acme-challenge.NAME` | the digest, in base64 |
//!
//! The key authorization is the token and the thumbprint of our account's key (§8.1); the digest is its SHA-256.

use std::collections::BTreeMap;
use std::sync::Arc;

use data_encoding::BASE64URL_NOPAD;
use instant_acme::ChallengeType;
use parking_lot::RwLock;
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use sha2::{Digest, Sha256};
use spdy_dns::zones::SharedZones;
use spdy_net::tls::certificates::Identity;
use spdy_net::tls::identities::{AcmeChallenge, Identities};

use crate::error::AcmeError;

/// How to prove control of names.
#[derive(Clone, Debug)]
pub enum ChallengeMethod {
    /// By certificates in these identities, served by [`with_acme_challenges`](spdy_net::tls::ServerTls::with_acme_challenges).
    TlsAlpn(Identities),
    /// By responses for these tokens, on plain connections.
    Http(Http01Tokens),
    /// By TXT records in these zones. Only this method supports wildcards.
    Dns(SharedZones),
}

/// Key authorizations by token, for http-01. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Http01Tokens(Arc<RwLock<BTreeMap<String, String>>>);

impl Http01Tokens {
    /// The response body for `token`.
    #[must_use]
    pub fn authorization(&self, token: &str) -> Option<String> {
        let tokens = self.0.read();
        tokens.get(token).cloned()
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, String>)) {
        change(&mut self.0.write());
    }
}

/// A published proof, removed when this is dropped.
#[derive(Debug)]
#[must_use = "it is shown no longer than this lives"]
pub enum ActiveChallenge {
    /// A certificate.
    Tls(AcmeChallenge),
    /// An HTTP response.
    Http(TokenGuard),
    /// A TXT record.
    Dns(TxtRecordGuard),
}

/// The HTTP response for a token.
#[derive(Debug)]
pub struct TokenGuard {
    tokens: Http01Tokens,
    token: String,
}

impl Drop for TokenGuard {
    fn drop(&mut self) {
        self.tokens
            .change(|tokens| drop(tokens.remove(&self.token)));
    }
}

/// A TXT record.
#[derive(Debug)]
pub struct TxtRecordGuard {
    zones: SharedZones,
    name: String,
    text: String,
}

impl Drop for TxtRecordGuard {
    fn drop(&mut self) {
        self.zones
            .change(|zones| zones.remove_text(&self.name, &self.text));
    }
}

impl ChallengeMethod {
    /// The name of the challenge in ACME.
    #[must_use]
    pub fn challenge(&self) -> &'static str {
        match self {
            Self::TlsAlpn(_) => "tls-alpn-01",
            Self::Http(_) => "http-01",
            Self::Dns(_) => "dns-01",
        }
    }

    pub(crate) fn kind(&self) -> ChallengeType {
        match self {
            Self::TlsAlpn(_) => ChallengeType::TlsAlpn01,
            Self::Http(_) => ChallengeType::Http01,
            Self::Dns(_) => ChallengeType::Dns01,
        }
    }

    /// Publishes the proof for `name` (for a wildcard, the name without `*.`), for the authority's `authorization`.
    ///
    /// # Errors
    ///
    /// No certificate can be created for the name, or its zone accepts no TXT record.
    pub fn start(
        &self,
        name: &str,
        token: &str,
        authorization: &str,
    ) -> Result<ActiveChallenge, AcmeError> {
        let digest = Sha256::digest(authorization);
        Ok(match self {
            Self::TlsAlpn(identities) => ActiveChallenge::Tls(
                identities.show_challenge(name, &challenge_certificate(name, &digest)?)?,
            ),
            Self::Http(tokens) => {
                tokens.change(|tokens| {
                    tokens.insert(token.to_owned(), authorization.to_owned());
                });
                let (tokens, token) = (tokens.clone(), token.to_owned());
                ActiveChallenge::Http(TokenGuard { tokens, token })
            }
            Self::Dns(zones) => {
                let (owner, text) = (
                    format!("_acme-challenge.{name}"),
                    BASE64URL_NOPAD.encode(&digest),
                );
                let added = zones.change(|zones| zones.add_text(&owner, &text));
                added.map_err(|source| AcmeError::TxtRecord {
                    name: name.to_owned(),
                    source,
                })?;
                let zones = zones.clone();
                ActiveChallenge::Dns(TxtRecordGuard {
                    zones,
                    name: owner,
                    text,
                })
            }
        })
    }
}

/// The certificate of RFC 8737 §3: self-signed, only for `name`, with the digest in a critical extension.
fn challenge_certificate(name: &str, digest: &[u8]) -> Result<Identity, AcmeError> {
    let mut params = CertificateParams::new(vec![name.to_owned()])?;
    params.distinguished_name = DistinguishedName::new();
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
    let certificate = params.self_signed(&key)?;
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a generated key is valid");
    Ok(Identity {
        chain: vec![certificate.der().clone()],
        key,
    })
}

#[cfg(test)]
mod tests {
    use spdy_dns::zones::Zones;

    use super::*;

    #[test]
    fn token_is_answered_until_guard_drops() {
        let tokens = Http01Tokens::default();
        let method = ChallengeMethod::Http(tokens.clone());
        let shown = method.start("a.test", "token", "token.thumb").unwrap();
        assert_eq!(
            tokens.authorization("token").as_deref(),
            Some("token.thumb")
        );
        assert_eq!(tokens.authorization("other"), None);
        drop(shown);
        assert_eq!(tokens.authorization("token"), None);
    }

    #[test]
    fn name_outside_own_zones_is_an_error() {
        let method = ChallengeMethod::Dns(SharedZones::new(Zones::default()));
        let error = method.start("a.test", "token", "token.thumb").unwrap_err();
        assert_eq!(
            error.to_string(),
            "a.test: \"_acme-challenge.a.test\" is not in a configured zone"
        );
    }
}
