//! Aliases: names of hosts in a zone of the operator, each a separate origin on the site's address and certificate.
//!
//! ```text
//!  https://widgets.test/a/b.html?c  <──►  https://<label>.<zone>[:port]/a/b.html?c
//!
//!    label   HMAC-SHA-256( "spdy-accel/1 name" 0 site 0 s|p 0 host 0 port )
//!            its first 80 bits, in base32 (RFC 4648 §6), lower case: 16 characters without padding
//! ```
//!
//! Path and query are the host's, byte for byte, so that relative URLs, paths from the root and URLs built by scripts keep their
//! meaning. A browser sends requests for an alias over its session with the site: both have the same address, and the certificate
//! covers both (RFC 9113 §9.1.1). Only listed hosts have aliases; discovered ones do not.

use std::collections::{BTreeMap, BTreeSet};

use data_encoding::BASE32_NOPAD;
use sha2::{Digest, Sha256};
use url::Url;

use crate::limits::MAX_HOST_BYTES;
use crate::rules::capability::{Keys, Subject};
use crate::rules::config::Scheme;
use crate::rules::error::RulesError;
use crate::rules::host_name::{self, HostPattern};
use crate::rules::host_rule::HostRule;

/// Length of the code in a label: 16 characters.
const LABEL_BYTES: usize = 10;
const LABEL_CHARS: usize = LABEL_BYTES * 8 / 5;

/// A host with its alias.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostAlias {
    pub(crate) scheme: Scheme,
    pub(crate) host: String,
    pub(crate) port: u16,
    name: String,
    pub(crate) origin: String,
}

impl HostAlias {
    /// The scheme of requests to it.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host's own name, in lower case.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port of the host, also if it is the default port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The alias: label and zone.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The origin of the alias, as `https://label.zone`: scheme and port are the site's.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The host's own origin, as `https://widgets.test`.
    pub fn original_origin(&self) -> String {
        let scheme = self.scheme.name();
        match self.port == self.scheme.default_port() {
            true => format!("{scheme}://{}", self.host),
            false => format!("{scheme}://{}:{}", self.host, self.port),
        }
    }
}

/// All aliases of a site.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostAliases {
    pub(crate) zone: Option<String>,
    pub(crate) by_name: BTreeMap<String, HostAlias>,
    /// The alias of the current key first.
    by_host: BTreeMap<(Scheme, String, u16), Vec<String>>,
    /// Aliases that are not written into pages.
    pub(crate) withheld: BTreeSet<String>,
}

impl HostAliases {
    /// The aliases of `entries` in `zone`, for the site at `site`; `own` are the hosts that are merged with it.
    ///
    /// # Errors
    ///
    /// [`RulesError`]: a zone whose names would belong to the site, entries without a zone, or a zone without entries.
    pub(crate) fn compile(
        site: &Url,
        zone: Option<&str>,
        entries: &[HostRule],
        own: &[HostPattern],
        keys: Option<&Keys>,
    ) -> Result<Self, RulesError> {
        let named: Vec<&HostRule> = entries.iter().filter(|entry| entry.is_alias()).collect();
        let Some(zone) = zone else {
            return match named.first() {
                Some(entry) => Err(invalid_rule(entry, "expected `names_under` to be set")),
                None => Ok(Self::default()),
            };
        };
        let fault = |reason: String| {
            let found = zone.to_owned();
            RulesError::Zone { found, reason }
        };
        check_zone(zone).map_err(fault)?;
        let what = "names_under";
        let keys = keys.ok_or(RulesError::NoKeys { what })?;
        if named.is_empty() {
            let reason = "no host has mode = \"name\", so that nothing is in it";
            return Err(fault(reason.to_owned()));
        }
        let site_host = site.host_str().unwrap_or_default();
        for name in own.iter().map(HostPattern::name).chain([site_host]) {
            check_cookie_isolation(zone, name).map_err(fault)?;
        }
        let mut names = Self {
            zone: Some(zone.to_owned()),
            ..Self::default()
        };
        for entry in named {
            names.add(site, entry, entries, keys)?;
        }
        Ok(names)
    }

