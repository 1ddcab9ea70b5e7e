//! Certificates of a local authority: one for each group of names, issued when a client first requests one of them (SNI).
//!
//! ```text
//!  SNI www.a.test ──▶ the names of its site ──▶ cached and not due? ──▶ used
//!                                               else issued: an ECDSA key and a signature, about 0.2 ms
//!  no SNI, or a name that is none of these ──▶ the default names, with the addresses
//! ```
//!
//! A certificate for all names would have 37 KB for 1,000 sites, more than the congestion window of a new connection, and would be
//! too large for a handshake from 2,000 sites on.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;

use crate::tls::certificates::LocalCa;
use crate::tls::error::TlsSetupError;

/// Maximum length of names and addresses in one certificate, bytes. A larger group has one certificate for each name, with those of
/// the other names that fit.
pub const MAX_NAME_BYTES: usize = 2048;
/// Maximum number of cached certificates. Above it, the oldest is evicted, and issued again when a client requests it.
pub const MAX_CACHED: usize = 4096;
/// Validity of a certificate. Browsers reject several years (Apple: 825 days, for any authority).
pub const LIFETIME: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// A certificate is issued again when its remaining validity is less than this.
pub const RENEW_BEFORE_EXPIRY: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Certificates are also valid for clients whose clock is behind by up to this time.
const CLOCK_SKEW: Duration = Duration::from_secs(24 * 60 * 60);

/// Issues a local authority's certificates for the names of sites, and caches them.
pub struct LocalCertificates {
    authority: Arc<LocalCa>,
    groups: Vec<Vec<String>>,
    group_of: BTreeMap<String, usize>,
    addresses: Vec<IpAddr>,
    held: Mutex<CertificateCache>,
}

/// A certificate's group, and the first of its names.
type CertificateKey = (usize, String);

#[derive(Default)]
struct CertificateCache {
    by_place: BTreeMap<CertificateKey, IssuedCertificate>,
    /// The same keys, in the order of issue.
    in_order: VecDeque<CertificateKey>,
}

#[derive(Clone)]
struct IssuedCertificate {
    key: Arc<CertifiedKey>,
    renew_at: SystemTime,
}

/// The names and addresses of one certificate.
struct Subject<'l> {
    group: usize,
    names: Vec<String>,
    addresses: &'l [IpAddr],
}

impl fmt::Debug for LocalCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalCertificates")
            .field("groups", &self.groups.len())
            .finish_non_exhaustive()
    }
}

impl LocalCertificates {
    /// Certificates by `authority` for `groups` of names. The names of a group share one certificate, so that browsers may use one
    /// connection for them. If two groups have the same name, the first is used. The first group is the default, with `addresses`,
    /// for clients that send no name or an unknown one.
    ///
    /// # Errors
    ///
    /// A name cannot be in a certificate.
    pub fn new(
        authority: Arc<LocalCa>,
        groups: Vec<Vec<String>>,
        addresses: Vec<IpAddr>,
    ) -> Result<Self, TlsSetupError> {
        let mut group_of = BTreeMap::new();
        for (index, names) in groups.iter().enumerate() {
            for name in names {
                LocalCa::check_name(name)?;
                group_of.entry(name.to_ascii_lowercase()).or_insert(index);
            }
        }
        Ok(Self {
            authority,
            groups,
            group_of,
            addresses,
            held: Mutex::default(),
        })
    }

    /// The certificate for `host`, or the default one, for a handshake at `now`.
    ///
    /// # Errors
    ///
    /// It cannot be issued, or `provider` cannot use its key.
    pub(crate) fn certificate(
        &self,
        host: Option<&str>,
        now: SystemTime,
        provider: &CryptoProvider,
    ) -> Result<Arc<CertifiedKey>, TlsSetupError> {
        let Subject {
            group,
            names,
            addresses,
        } = self.subject(host);
        let place = (group, names.first().cloned().unwrap_or_default());
        let held = {
            let held = self.held.lock();
            held.by_place.get(&place).cloned()
        };
        if let Some(issued) = held.filter(|issued| now < issued.renew_at) {
            return Ok(issued.key);
        }
        // Issued without the lock: two concurrent handshakes may use different certificates.
        let validity = now - CLOCK_SKEW..now + LIFETIME;
        let identity = self.authority.issue_for(&names, addresses, validity)?;
        let issued = IssuedCertificate {
            key: identity.certified(provider)?,
            renew_at: now + LIFETIME - RENEW_BEFORE_EXPIRY,
        };
        let mut held = self.held.lock();
        held.put(place, issued.clone());
        Ok(issued.key)
    }

    /// The name for `host`, which may be a wildcard, and its group.
    fn listed(&self, host: &str) -> Option<(&String, &usize)> {
        let exact = self.group_of.get_key_value(host);
        exact.or_else(|| {
            let (_, domain) = host.split_once('.')?;
            self.group_of.get_key_value(&format!("*.{domain}"))
        })
    }

