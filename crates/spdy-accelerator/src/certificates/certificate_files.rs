//! Certificates from files. A reload keeps the previous certificate of a pair of files that is no longer valid, and renews the others.

use std::path::{Path, PathBuf};

use anyhow::Context;
use spdy_acme::certificate_info::CertificateInfo;
use spdy_net::tls::TlsOptions;
use spdy_net::tls::certificates::Identity;
use spdy_proxy::config::Config;
use spdy_service::notice::Notices;

use super::time_text::format_time;

/// The certificates that a configuration names, in its order.
#[derive(Clone, Debug, Default)]
pub(crate) struct CertificateFiles(Vec<CertificateKeyPair>);

/// A certificate and its key.
#[derive(Clone, Debug)]
pub(crate) struct CertificateKeyPair {
    certificate: PathBuf,
    key: PathBuf,
    /// The last valid certificate and key in the files.
    pub(crate) identity: Identity,
    /// The contents of that certificate.
    pub(crate) facts: CertificateInfo,
    /// Whether the files were invalid when they were last read.
    pub(crate) is_invalid: bool,
}

/// Files that are no longer valid: their previous certificate is still shown.
#[derive(Debug)]
pub(crate) struct InvalidPair {
    reason: anyhow::Error,
    facts: CertificateInfo,
}

impl CertificateFiles {
    /// Reads the files that `config` names.
    ///
    /// # Errors
    ///
    /// The first pair that cannot be read or is invalid.
    pub(crate) fn read(config: &Config) -> anyhow::Result<Self> {
        let pairs = config.tls.files();
        let pairs = pairs.map(|(certificate, key)| CertificateKeyPair::read(certificate, key));
        Ok(Self(pairs.collect::<Result<_, _>>()?))
    }

    /// Reads the files of `config`. A pair that is in use, and is invalid now, keeps its previous certificate.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), for pairs that are new.
    pub(crate) fn reread_for(&self, config: &Config) -> anyhow::Result<(Self, Vec<InvalidPair>)> {
        self.read_pairs(config.tls.files())
    }

    /// Reads the same pairs again.
    pub(crate) fn reread(&self) -> (Self, Vec<InvalidPair>) {
        let same = self.0.iter().map(|pair| (&*pair.certificate, &*pair.key));
        self.read_pairs(same)
            .expect("the same pairs, so none is new")
    }

    fn read_pairs<'p>(
        &self,
        pairs: impl Iterator<Item = (&'p Path, &'p Path)>,
    ) -> anyhow::Result<(Self, Vec<InvalidPair>)> {
        let (mut read, mut stale) = (Vec::new(), Vec::new());
        for (certificate, key) in pairs {
            let is_same =
                |pair: &&CertificateKeyPair| pair.certificate == certificate && pair.key == key;
            let before = self.0.iter().find(is_same);
            read.push(match (CertificateKeyPair::read(certificate, key), before) {
                (Err(reason), Some(before)) => {
                    let facts = before.facts.clone();
                    stale.push(InvalidPair { reason, facts });
                    let is_stale = true;
                    CertificateKeyPair {
                        is_invalid: is_stale,
                        ..before.clone()
                    }
                }
                (pair, _) => pair?,
            });
        }
        Ok((Self(read), stale))
    }

    /// All pairs, in the order of the configuration.
    pub(crate) fn pairs(&self) -> &[CertificateKeyPair] {
        &self.0
    }
}

impl CertificateKeyPair {
    fn read(certificate: &Path, key: &Path) -> anyhow::Result<Self> {
        let identity = Identity::from_files(certificate, key)?;
        let what = || format!("{} and {}", certificate.display(), key.display());
        identity
            .certified(&TlsOptions::default().provider)
            .with_context(what)?;
        let facts = CertificateInfo::parse_leaf(&identity).with_context(what)?;
        Ok(Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            identity,
            facts,
            is_invalid: false,
        })
    }
}

impl InvalidPair {
    /// Prints the reason, and how long the previous certificate is valid.
    pub(crate) fn report(&self, notices: &Notices) {
        let (reason, until) = (&self.reason, format_time(self.facts.validity.end));
        notices.error(
            "cannot reload a certificate",
            format_args!(", so the previous one stays, valid until {until}: {reason:#}"),
        );
    }
}

