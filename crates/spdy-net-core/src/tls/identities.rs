//! Chooses the identity that a server shows, by the name that the client requests (SNI, RFC 6066 §3).
//!
//! ```text
//!  www.site.test ──▶ that name ──▶ *.site.test ──▶ the fallback: one identity, or those of a local authority by name
//! ```
//!
//! All of it is exchanged at once, between two handshakes: certificates are renewed without a connection noticing.
//!
//! A client that offers only `acme-tls/1` is an authority, and needs proof that the name is ours (RFC 8737): a
//! certificate made for that check, which no other client gets. This works for a [`ServerTls`](crate::tls::ServerTls)
//! that is [`with_acme_challenges`](crate::tls::ServerTls::with_acme_challenges).

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::RwLock;
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::time_provider::TimeProvider;

use crate::tls::TlsOptions;
use crate::tls::certificates::Identity;
use crate::tls::error::TlsSetupError;
use crate::tls::local_certificates::LocalCertificates;

/// What a client that requests a proof offers by ALPN (RFC 8737 §6.2).
pub(crate) const ACME_TLS_ALPN: &[u8] = b"acme-tls/1";

/// Identities by host. Clones are the same ones.
#[derive(Clone)]
pub struct Identities {
    provider: Arc<CryptoProvider>,
    clock: Arc<dyn TimeProvider>,
    now: Arc<RwLock<Arc<IdentityTable>>>,
}

/// As they are shown at one time.
#[derive(Clone, Debug)]
struct IdentityTable {
    /// Sorted by name, in lower case.
    hosts: Vec<(String, Arc<CertifiedKey>)>,
    fallback: Fallback,
    /// In the order in which they came.
    challenges: Vec<(String, Arc<CertifiedKey>)>,
}

/// An identity that is ready to sign.
#[derive(Clone, Debug)]
pub struct SigningIdentity(Arc<CertifiedKey>);

/// The identity for names without one of their own, and for clients that send no name.
#[derive(Clone, Debug)]
pub enum Fallback {
    /// This identity.
    One(SigningIdentity),
    /// One for each group of names, by a local authority.
    Local(Arc<LocalCertificates>),
}

impl From<SigningIdentity> for Fallback {
    fn from(certified: SigningIdentity) -> Self {
        Self::One(certified)
    }
}

/// A proof that is shown until this is dropped.
#[derive(Debug)]
#[must_use = "the certificate is served only while this value lives"]
pub struct AcmeChallenge {
    identities: Identities,
    key: Arc<CertifiedKey>,
}

impl Drop for AcmeChallenge {
    fn drop(&mut self) {
        let proofs = |now: &mut IdentityTable| {
            now.challenges
                .retain(|(_, proof)| !Arc::ptr_eq(proof, &self.key));
        };
        self.identities.change(proofs);
    }
}

impl fmt::Debug for Identities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let now = self.now.read();
        let hosts = now.hosts.iter().map(|(host, _)| host);
        f.debug_list().entries(hosts).finish()
    }
}

impl Identities {
    /// Each host's own identity, and `fallback` for the rest. A host may be `*.` and a name: then it stands for one label
    /// before that (RFC 6125 §6.4.3), where no host of that name is listed. Of hosts that are listed twice the first counts.
    ///
    /// # Errors
    ///
    /// A key that the provider cannot use, or that is not the leaf's.
    pub fn new(
        hosts: &[(String, Identity)],
        fallback: &Identity,
        options: &TlsOptions,
    ) -> Result<Self, TlsSetupError> {
        let first = IdentityTable::new(hosts, fallback, &options.provider)?;
        Ok(Self::of(first, options))
    }

    /// No host's own identity, and those of `local` by name.
    ///
    /// # Errors
    ///
    /// The certificate of clients that send no name cannot be issued.
    pub fn local(
        local: &Arc<LocalCertificates>,
        options: &TlsOptions,
    ) -> Result<Self, TlsSetupError> {
        let identities = Self::of(
            IdentityTable {
                hosts: Vec::new(),
                fallback: Fallback::Local(local.clone()),
                challenges: Vec::new(),
            },
            options,
        );
        local.certificate(None, identities.wall_now(), &identities.provider)?;
        Ok(identities)
    }

    fn of(first: IdentityTable, options: &TlsOptions) -> Self {
        Self {
            provider: options.provider.clone(),
            clock: options.clock(),
            now: Arc::new(RwLock::new(Arc::new(first))),
        }
    }

    /// The time that certificates are issued at; where there is none, 1970.
    fn wall_now(&self) -> SystemTime {
        let now = self.clock.current_time();
        let since = now.map(|now| Duration::from_secs(now.as_secs()));
        SystemTime::UNIX_EPOCH + since.unwrap_or_default()
    }

    /// Shows these from the next handshake on.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); then all stays as it was.
    pub fn replace(
        &self,
        hosts: &[(String, Identity)],
        fallback: &Identity,
    ) -> Result<(), TlsSetupError> {
        let next = IdentityTable::new(hosts, fallback, &self.provider)?;
        self.change(|now| {
            let proofs = std::mem::take(&mut now.challenges);
            *now = IdentityTable {
                challenges: proofs,
                ..next
            };
        });
        Ok(())
    }