    /// The contents of the certificate for `host`.
    fn subject(&self, host: Option<&str>) -> Subject<'_> {
        let listed = host.and_then(|host| self.listed(&host.to_ascii_lowercase()));
        let index = listed.map_or(0, |(_, index)| *index);
        let names = self.groups.get(index).map_or(&[][..], Vec::as_slice);
        let addresses = match index {
            0 => &self.addresses[..],
            _ => &[],
        };
        // An address has at most 16 bytes, and each entry has two bytes of overhead.
        let room = MAX_NAME_BYTES.saturating_sub(18 * addresses.len());
        let len = |name: &String| name.len() + 2;
        if names.iter().map(len).sum::<usize>() <= room {
            return Subject {
                group: index,
                names: names.to_vec(),
                addresses,
            };
        }
        // The requested name comes first, and is the name of the certificate.
        let first = listed.map(|(name, _)| name.clone()).into_iter();
        let mut left = room;
        let fits = first.chain(names.iter().cloned()).take_while(|name| {
            let rest = left.checked_sub(len(name));
            left = rest.unwrap_or(0);
            rest.is_some()
        });
        Subject {
            group: index,
            names: fits.collect(),
            addresses,
        }
    }
}

impl CertificateCache {
    fn put(&mut self, place: CertificateKey, issued: IssuedCertificate) {
        if self.by_place.insert(place.clone(), issued).is_none() {
            self.in_order.push_back(place);
        }
        while self.by_place.len() > MAX_CACHED
            && let Some(first) = self.in_order.pop_front()
        {
            self.by_place.remove(&first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::TlsOptions;
    use crate::tls::certificates::KeyKind;

    fn local(groups: Vec<Vec<String>>) -> LocalCertificates {
        let authority = LocalCa::generate(KeyKind::EcdsaP256).expect("an authority");
        let addresses = vec![[127, 0, 0, 1].into()];
        LocalCertificates::new(Arc::new(authority), groups, addresses).expect("good names")
    }

    fn at(days: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(days * 24 * 60 * 60)
    }

    #[test]
    fn a_certificate_is_held_until_a_third_of_it_is_left() {
        let local = local(vec![vec!["a.test".to_owned(), "www.a.test".to_owned()]]);
        let provider = TlsOptions::default().provider;
        let shown = |host, days| {
            let shown = local.certificate(Some(host), at(days), &provider);
            shown.expect("the certificate is issued").cert[0].clone()
        };
        let first = shown("a.test", 1000);
        assert_eq!(
            shown("WWW.a.test", 1059),
            first,
            "one certificate for the group"
        );
        let second = shown("a.test", 1060);
        assert_ne!(second, first);
        assert_eq!(shown("www.a.test", 1119), second);
    }

    #[test]
    fn a_wildcard_name_is_in_the_certificate_for_names_below_it() {
        let groups = [&["a.test"][..], &["*.b.test"], &["www.b.test"]];
        let local = local(
            groups
                .map(|group| group.iter().map(|it| (*it).to_owned()).collect())
                .to_vec(),
        );
        let subject = |host| local.subject(Some(host)).names;
        assert_eq!(subject("X.b.test"), ["*.b.test"]);
        assert_eq!(subject("www.b.test"), ["www.b.test"]);
        assert_eq!(subject("y.x.b.test"), ["a.test"], "the default");
    }

    #[test]
    fn no_more_certificates_are_held_than_the_limit() {
        let mut held = CertificateCache::default();
        let local = local(vec![vec!["a.test".to_owned()]]);
        let provider = TlsOptions::default().provider;
        let key = local.certificate(None, at(1000), &provider).expect("one");
        for number in 0..=MAX_CACHED {
            let (key, renew_at) = (key.clone(), at(1));
            held.put((number, String::new()), IssuedCertificate { key, renew_at });
        }
        let lens = (held.by_place.len(), held.in_order.len());
        assert_eq!(lens, (MAX_CACHED, MAX_CACHED));
        let first = held.by_place.keys().next().map(|(group, _)| *group);
        assert_eq!(first, Some(1), "the oldest certificate is dropped");
    }

    #[test]
    fn a_group_past_the_limit_has_a_certificate_for_each_name() {
        let names: Vec<String> = (0..500).map(|number| format!("n{number}.a.test")).collect();
        let local = local(vec![names]);
        for host in ["n0.a.test", "n499.a.test"] {
            let names = local.subject(Some(host)).names;
            assert_eq!(names[0], host);
            let bytes: usize = names.iter().map(|name| name.len() + 2).sum();
            assert!((1900..=MAX_NAME_BYTES).contains(&bytes), "{bytes}");
        }
        let default = local.subject(Some("other.test"));
        assert_eq!(
            (&*default.names[0], default.addresses.len()),
            ("n0.a.test", 1)
        );
    }
}