#[cfg(test)]
mod tests {
    use spdy_net::tls::certificates::{KeyKind, LocalCa};

    use super::*;

    /// Files of certificates for `a.test` and `b.test`, and a configuration with both.
    struct TestCa {
        ca: LocalCa,
        folder: tempfile::TempDir,
    }

    impl TestCa {
        fn open() -> Self {
            let office = Self {
                ca: LocalCa::generate(KeyKind::EcdsaP256).unwrap(),
                folder: tempfile::tempdir().unwrap(),
            };
            office.issue("a");
            office.issue("b");
            office
        }

        fn path(&self, file: &str) -> PathBuf {
            self.folder.path().join(file)
        }

        fn issue(&self, name: &str) {
            let identity = self.ca.issue(&[format!("{name}.test")], &[]).unwrap();
            std::fs::write(self.path(&format!("{name}.pem")), identity.chain_pem()).unwrap();
            std::fs::write(self.path(&format!("{name}.key")), identity.key_pem()).unwrap();
        }

        fn config(&self, names: &[&str]) -> Config {
            let path = |name: &str, kind| self.path(&format!("{name}.{kind}"));
            let pairs = names.iter().map(|name| {
                let (certificate, key) = (path(name, "pem"), path(name, "key"));
                format!("[[tls.certificates]]\ncertificate = {certificate:?}\nkey = {key:?}\n")
            });
            let site = "[[site]]\nnames = ['a.test']\norigin = 'https://origin.test'\n";
            Config::parse(&format!("{}{site}", pairs.collect::<String>())).unwrap()
        }
    }

    fn leaves(files: &CertificateFiles) -> Vec<Vec<u8>> {
        let pairs = files.pairs().iter();
        pairs.map(|pair| pair.identity.chain[0].to_vec()).collect()
    }

    #[test]
    fn an_invalid_pair_keeps_its_old_certificate() {
        type Harm = fn(&TestCa);
        let harms: [(Harm, &str); 4] = [
            (
                |office| std::fs::remove_file(office.path("a.pem")).unwrap(),
                "a.pem",
            ),
            (
                |office| std::fs::write(office.path("a.pem"), "half of it").unwrap(),
                "a.pem",
            ),
            (
                |office| std::fs::write(office.path("a.key"), []).unwrap(),
                "a.key",
            ),
            (
                |office| {
                    std::fs::copy(office.path("b.key"), office.path("a.key")).unwrap();
                },
                "a.pem and ",
            ),
        ];
        for (harm, named) in harms {
            let office = TestCa::open();
            let first = CertificateFiles::read(&office.config(&["a", "b"])).unwrap();
            office.issue("b");
            harm(&office);
            let (second, stale) = first.reread();
            let [former, now] = [leaves(&first), leaves(&second)];
            assert_eq!(former[0], now[0]);
            assert_ne!(former[1], now[1]);
            assert_eq!(stale.len(), 1);
            assert!(second.pairs()[0].is_invalid && !second.pairs()[1].is_invalid);
            let reason = format!("{:#}", stale[0].reason);
            assert!(reason.contains(named), "{reason}");

            office.issue("a");
            let (third, stale) = second.reread();
            assert!(
                stale.is_empty() && !third.pairs()[0].is_invalid,
                "{stale:?}"
            );
            assert_ne!(leaves(&third)[0], former[0]);
        }
    }

    #[test]
    fn only_newly_configured_pairs_must_be_valid() {
        let office = TestCa::open();
        let both = CertificateFiles::read(&office.config(&["a", "b"])).unwrap();
        let with_new = office.config(&["a", "b", "new"]);
        std::fs::remove_file(office.path("a.pem")).unwrap();
        let error = both.reread_for(&with_new).unwrap_err();
        assert!(format!("{error:#}").contains("new.pem"), "{error:#}");
        office.issue("new");
        let (all, stale) = both.reread_for(&with_new).unwrap();
        assert_eq!((all.pairs().len(), stale.len()), (3, 1));
        let (one, stale) = all.reread_for(&office.config(&["b"])).unwrap();
        assert_eq!((one.pairs().len(), stale.len()), (1, 0));
    }
}
