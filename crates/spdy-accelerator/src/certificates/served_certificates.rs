//! The certificates that `spdy accelerate` shows if ACME issues none: from files (`certificate_files.rs`), each for the names in
//! it, or of a local authority, one for each site.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use spdy_net::tls::TlsOptions;
use spdy_net::tls::certificates::{Identity, KeyKind, LocalCa};
use spdy_net::tls::identities::Identities;
use spdy_net::tls::local_certificates::LocalCertificates;
use spdy_proxy::config::Config;
use spdy_proxy::sites::site_table::Sites;
use spdy_service::notice::Notices;

use super::certificate_files::CertificateFiles;

/// How often certificates from files are read again.
pub(crate) const REREAD_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);
/// The kind of the local authority's keys, and of those that it signs.
const KEYS: KeyKind = KeyKind::EcdsaP256;
/// The maximum number of addresses in the default certificate, of sites that are named by an address.
const MAX_ADDRESSES: usize = 32;

/// The certificates for clients, by the name that they request.
pub(crate) struct ServedCertificates {
    /// For clients that request a name without a better certificate, or no name.
    pub(crate) fallback: Fallback,
    /// The certificates from files, each for the names in it.
    pub(crate) of_files: CertificateFiles,
}

/// The certificate if there is no better one.
pub(crate) enum Fallback {
    /// The first one from files.
    OfFile(Identity),
    /// The certificates of the local authority.
    Local(Arc<LocalCertificates>),
}

impl ServedCertificates {
    /// Uses the certificates `of_files`; if there are none, those of `authority` for all served names.
    pub(crate) fn of(
        of_files: CertificateFiles,
        sites: &Sites,
        authority: &Arc<LocalCa>,
    ) -> anyhow::Result<Self> {
        let fallback = match of_files.pairs().first() {
            Some(first) => Fallback::OfFile(first.identity.clone()),
            None => Fallback::Local(Arc::new(local(sites, authority)?)),
        };
        Ok(Self { fallback, of_files })
    }

    /// The certificates that handshakes use at first: only the fallback.
    pub(crate) fn identities(&self) -> anyhow::Result<Identities> {
        let options = TlsOptions::default();
        Ok(match &self.fallback {
            Fallback::OfFile(identity) => Identities::new(&[], identity, &options)?,
            Fallback::Local(local) => Identities::local(local, &options)?,
        })
    }
}

/// Names of `sites` that no certificate of `files` covers. An IP address counts as covered: clients send no SNI for it.
pub(crate) fn uncovered(files: &CertificateFiles, sites: &Sites) -> Vec<String> {
    let is_covered = |name: &str| {
        files.pairs().is_empty()
            || name.parse::<IpAddr>().is_ok()
            || name.starts_with('[')
            || files.pairs().iter().any(|pair| pair.facts.covers(name))
    };
    let names = sites.names().filter(|name| !is_covered(name));
    names.map(str::to_owned).collect()
}

/// Warns of names that no certificate covers.
pub(crate) fn warn_uncovered(uncovered: &[String], notices: &Notices) {
    if !uncovered.is_empty() {
        let names = uncovered.join(", ");
        notices.error(
            format_args!("no certificate covers {names}"),
            ": browsers will refuse the connection",
        );
    }
}

/// Warns of aliases that pages do not use because no certificate has them.
pub(crate) fn warn_withheld(withheld: &BTreeSet<String>, notices: &Notices) {
    if !withheld.is_empty() {
        let names: Vec<_> = withheld.iter().map(String::as_str).collect();
        let names = names.join(", ");
        notices.info(format_args!(
            "no certificate covers {names}: until one does, pages keep the original hosts"
        ));
    }
}

/// A certificate for each group of names for which browsers should use one session.
fn local(sites: &Sites, authority: &Arc<LocalCa>) -> anyhow::Result<LocalCertificates> {
    let groups = sites.certificate_names();
    // A client that connects to an address sends no name.
    let mut addresses: Vec<IpAddr> = vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    let names = groups.iter().flatten();
    let bare = names.map(|name| name.trim_matches(['[', ']']));
    addresses.extend(
        bare.filter_map(|name| name.parse::<IpAddr>().ok())
            .take(MAX_ADDRESSES),
    );
    Ok(LocalCertificates::new(
        authority.clone(),
        groups,
        addresses,
    )?)
}

/// Checks the certificates that would be served, without opening or writing anything.
pub(crate) fn check(
    config: &Config,
    files: &CertificateFiles,
    sites: &Sites,
) -> anyhow::Result<()> {
    let loaded = config.tls.write_authority.as_deref();
    let loaded = loaded.map(|path| LocalCa::load(path, KEYS)).transpose()?;
    let authority = match loaded.flatten() {
        Some(loaded) => loaded,
        None => LocalCa::generate(KEYS)?,
    };
    ServedCertificates::of(files.clone(), sites, &Arc::new(authority))?.identities()?;
    Ok(())
}

/// The local authority, which signs if no certificate is configured. If its certificate is written to a file, the next start reads it
/// from there, so that clients still trust it.
pub(crate) fn authority(config: &Config, notices: &Notices) -> anyhow::Result<Arc<LocalCa>> {
    let Some(path) = &config.tls.write_authority else {
        return Ok(Arc::new(LocalCa::generate(KEYS)?));
    };
    let authority = LocalCa::load_or_create(path, KEYS)?;
    let (path, key) = (path.display(), LocalCa::key_file(path));
    let key = key.display();
    notices.info(format_args!(
        "the certificate of the local CA is in {path}, its key in {key}"
    ));
    Ok(Arc::new(authority))
}