    /// Makes `identity` ready to be shown by [`show_hosts`](Self::show_hosts) and [`show_fallback`](Self::show_fallback), which then
    /// cannot fail.
    ///
    /// # Errors
    ///
    /// A key that the provider cannot use, or that is not the leaf's.
    pub fn certify(&self, identity: &Identity) -> Result<SigningIdentity, TlsSetupError> {
        Ok(SigningIdentity(identity.certified(&self.provider)?))
    }

    /// As [`replace`](Self::replace), of the hosts alone.
    pub fn show_hosts(&self, hosts: impl IntoIterator<Item = (String, SigningIdentity)>) {
        let hosts = hosts
            .into_iter()
            .map(|(host, SigningIdentity(key))| (host, key));
        let hosts = by_name(hosts.collect());
        self.change(|now| now.hosts = hosts);
    }

    /// The same of what is shown for all other hosts.
    pub fn show_fallback(&self, fallback: impl Into<Fallback>) {
        self.change(|now| now.fallback = fallback.into());
    }

    /// Shows `proof` for `host` to clients that offer only `acme-tls/1`, until the returned value is dropped. Of two
    /// for one host the later is shown.
    ///
    /// # Errors
    ///
    /// A key that the provider cannot use.
    pub fn show_challenge(
        &self,
        host: &str,
        proof: &Identity,
    ) -> Result<AcmeChallenge, TlsSetupError> {
        // The key is not compared with the leaf's: the parser here refuses certificates with a critical extension that
        // only authorities know. That extension makes a proof useless to other clients (RFC 8737 §3).
        let key = proof.key.clone_key();
        let key = self.provider.key_provider.load_private_key(key)?;
        let shown = Arc::new(CertifiedKey::new(proof.chain.clone(), key));
        let entry = (host.to_ascii_lowercase(), shown.clone());
        self.change(|now| now.challenges.push(entry));
        let identities = self.clone();
        Ok(AcmeChallenge {
            identities,
            key: shown,
        })
    }

    fn change(&self, change: impl FnOnce(&mut IdentityTable)) {
        let mut now = self.now.write();
        change(Arc::make_mut(&mut now));
    }
}

/// `hosts` ready to sign with, sorted by name.
fn certified(
    hosts: &[(String, Identity)],
    provider: &CryptoProvider,
) -> Result<Vec<(String, Arc<CertifiedKey>)>, TlsSetupError> {
    let mut certified = Vec::with_capacity(hosts.len());
    for (host, identity) in hosts {
        certified.push((host.clone(), identity.certified(provider)?));
    }
    Ok(by_name(certified))
}

/// In lower case, sorted, each host once.
fn by_name(mut hosts: Vec<(String, Arc<CertifiedKey>)>) -> Vec<(String, Arc<CertifiedKey>)> {
    hosts
        .iter_mut()
        .for_each(|(host, _)| host.make_ascii_lowercase());
    hosts.sort_by(|a, b| a.0.cmp(&b.0)); // keeps the first of two first
    hosts.dedup_by(|second, first| second.0 == first.0);
    hosts
}

impl IdentityTable {
    fn new(
        hosts: &[(String, Identity)],
        fallback: &Identity,
        provider: &CryptoProvider,
    ) -> Result<Self, TlsSetupError> {
        Ok(Self {
            hosts: certified(hosts, provider)?,
            fallback: Fallback::One(SigningIdentity(fallback.certified(provider)?)),
            challenges: Vec::new(),
        })
    }

    fn find(&self, host: &str) -> Option<&Arc<CertifiedKey>> {
        let hosts = &self.hosts;
        let at = hosts.binary_search_by(|(listed_host, _)| listed_host.as_str().cmp(host));
        at.ok().map(|at| &hosts[at].1)
    }

    /// The identity that is listed for `host`, itself or by a wildcard.
    fn listed(&self, host: Option<&str>) -> Option<&Arc<CertifiedKey>> {
        host.and_then(|host| {
            let host = host.to_ascii_lowercase();
            self.find(&host).or_else(|| {
                let (_, parent) = host.split_once('.')?;
                self.find(&format!("*.{parent}"))
            })
        })
    }

    fn challenge(&self, host: Option<&str>) -> Option<&Arc<CertifiedKey>> {
        let host = host?.to_ascii_lowercase();
        let mut proofs = self.challenges.iter().rev();
        proofs
            .find(|(proven, _)| *proven == host)
            .map(|(_, proof)| proof)
    }
}

impl ResolvesServerCert for Identities {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let now = {
            let now = self.now.read();
            now.clone()
        };
        let is_challenge = hello
            .alpn()
            .is_some_and(|offered| offered.eq([ACME_TLS_ALPN]));
        match is_challenge {
            true => now.challenge(hello.server_name()).cloned(),
            false => self.certificate_for(&now, hello.server_name()),
        }
    }
}

impl Identities {
    fn certificate_for(
        &self,
        now: &IdentityTable,
        host: Option<&str>,
    ) -> Option<Arc<CertifiedKey>> {
        if let Some(listed) = now.listed(host) {
            return Some(listed.clone());
        }
        match &now.fallback {
            Fallback::One(SigningIdentity(key)) => Some(key.clone()),
            Fallback::Local(local) => {
                let issued = local.certificate(host, self.wall_now(), &self.provider);
                issued
                    .inspect_err(|error| tracing::warn!(%error, ?host, "no certificate to present"))
                    .ok()
            }
        }
    }
}
