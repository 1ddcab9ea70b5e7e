//! Chooses the identity that a server shows, by the name that the client requests (SNI, RFC 6066 §3).
//!
//! ```text
//!  www.site.test ──▶ that name ──▶ *.site.test ──▶ the fallback: one identity, or those of a local authority by name
//! ```
//!
//! All identities are replaced at once, between two handshakes: certificates are renewed without affecting open connections.
//!
//! A client that offers only `acme-tls/1` is a certificate authority that validates the name (RFC 8737): it gets a certificate
//! created for that check, which no other client gets. This works for a [`ServerTls`](crate::tls::ServerTls) that is
//! [`with_acme_challenges`](crate::tls::ServerTls::with_acme_challenges).

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

/// The ALPN protocol of a client that validates a name (RFC 8737 §6.2).
pub(crate) const ACME_TLS_ALPN: &[u8] = b"acme-tls/1";

/// Identities by host. Clones share them.
#[derive(Clone)]
pub struct Identities {
    provider: Arc<CryptoProvider>,
    clock: Arc<dyn TimeProvider>,
    now: Arc<RwLock<Arc<IdentityTable>>>,
}

/// The identities at one time.
#[derive(Clone, Debug)]
struct IdentityTable {
    /// Sorted by name, in lower case.
    hosts: Vec<(String, Arc<CertifiedKey>)>,
    fallback: Fallback,
    /// In the order in which they were added.
    challenges: Vec<(String, Arc<CertifiedKey>)>,
}

/// An identity that is ready to sign.
#[derive(Clone, Debug)]
pub struct SigningIdentity(Arc<CertifiedKey>);

/// The identity for names without their own, and for clients that send no name.
#[derive(Clone, Debug)]
pub enum Fallback {
    /// This identity.
    One(SigningIdentity),
    /// One for each group of names, issued by a local authority.
    Local(Arc<LocalCertificates>),
}

impl From<SigningIdentity> for Fallback {
    fn from(certified: SigningIdentity) -> Self {
        Self::One(certified)
    }
}

/// A challenge certificate that is served until this is dropped.
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
    /// Creates identities for hosts, with `fallback` for others. A host may be `*.` and a name, which matches one additional label
    /// (RFC 6125 §6.4.3) if that host is not listed itself. If a host is listed twice, the first is used.
    ///
    /// # Errors
    ///
    /// The provider cannot use a key, or it does not belong to the leaf.
    pub fn new(
        hosts: &[(String, Identity)],
        fallback: &Identity,
        options: &TlsOptions,
    ) -> Result<Self, TlsSetupError> {
        let first = IdentityTable::new(hosts, fallback, &options.provider)?;
        Ok(Self::of(first, options))
    }

    /// Without identities of hosts: those of `local` are used by name.
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

    /// The time at which certificates are issued; 1970 without a wall clock.
    fn wall_now(&self) -> SystemTime {
        let now = self.clock.current_time();
        let since = now.map(|now| Duration::from_secs(now.as_secs()));
        SystemTime::UNIX_EPOCH + since.unwrap_or_default()
    }

    /// Uses these from the next handshake on.
    ///
    /// # Errors
    ///
    /// As in [`new`](Self::new); nothing is changed then.
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

    /// Prepares `identity` for [`show_hosts`](Self::show_hosts) and [`show_fallback`](Self::show_fallback), which then cannot fail.
    ///
    /// # Errors
    ///
    /// The provider cannot use the key, or it does not belong to the leaf.
    pub fn certify(&self, identity: &Identity) -> Result<SigningIdentity, TlsSetupError> {
        Ok(SigningIdentity(identity.certified(&self.provider)?))
    }

    /// Like [`replace`](Self::replace), for the hosts only.
    pub fn show_hosts(&self, hosts: impl IntoIterator<Item = (String, SigningIdentity)>) {
        let hosts = hosts
            .into_iter()
            .map(|(host, SigningIdentity(key))| (host, key));
        let hosts = by_name(hosts.collect());
        self.change(|now| now.hosts = hosts);
    }

    /// The same for the fallback.
    pub fn show_fallback(&self, fallback: impl Into<Fallback>) {
        self.change(|now| now.fallback = fallback.into());
    }

    /// Serves `proof` for `host` to clients that offer only `acme-tls/1`, until the returned value is dropped. If there are two for
    /// one host, the later is served.
    ///
    /// # Errors
    ///
    /// The provider cannot use the key.
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

/// Converts `hosts` to signing identities, sorted by name.
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

/// In lower case, sorted, without duplicates.
fn by_name(mut hosts: Vec<(String, Arc<CertifiedKey>)>) -> Vec<(String, Arc<CertifiedKey>)> {
    hosts
        .iter_mut()
        .for_each(|(host, _)| host.make_ascii_lowercase());
    hosts.sort_by(|a, b| a.0.cmp(&b.0)); // stable: the first of two stays first
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

    /// The identity for `host`, by its name or by a wildcard.
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
