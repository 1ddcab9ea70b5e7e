//! The certificates that are served, managed here or elsewhere.
//!
//! All state changes under one lock, including what handshakes see: of two concurrent changes none is lost.

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

/// How many orders there were.
#[derive(Debug, Default)]
pub struct OrderCounters {
    /// Those that brought a certificate.
    pub issued: AtomicU64,
    /// Those that did not.
    pub failed: AtomicU64,
}

/// The certificates that are held, of all keepers that there were. Clones are the same ones.
#[derive(Clone, Debug)]
pub struct Certificates {
    identities: Identities,
    all: Arc<Mutex<CertificateState>>,
    /// What became of orders.
    pub orders: Arc<OrderCounters>,
}

#[derive(Debug, Default)]
struct CertificateState {
    held: BTreeMap<String, ManagedCertificate>,
    /// Certificates that are also served, and managed elsewhere.
    external: Vec<ExternalCertificate>,
}

/// One, under the first of its names.
#[derive(Debug, Default)]
struct ManagedCertificate {
    known: Option<LoadedCertificate>,
    names: Vec<String>,
}

/// A certificate, with all that is to be known of it before it is shown.
#[derive(Clone, Debug)]
pub(crate) struct LoadedCertificate {
    pub(crate) identity: Identity,
    pub(crate) facts: CertificateInfo,
    certified: SigningIdentity,
    /// The folder that stores it, which shows its owner.
    folder: StateDir,
}

/// A certificate that is managed elsewhere: from a file.
#[derive(Clone, Debug)]
pub struct ExternalCertificate {
    facts: CertificateInfo,
    certified: SigningIdentity,
    is_stale: bool,
}

impl Certificates {
    /// None yet; what comes is shown as hosts of `identities`.
    #[must_use]
    pub fn new(identities: Identities) -> Self {
        Self {
            identities,
            all: Arc::default(),
            orders: Arc::default(),
        }
    }

    /// Reads `identity`, and makes it ready to be [given](Self::set_external); it is stale if there should be another by now.
    ///
    /// # Errors
    ///
    /// It cannot be read, or its key is not the leaf's.
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

    /// Shows these from now on, each for the names in it, and none that were given before. Of two for one name the first is shown.
    pub fn set_external(&self, given: Vec<ExternalCertificate>) {
        let mut all = self.lock();
        all.external = given;
        self.show_all(&all);
    }

    /// Until when each certificate is valid, by the first of its names; `None`: it has not come yet. If several have the same first name,
    /// the value is of the one that ends first.
    #[must_use]
    pub fn expiries(&self) -> Vec<(String, Option<SystemTime>)> {
        let all = self.lock();
        let expiry = |held: &ManagedCertificate| Some(held.known.as_ref()?.facts.validity.end);
        let held = all.held.iter();
        let held = held.map(|(name, held)| (name.clone(), expiry(held)));
        let mut given = BTreeMap::<String, SystemTime>::new();
        for ExternalCertificate { facts, .. } in &all.external {
            let name = facts.names.first().cloned().unwrap_or_default();
            let end = given.entry(name).or_insert(facts.validity.end);
            *end = facts.validity.end.min(*end);
        }
        let given = given.into_iter().map(|(name, end)| (name, Some(end)));
        held.chain(given).collect()
    }

    /// How many of those that are given are stale.
    #[must_use]
    pub fn stale_count(&self) -> usize {
        let all = self.lock();
        all.external.iter().filter(|given| given.is_stale).count()
    }

    /// True if there is a certificate for `name`.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let all = self.lock();
        let meant = all.held.values();
        let meant = meant.filter(|held| held.names.iter().any(|meant| meant == name));
        let known = meant.filter_map(|held| held.known.as_ref());
        let given = all.external.iter().map(|given| &given.facts);
        let mut facts = known.map(|known| &known.facts).chain(given);
        facts.any(|facts| facts.covers(name))
    }

    /// None any more.
    pub fn clear(&self) {
        self.want(&[]);
    }

    /// From now on these are meant and shown, and no others.
    pub(crate) fn want(&self, certificates: &[Vec<String>]) {
        let mut all = self.lock();
        let wanted = certificates.iter().filter_map(|names| {
            let mut one = all.held.remove(names.first()?).unwrap_or_default();
            one.names.clone_from(names);
            Some((names.first()?.clone(), one))
        });
        all.held = wanted.collect();
        self.show_all(&all);
    }

    /// Reads `identity`, which is stored in `folder`, and prepares it for use.
    pub(crate) fn known(
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

    /// Shows `known` for those of its names that are wanted.
    pub(crate) fn set(&self, first: &str, known: LoadedCertificate) {
        let mut all = self.lock();
        // Else it is wanted no longer.
        if let Some(one) = all.held.get_mut(first) {
            one.known = Some(known);
            self.show_all(&all);
        }
    }

    /// The same of one that was in its folder, unless one is held that came later and belongs there: its keeper may be about to
    /// write it, or could not. What is shown then says this.
    pub(crate) fn set_loaded(&self, first: &str, known: LoadedCertificate) -> CertificateInfo {
        let mut all = self.lock();
        let Some(one) = all.held.get_mut(first) else {
            return known.facts; // it is wanted no longer
        };
        let later = one.known.as_ref().filter(|held| {
            held.folder == known.folder && held.facts.validity.start > known.facts.validity.start
        });
        if let Some(later) = later {
            return later.facts.clone();
        }
        let facts = known.facts.clone();
        one.known = Some(known);
        self.show_all(&all);
        facts
    }

    /// The one that is held under that name.
    pub(crate) fn held(&self, first: &str) -> Option<LoadedCertificate> {
        self.lock().held.get(first)?.known.clone()
    }

    fn lock(&self) -> MutexGuard<'_, CertificateState> {
        self.all.lock()
    }

    /// Serves `all`, and nothing else. The caller holds the lock.
    fn show_all(&self, all: &CertificateState) {
        let mut hosts = Vec::new();
        for given in &all.external {
            let names = given.facts.names.iter();
            hosts.extend(names.map(|name| (name.clone(), given.certified.clone())));
        }
        for one in all.held.values() {
            let Some(known) = &one.known else {
                continue;
            };
            let covered = one.names.iter().filter(|name| known.facts.covers(name));
            hosts.extend(covered.map(|name| (name.clone(), known.certified.clone())));
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

    /// Threads meet now and then.
    const MEETINGS: usize = 100;

    async fn shown(server: &ServerTls, client: &ClientTls) -> CertificateDer<'static> {
        let (near, far) = tokio::io::duplex(64 << 10);
        let connecting = client.connect_with_certificates(Box::new(near), "a.test");
        let accepting = server.accept(Box::new(far));
        let (near, far) = futures_util::future::join(connecting, accepting).await;
        far.unwrap();
        near.unwrap().2[0].clone().into_owned()
    }

    /// What was read before it came was shown after it.
    #[tokio::test]
    async fn certificate_issued_during_reconfiguration_is_shown() {
        let options = TlsOptions {
            resumption: false, // or a later handshake would show no certificate
            key_log: KeyLogTarget::Disabled,
            ..TlsOptions::default()
        };
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
        certificates.want(&[names.to_vec()]);
        for _ in 0..MEETINGS {
            let known = certificates.known(issue(), &folder).unwrap();
            let leaf = known.identity.chain[0].clone();
            thread::scope(|scope| {
                scope.spawn(|| certificates.want(&[names.to_vec()]));
                certificates.set("a.test", known);
            });
            assert_eq!(shown(&server, &client).await, leaf);
        }
    }
}
