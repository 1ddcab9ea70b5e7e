//! URLs with aliases: the alias of a host, and the resource that a request for an alias fetches. The aliases are in
//! `rules/host_aliases.rs`.

use url::Url;

use crate::rules::config::Scheme;
use crate::rules::host_aliases::HostAlias;
use crate::rules::path_normalization::may_lead_into;
use crate::rules::refusal::Refusal;
use crate::rules::verdict::SkipReason;
use crate::rules::{RuleMatch, Rules};
use crate::urls::proxied_url::{Grant, ProxiedUrl};
use crate::urls::target_check::{check_length, check_target};

/// Resources there speak for the name (RFC 8615): the host could use them to prove to certificate authorities that it owns the
/// operator's name.
const WELL_KNOWN: &str = "/.well-known/";

impl Rules {
    /// The host whose alias is `name`, if there is one; `name` is in lower case and without a port.
    pub fn named(&self, name: &str) -> Option<&HostAlias> {
        self.names.by_name.get(name)
    }

    /// All aliases in the order of their names; each host has two while there is a previous key.
    pub fn aliases(&self) -> impl Iterator<Item = &HostAlias> {
        self.names.by_name.values()
    }

    /// The zone of the aliases.
    pub fn zone(&self) -> Option<&str> {
        self.names.zone.as_deref()
    }

    /// The alias of the host of `url`, if pages may use it.
    pub fn alias_of(&self, url: &Url) -> Option<&HostAlias> {
        let mut names = self.alias_names_of(url).iter();
        let name = names.find(|name| !self.names.withheld.contains(*name))?;
        self.names.by_name.get(name)
    }

    /// Why a document of the host of `url`, which has no alias that pages may use, is not rewritten.
    pub(crate) fn no_alias_reason(&self, url: &Url) -> SkipReason {
        match self.alias_names_of(url) {
            [] => SkipReason::Document,
            _ => SkipReason::NoCertificate,
        }
    }

    fn alias_names_of(&self, url: &Url) -> &[String] {
        let (Some(scheme), Some(host)) = (Scheme::of_name(url.scheme()), url.host_str()) else {
            return &[];
        };
        let port = url.port().unwrap_or(scheme.default_port());
        self.names.of_host(scheme, host, port)
    }

    /// The resource to fetch for `target` (path and query, unchanged) of the alias `named`.
    ///
    /// # Errors
    ///
    /// Why nothing is fetched.
    pub fn open_alias(&self, named: &HostAlias, target: &str) -> Result<ProxiedUrl, Refusal> {
        check_length(target)?;
        check_target(self, target)?;
        let path = target.split('?').next().unwrap_or_default();
        if may_lead_into(path, WELL_KNOWN) {
            return Err(Refusal::WellKnown);
        }
        let text = format!("{}{target}", named.original_origin());
        let url = match Url::parse(&text) {
            // Without a leading slash the text would extend the host.
            Ok(url) if target.starts_with('/') && url.as_str() == text => url,
            _ => return Err(Refusal::NotSerialised),
        };
        let RuleMatch::Listed(entry) =
            self.match_host(named.scheme, &named.host, named.port, url.path())?
        else {
            let host = named.host.clone();
            return Err(Refusal::NotListed { host });
        };
        Ok(ProxiedUrl {
            grant: Grant::Alias,
            scheme: named.scheme,
            kinds: entry.kinds,
            is_listed: true,
            head: named.origin.clone(),
            url,
        })
    }

    /// The URL of `url` under its host's alias, including the fragment; `None` if the host has none, or not for this path.
    ///
    /// # Errors
    ///
    /// Why it could not be opened.
    pub fn alias_url(&self, url: &Url) -> Result<Option<String>, Refusal> {
        let Some(named) = self.alias_of(url) else {
            return Ok(None);
        };
        let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
        self.open_alias(named, target)?;
        Ok(Some(format!(
            "{}{}",
            named.origin,
            &url[url::Position::BeforePath..]
        )))
    }
}
