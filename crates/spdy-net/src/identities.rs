//! Which identity a server shows to whom, by the name that the client asked for (SNI, RFC 6066 §3).
//!
//! ```text
//!  www.site.test ──▶ that name ──▶ *.site.test ──▶ the fallback
//! ```
//!
//! All of it is exchanged at once, between two handshakes: certificates are renewed without a connection noticing.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::certificates::Identity;
use crate::tls::TlsOptions;
use crate::tls_error::TlsSetupError;

/// Identities by host. Clones are the same ones.
#[derive(Clone)]
pub struct Identities {
    provider: Arc<CryptoProvider>,
    now: Arc<RwLock<Arc<ByName>>>,
}

/// As they are shown at one time.
#[derive(Debug)]
struct ByName {
    /// Sorted by name, in lower case.
    hosts: Vec<(String, Arc<CertifiedKey>)>,
    fallback: Arc<CertifiedKey>,
}

impl fmt::Debug for Identities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let now = self.now.read().unwrap_or_else(PoisonError::into_inner);
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
        let provider = options.provider.clone();
        let first = ByName::new(hosts, fallback, &provider)?;
        Ok(Self {
            provider,
            now: Arc::new(RwLock::new(Arc::new(first))),
        })
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
        let next = Arc::new(ByName::new(hosts, fallback, &self.provider)?);
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }
}

impl ByName {
    fn new(
        hosts: &[(String, Identity)],
        fallback: &Identity,
        provider: &CryptoProvider,
    ) -> Result<Self, TlsSetupError> {
        let mut certified = Vec::with_capacity(hosts.len());
        for (host, identity) in hosts {
            certified.push((host.to_ascii_lowercase(), identity.certified(provider)?));
        }
        certified.sort_by(|a, b| a.0.cmp(&b.0)); // keeps the first of two first
        certified.dedup_by(|second, first| second.0 == first.0);
        Ok(Self {
            hosts: certified,
            fallback: fallback.certified(provider)?,
        })
    }

    fn find(&self, host: &str) -> Option<&Arc<CertifiedKey>> {
        let hosts = &self.hosts;
        let at = hosts.binary_search_by(|(known, _)| known.as_str().cmp(host));
        at.ok().map(|at| &hosts[at].1)
    }

    fn of(&self, host: Option<&str>) -> &Arc<CertifiedKey> {
        let named = host.and_then(|host| {
            let host = host.to_ascii_lowercase();
            self.find(&host).or_else(|| {
                let (_, parent) = host.split_once('.')?;
                self.find(&format!("*.{parent}"))
            })
        });
        named.unwrap_or(&self.fallback)
    }
}

impl ResolvesServerCert for Identities {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let now = {
            let now = self.now.read().unwrap_or_else(PoisonError::into_inner);
            now.clone()
        };
        Some(now.of(hello.server_name()).clone())
    }
}
