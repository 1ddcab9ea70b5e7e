//! Holds the certificates that are served: those that this crate manages, and external ones that are read from files.
//!
//! One lock covers all state, including the identities that handshakes use, so that concurrent changes are not lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::SystemTime;

use parking_lot::{Mutex, MutexGuard};
use spdy_net::tls::certificates::Identity;
use spdy_net::tls::identities::{Identities, SigningIdentity};

use crate::certificate_info::CertificateInfo;
use crate::error::AcmeError;
use crate::state_dir::StateDir;

/// Counts orders for certificates by their result.
#[derive(Debug, Default)]
pub struct OrderCounters {
    /// Orders that returned a certificate.
    pub issued: AtomicU64,
    /// Orders that failed.
    pub failed: AtomicU64,
}

/// The managed certificates of all renewers, and the external ones. Clones share the same state.
#[derive(Clone, Debug)]
pub struct Certificates {
    identities: Identities,
    state: Arc<Mutex<CertificateState>>,
    /// The results of orders.
    pub orders: Arc<OrderCounters>,
}

#[derive(Debug, Default)]
struct CertificateState {
    /// The managed certificates, by the first name of each.
    managed: BTreeMap<String, ManagedCertificate>,
    external: Vec<ExternalCertificate>,
}

/// A managed certificate, loaded or not.
#[derive(Debug, Default)]
struct ManagedCertificate {
    /// `None` until a certificate was loaded or issued.
    loaded: Option<LoadedCertificate>,
    names: Vec<String>,
}

/// A managed certificate that is parsed and ready to be served.
#[derive(Clone, Debug)]
pub(crate) struct LoadedCertificate {
    pub(crate) identity: Identity,
    pub(crate) facts: CertificateInfo,
    certified: SigningIdentity,
    /// The folder that stores it. Each authority has its own folder.
    folder: StateDir,
}

/// A certificate that was read from a file and is not renewed here.
#[derive(Clone, Debug)]
pub struct ExternalCertificate {
    facts: CertificateInfo,
    certified: SigningIdentity,
    is_stale: bool,
}

impl Certificates {
    /// Starts without certificates. Later ones become the hosts of `identities`.
    #[must_use]
    pub fn new(identities: Identities) -> Self {
        Self {
            identities,
            state: Arc::default(),
            orders: Arc::default(),
        }
    }

    /// Parses `identity` for [`set_external`](Self::set_external). `is_stale` is true if a newer file should have replaced it by now.
    ///
    /// # Errors
    ///
    /// The leaf cannot be parsed, or the key does not belong to it.
    pub fn load_external(
        &self,
        identity: &Identity,
        is_stale: bool,
    ) -> Result<ExternalCertificate, AcmeError> {
        Ok(ExternalCertificate {
            facts: CertificateInfo::parse_leaf(identity)?,
            certified: self.identities.certify(identity)?,
            is_stale,
        })
    }

    /// Replaces the external certificates. Each is served for all names in it; if two have the same name, the first is served.
    pub fn set_external(&self, external: Vec<ExternalCertificate>) {
        let mut state = self.lock();
        state.external = external;
        self.show_all(&state);
    }

    /// The end of validity of each certificate, by its first name. `None` means that a managed certificate has not been issued yet. If
    /// several external certificates have the same first name, the value is the earliest end.
    #[must_use]
    pub fn expiries(&self) -> Vec<(String, Option<SystemTime>)> {
        let state = self.lock();
        let end = |managed: &ManagedCertificate| Some(managed.loaded.as_ref()?.facts.validity.end);
        let managed = state.managed.iter();
        let managed = managed.map(|(name, managed)| (name.clone(), end(managed)));
        let mut external = BTreeMap::<String, SystemTime>::new();
        for ExternalCertificate { facts, .. } in &state.external {
            let name = facts.names.first().cloned().unwrap_or_default();
            let earliest = external.entry(name).or_insert(facts.validity.end);
            *earliest = facts.validity.end.min(*earliest);
        }
        let external = external.into_iter().map(|(name, end)| (name, Some(end)));
        managed.chain(external).collect()
    }

    /// The number of external certificates that are stale.
    #[must_use]
    pub fn stale_count(&self) -> usize {
        let state = self.lock();
        let external = state.external.iter();
        external.filter(|external| external.is_stale).count()
    }