    fn add(
        &mut self,
        site: &Url,
        entry: &HostRule,
        entries: &[HostRule],
        keys: &Keys,
    ) -> Result<(), RulesError> {
        let host = entry.pattern.name();
        if self.covers(host) {
            return Err(invalid_rule(
                entry,
                "expected a host outside of `names_under`",
            ));
        }
        let is_mixed = entries
            .iter()
            .any(|other| !other.is_alias() && other.matches_host(entry.scheme, host, entry.port));
        if is_mixed {
            return Err(invalid_rule(
                entry,
                "expected one mode for all entries of a host",
            ));
        }
        let of_site = site.origin().ascii_serialization();
        let codes = keys.name_codes(Subject {
            site: &of_site,
            scheme: entry.scheme.letter(),
            host,
            port: entry.port,
            target: None,
        });
        for code in codes {
            let label = BASE32_NOPAD
                .encode(&code[..LABEL_BYTES])
                .to_ascii_lowercase();
            let name = format!("{label}.{}", self.zone.as_deref().unwrap_or_default());
            let mut origin = site.clone();
            origin.set_host(Some(&name)).expect("a name was checked");
            let named = HostAlias {
                scheme: entry.scheme,
                host: host.to_owned(),
                port: entry.port,
                name: name.clone(),
                origin: origin.origin().ascii_serialization(),
            };
            let key = (entry.scheme, host.to_owned(), entry.port);
            // The alias of the current key is the first, and is written into pages; that of the previous key is still in stored
            // pages.
            self.by_host.entry(key).or_default().push(name.clone());
            self.by_name.insert(name, named);
        }
        Ok(())
    }

    /// True if `name` is the zone or in it.
    pub(crate) fn covers(&self, name: &str) -> bool {
        self.zone
            .as_deref()
            .is_some_and(|zone| host_name::is_in_zone(name, zone))
    }

    /// All aliases of the host.
    pub(crate) fn of_host(&self, scheme: Scheme, host: &str, port: u16) -> &[String] {
        if self.by_host.is_empty() {
            return &[];
        }
        let names = self.by_host.get(&(scheme, host.to_owned(), port));
        names.map_or(&[], Vec::as_slice)
    }

    /// The same aliases, of which those in `withheld` are not written into pages.
    pub(crate) fn without(&self, withheld: &BTreeSet<String>) -> Self {
        let existing = withheld
            .iter()
            .filter(|name| self.by_name.contains_key(*name));
        Self {
            withheld: existing.cloned().collect(),
            ..self.clone()
        }
    }

    /// A suffix that distinguishes output that was rewritten while some aliases are withheld; empty if there are none.
    pub(crate) fn tag_suffix(&self) -> String {
        if self.withheld.is_empty() {
            return String::new();
        }
        let mut hash = Sha256::new();
        for name in &self.withheld {
            hash.update(name);
            hash.update([0]);
        }
        let hash = hash.finalize();
        let digits = hash.iter().take(8).map(|byte| format!("{byte:02x}"));
        std::iter::once("-without-".to_owned())
            .chain(digits)
            .collect()
    }
}

fn invalid_rule(entry: &HostRule, reason: &'static str) -> RulesError {
    RulesError::Alias {
        host: entry.pattern.name().to_owned(),
        reason,
    }
}

/// Checks that hosts can have aliases in `zone`.
fn check_zone(zone: &str) -> Result<(), String> {
    host_name::check(zone).map_err(|refusal| refusal.to_string())?;
    if LABEL_CHARS + 1 + zone.len() > MAX_HOST_BYTES {
        let most = MAX_HOST_BYTES - LABEL_CHARS - 1;
        return Err(format!(
            "zone has {} bytes, expected at most {most}",
            zone.len()
        ));
    }
    match host_name::has_one_owner(zone) {
        true => Ok(()),
        false => Err("anyone can register a name there: expected a zone of one owner".to_owned()),
    }
}

/// Checks that a script in `zone` can neither read nor set cookies of `name`: cookies are shared within a registrable domain (RFC
/// 6265 §5.3). Both are hostnames in lower case and ASCII; others are refused.
///
/// # Errors
///
/// Why it can.
pub fn check_cookie_isolation(zone: &str, name: &str) -> Result<(), String> {
    let of_one = match (psl2::lookup(zone), psl2::lookup(name)) {
        (Some(zone), Some(name)) => {
            let domain = zone.registrable_domain();
            domain.is_some() && domain == name.registrable_domain()
        }
        _ => true,
    };
    if of_one || host_name::is_in_zone(zone, name) || host_name::is_in_zone(name, zone) {
        return Err(format!(
            "same registrable domain as {name}, so that scripts of frames would share cookies with it: expected another domain"
        ));
    }
    Ok(())
}
