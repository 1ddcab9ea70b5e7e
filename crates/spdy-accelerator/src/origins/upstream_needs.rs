//! The keys that `[upstream]` needs so that listed hosts are reached: names that are in no public DNS, and addresses that are not public.
//!
//! Nothing is looked up. The operator's own resolver may have the name, so a missing key is a note, not an error.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::IpAddr;

use serde::Serialize;
use spdy_proxy::config::upstream::UpstreamConfig;
use spdy_resolver::address_rules::{AddressRules, OriginDenial};
use spdy_resolver::origin_host;

/// Keys of `[upstream]` that are missing.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UpstreamNeeds {
    /// Hosts to add to `allow_hosts`.
    pub allow_hosts: BTreeSet<String>,
    /// Addresses to add to `allow_addresses`.
    pub allow_addresses: BTreeSet<IpAddr>,
    /// Hosts to add to `resolve`, with their addresses; `None` without a recorded address.
    pub resolve: BTreeMap<String, Option<IpAddr>>,
}

impl UpstreamNeeds {
    /// The keys for the foreign `hosts`, by name without port, with their recorded `addresses`, that `upstream` lacks.
    pub fn of_hosts<'a>(
        hosts: impl IntoIterator<Item = &'a str>,
        addresses: &BTreeMap<String, IpAddr>,
        upstream: &UpstreamConfig,
        rules: &AddressRules,
    ) -> Self {
        let mut needs = Self::default();
        for host in hosts {
            let host = host.to_ascii_lowercase();
            if let Err(refused) = rules.check_host(&host) {
                match OriginDenial::from(refused).allowed_by() {
                    Some(_) => needs.allow_hosts.insert(host.clone()),
                    // No key makes it reachable.
                    None => continue,
                };
            }
            let resolved = upstream.resolve.iter();
            let resolved = resolved
                .filter(|(name, _)| name.eq_ignore_ascii_case(&host))
                .map(|(_, &address)| address)
                .next();
            let address = resolved.or_else(|| addresses.get(&host).copied());
            let is_denied = |address: IpAddr| rules.check(address).is_err();
            if let Some(address) = address.filter(|&address| is_denied(address)) {
                needs.allow_addresses.insert(address);
            }
            let is_private = address.is_some_and(is_denied) || !is_in_public_dns(&host);
            if resolved.is_none() && is_private {
                needs.resolve.insert(host, address);
            }
        }
        needs
    }

    /// Whether no key is missing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The lines of a configuration, with a placeholder for each missing address.
    #[must_use]
    pub fn toml(&self) -> String {
        let list = |texts: Vec<String>| {
            let quoted: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
            format!("[{}]", quoted.join(", "))
        };
        let mut text = String::new();
        if !self.allow_hosts.is_empty() || !self.allow_addresses.is_empty() {
            text.push_str("[upstream]\n");
        }
        if !self.allow_hosts.is_empty() {
            let hosts = list(self.allow_hosts.iter().cloned().collect());
            let _ = writeln!(text, "allow_hosts = {hosts}");
        }
        if !self.allow_addresses.is_empty() {
            let net = |address: &IpAddr| match address {
                IpAddr::V4(address) => format!("{address}/32"),
                IpAddr::V6(address) => format!("{address}/128"),
            };
            let nets = list(self.allow_addresses.iter().map(net).collect());
            let _ = writeln!(text, "allow_addresses = {nets}");
        }
        if !self.resolve.is_empty() {
            text.push_str("[upstream.resolve]\n");
        }
        for (host, address) in &self.resolve {
            let _ = match address {
                Some(address) => writeln!(text, "{host:?} = \"{address}\""),
                None => writeln!(text, "# {host:?} = \"its address\""),
            };
        }
        text
    }
}

/// Whether a name may be in the public DNS: it ends in a suffix of the public list that ICANN delegated.
fn is_in_public_dns(host: &str) -> bool {
    origin_host::check(host).is_ok() && psl2::lookup(host).is_some_and(|name| name.is_known())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(hosts: &[&str], addresses: &[(&str, &str)], upstream: &str) -> UpstreamNeeds {
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let addresses = addresses.iter();
        let addresses = addresses.map(|(host, at)| ((*host).to_owned(), address(at)));
        let upstream: UpstreamConfig = toml::from_str(upstream).expect("keys of [upstream]");
        let rules = AddressRules {
            hosts: upstream.allow_hosts.iter().cloned().collect(),
            allow: upstream
                .allow_addresses
                .iter()
                .map(|net| net.parse().expect("a range"))
                .collect(),
            ..AddressRules::default()
        };
        UpstreamNeeds::of_hosts(
            hosts.iter().copied(),
            &addresses.collect(),
            &upstream,
            &rules,
        )
    }

    #[test]
    fn hosts_of_the_world_need_nothing() {
        let hosts = [
            "cdn.example.com",
            "code.jquery.com",
            "a.github.io",
            "x.co.uk",
        ];
        assert!(needs(&hosts, &[], "").is_empty());
        assert!(needs(&hosts, &[("cdn.example.com", "93.184.216.34")], "").is_empty());
    }

    #[test]
    fn names_and_addresses_of_a_laboratory_need_a_line_each() {
        let hosts = [
            "cdn.test",
            "Backend",
            "far.internal",
            "www.example.com",
            "lan.test",
        ];
        let addresses = [("cdn.test", "127.0.0.1"), ("www.example.com", "10.0.0.1")];
        let needs_of = |upstream| needs(&hosts, &addresses, upstream);
        let text = "[upstream]\n\
            allow_hosts = [\"backend\", \"far.internal\"]\n\
            allow_addresses = [\"10.0.0.1/32\", \"127.0.0.1/32\"]\n\
            [upstream.resolve]\n\
            # \"backend\" = \"its address\"\n\
            \"cdn.test\" = \"127.0.0.1\"\n\
            # \"far.internal\" = \"its address\"\n\
            # \"lan.test\" = \"its address\"\n\
            \"www.example.com\" = \"10.0.0.1\"\n";
        assert_eq!(needs_of("").toml(), text);
        let most = "allow_hosts = ['backend', 'far.internal']\nallow_addresses = ['127.0.0.0/8']\n[resolve]\n\
            'backend' = '127.0.0.2'\n'CDN.test' = '127.0.0.1'\n'far.internal' = '127.0.0.3'\n'lan.test' = '127.0.0.4'";
        let rest = "[upstream]\nallow_addresses = [\"10.0.0.1/32\"]\n\
            [upstream.resolve]\n\"www.example.com\" = \"10.0.0.1\"\n";
        assert_eq!(needs_of(most).toml(), rest);
        assert!(
            needs(&["192.0.2.1", "a b"], &[], "").is_empty(),
            "no names at all"
        );
    }
}