    /// True if a certificate is served for `name`.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let state = self.lock();
        let managed = state.managed.values();
        let matching = managed.filter(|managed| managed.names.iter().any(|listed| listed == name));
        let loaded = matching.filter_map(|managed| managed.loaded.as_ref());
        let external = state.external.iter().map(|external| &external.facts);
        let mut facts = loaded.map(|loaded| &loaded.facts).chain(external);
        facts.any(|facts| facts.covers(name))
    }

    /// Removes all managed certificates. External certificates stay.
    pub fn clear(&self) {
        self.set_managed(&[]);
    }

    /// Sets the names of the managed certificates. A certificate with the same first name stays; the others are no
    /// longer served.
    pub(crate) fn set_managed(&self, certificates: &[Vec<String>]) {
        let mut state = self.lock();
        let entries = certificates.iter().filter_map(|names| {
            let mut managed = state.managed.remove(names.first()?).unwrap_or_default();
            managed.names.clone_from(names);
            Some((names.first()?.clone(), managed))
        });
        state.managed = entries.collect();
        self.show_all(&state);
    }

    /// Parses `identity`, which is stored in `folder`, for [`set`](Self::set) or [`set_stored`](Self::set_stored).
    pub(crate) fn load_managed(
        &self,
        identity: Identity,
        folder: &StateDir,
    ) -> Result<LoadedCertificate, AcmeError> {
        Ok(LoadedCertificate {
            facts: CertificateInfo::parse_leaf(&identity)?,
            certified: self.identities.certify(&identity)?,
            folder: folder.clone(),
            identity,
        })
    }

    /// Serves `loaded` for the managed names that it covers. Does nothing if no managed certificate has the first name `first`.
    pub(crate) fn set(&self, first: &str, loaded: LoadedCertificate) {
        let mut state = self.lock();
        if let Some(managed) = state.managed.get_mut(first) {
            managed.loaded = Some(loaded);
            self.show_all(&state);
        }
    }

    /// Serves `stored`, which was read from its folder, unless the current certificate belongs to the same folder and its validity starts
    /// later. Such a certificate is not in the folder yet: it is about to be written, or writing it failed.
    ///
    /// Returns the facts of the certificate that is then current. If no managed certificate has the first name `first`, nothing is
    /// served, and the result is the facts of `stored`.
    pub(crate) fn set_stored(&self, first: &str, stored: LoadedCertificate) -> CertificateInfo {
        let mut state = self.lock();
        let Some(managed) = state.managed.get_mut(first) else {
            return stored.facts;
        };
        let newer = managed.loaded.as_ref().filter(|current| {
            current.folder == stored.folder
                && current.facts.validity.start > stored.facts.validity.start
        });
        if let Some(newer) = newer {
            return newer.facts.clone();
        }
        let facts = stored.facts.clone();
        managed.loaded = Some(stored);
        self.show_all(&state);
        facts
    }

    /// The managed certificate whose first name is `first`, if it has been loaded or issued.
    pub(crate) fn current(&self, first: &str) -> Option<LoadedCertificate> {
        self.lock().managed.get(first)?.loaded.clone()
    }

    fn lock(&self) -> MutexGuard<'_, CertificateState> {
        self.state.lock()
    }

    /// Replaces the identities that handshakes use by the certificates in `state`, which the caller has locked.
    ///
    /// External certificates come first, because the first of two certificates for a name is served.
    fn show_all(&self, state: &CertificateState) {
        let mut hosts = Vec::new();
        for external in &state.external {
            let names = external.facts.names.iter();
            hosts.extend(names.map(|name| (name.clone(), external.certified.clone())));
        }
        for managed in state.managed.values() {
            let Some(loaded) = &managed.loaded else {
                continue;
            };
            let covered = managed
                .names
                .iter()
                .filter(|name| loaded.facts.covers(name));
            hosts.extend(covered.map(|name| (name.clone(), loaded.certified.clone())));
        }
        self.identities.show_hosts(hosts);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use rustls::pki_types::CertificateDer;
    use spdy_net::protocol::Protocol;
    use spdy_net::tls::certificates::{KeyKind, LocalCa};
    use spdy_net::tls::verify::Trust;
    use spdy_net::tls::{ClientTls, KeyLogTarget, ServerTls, TlsOptions};

    use super::*;

    /// Number of repetitions: the threads change the state at the same time only in some of them.
    const ATTEMPTS: usize = 100;

    async fn shown(server: &ServerTls, client: &ClientTls) -> CertificateDer<'static> {
        let (near, far) = tokio::io::duplex(64 << 10);
        let connecting = client.connect_with_certificates(Box::new(near), "a.test");
        let accepting = server.accept(Box::new(far));
        let (near, far) = futures_util::future::join(connecting, accepting).await;
        far.unwrap();
        near.unwrap().2[0].clone().into_owned()
    }

    /// Regression: a reconfiguration that read the state before `set` restored the old certificate after it.
    #[tokio::test]
    async fn certificate_issued_during_reconfiguration_is_shown() {
        let mut options = TlsOptions::default();
        options.resumption = false; // otherwise a resumed handshake would show no certificate
        options.key_log = KeyLogTarget::Disabled;
        let ca = LocalCa::generate(KeyKind::EcdsaP256).unwrap();
        let names = ["a.test".to_owned()];
        let issue = || ca.issue(&names, &[]).unwrap();
        let identities = Identities::new(&[], &issue(), &options).unwrap();
        let server = ServerTls::of(&identities, &[Protocol::Http1], &options).unwrap();
        let trust = Trust::only(vec![ca.certificate().clone()]);
        let client = ClientTls::new(&trust, &options).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let folder = StateDir::open(dir.path(), &"https://acme.test/".parse().unwrap()).unwrap();
        let certificates = Certificates::new(identities);
        certificates.set_managed(&[names.to_vec()]);
        for _ in 0..ATTEMPTS {
            let loaded = certificates.load_managed(issue(), &folder).unwrap();
            let leaf = loaded.identity.chain[0].clone();
            thread::scope(|scope| {
                scope.spawn(|| certificates.set_managed(&[names.to_vec()]));
                certificates.set("a.test", loaded);
            });
            assert_eq!(shown(&server, &client).await, leaf);
        }
    }
}
