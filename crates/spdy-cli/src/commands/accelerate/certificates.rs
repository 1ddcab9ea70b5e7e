//! The certificates that `spdy accelerate` shows where none come by ACME: out of files (`certificate_files.rs`), each for the names in
//! it, or made on the spot.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use spdy_net::certificates::{Identity, KeyKind, LocalCa};
use spdy_proxy::config::Config;
use spdy_proxy::sites::Sites;

use crate::commands::accelerate::certificate_files::Files;
use crate::printer::{BAD, DIM, Printer};

/// How long a certificate made on the spot is valid: browsers and Mozilla's guidelines want no more than a year.
const LIFETIME: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// Valid for clients whose clock is so much behind.
const CLOCK_SKEW: Duration = Duration::from_secs(24 * 60 * 60);
/// How often certificates are made anew, or read again where they are given.
pub(super) const RENEWAL: Duration = Duration::from_secs(24 * 60 * 60);

/// What is shown to whom.
pub(super) struct Shown {
    /// To whoever asks for a name that there is nothing better for.
    pub(super) fallback: Identity,
    /// Those out of files, each for the names in it.
    pub(super) of_files: Files,
}

impl Shown {
    /// Those `of_files`, or, where there are none, one of `authority` for every name that is answered for.
    pub(super) fn of(of_files: Files, sites: &Sites, authority: &LocalCa) -> anyhow::Result<Self> {
        let fallback = match of_files.pairs().first() {
            Some(first) => first.identity.clone(),
            None => made(sites, authority)?,
        };
        Ok(Self { fallback, of_files })
    }
}

/// Names of `sites` that none of `files` is for, if there are any. An address is asked for without a name.
pub(super) fn uncovered(files: &Files, sites: &Sites) -> Vec<String> {
    let is_covered = |name: &str| {
        files.pairs().is_empty()
            || name.parse::<IpAddr>().is_ok()
            || name.starts_with('[')
            || files.pairs().iter().any(|pair| pair.facts.covers(name))
    };
    let names = sites.names().filter(|name| !is_covered(name));
    names.map(str::to_owned).collect()
}

/// Tells of names that no certificate is for.
pub(super) fn doubt(uncovered: &[String], printer: &Printer) {
    if !uncovered.is_empty() {
        let names = uncovered.join(", ");
        printer.note(format_args!(
            "{BAD}no certificate is for {names}{BAD:#}: browsers will refuse what is shown to them"
        ));
    }
}

/// Tells of names that other hosts have, and that pages do not say since no certificate has them.
pub(super) fn tell_withheld(withheld: &BTreeSet<String>, printer: &Printer) {
    if !withheld.is_empty() {
        let names: Vec<_> = withheld.iter().map(String::as_str).collect();
        let names = names.join(", ");
        printer.note(format_args!(
            "{DIM}no certificate has {names}: until one does, pages leave their hosts where they are{DIM:#}"
        ));
    }
}

fn made(sites: &Sites, authority: &LocalCa) -> anyhow::Result<Identity> {
    let names = sites.names().chain(sites.names_of_others());
    let names: Vec<String> = names.map(str::to_owned).collect();
    let addresses = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    let now = SystemTime::now();
    let identity = authority.issue_for(&names, &addresses, now - CLOCK_SKEW..now + LIFETIME);
    identity.context("cannot make a certificate")
}

/// The authority that signs where no certificate is given.
pub(super) fn authority(config: &Config, printer: &Printer) -> anyhow::Result<LocalCa> {
    let authority = LocalCa::generate(KeyKind::EcdsaP256)?;
    if let Some(path) = &config.tls.write_authority {
        let path = (path, path.display());
        std::fs::write(path.0, authority.pem())
            .with_context(|| format!("cannot write {}", path.1))?;
        printer.note(format_args!(
            "{DIM}wrote the authority to {}{DIM:#}",
            path.1
        ));
    }
    Ok(authority)
}
