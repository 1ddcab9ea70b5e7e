//! Warnings about a configuration that is valid but may be a mistake.

use std::collections::{BTreeMap, BTreeSet};

use spdy_proxy::config::Config;
use spdy_proxy::sites::site_table::Sites;

use super::origins::address_rules::address_rules;
use super::origins::upstream_needs::UpstreamNeeds;
use crate::output::{BAD, Printer, WARN};

/// Warns of settings that may be mistakes.
pub(crate) fn warn_sites(sites: &Sites, printer: &Printer) {
    for site in sites.possible_loops() {
        printer.note(format_args!(
            "{BAD}site {site}{BAD:#}: the hostname of its origin is also a name of a site: if it resolves to this machine, every \
             request fails with 508; set `address`"
        ));
    }
    for site in sites.all() {
        for host in site.rules.unmarked_public_cdns() {
            printer.note(format_args!(
                "{BAD}site {}{BAD:#}: {host} is a public CDN with scripts of any author, and all of them are moved: a page whose policy \
                 has 'self' allows each of them; set `shared = true`, or the `path` that the site needs",
                site.name
            ));
        }
    }
}

/// Adds a note for each listed host that the accelerator cannot reach with this configuration.
///
/// # Errors
///
/// `[upstream]` has something that is no range.
pub(crate) fn warn_unreachable_hosts(config: &Config, printer: &Printer) -> anyhow::Result<()> {
    let hosts = config.site.iter().flat_map(|site| &site.rewrite.hosts);
    let hosts = hosts.map(|entry| entry.host.split(':').next().unwrap_or_default());
    let hosts: BTreeSet<&str> = hosts.filter(|host| !host.contains('*')).collect();
    let rules = address_rules(&config.upstream)?;
    let needs = UpstreamNeeds::of_hosts(hosts, &BTreeMap::new(), &config.upstream, &rules);
    for host in &needs.allow_hosts {
        printer.note(format_args!(
            "{WARN}{host}{WARN:#} is not a public hostname, so it is refused: add it to `upstream.allow_hosts`"
        ));
    }
    for address in &needs.allow_addresses {
        printer.note(format_args!(
            "{WARN}{address}{WARN:#} of `upstream.resolve` is not public, so it is refused: add it to `upstream.allow_addresses`"
        ));
    }
    // Resolvers that are configured may know names that the public DNS does not have.
    for host in needs
        .resolve
        .keys()
        .filter(|_| config.dns.servers.is_empty())
    {
        printer.note(format_args!(
            "{WARN}{host}{WARN:#} is not in the public DNS: unless this machine's resolver finds it, set its address in `upstream.resolve`"
        ));
    }
    Ok(())
}

/// Warns of an admin listener that other machines can reach.
pub(crate) fn warn_admin_address(config: &Config, printer: &Printer) {
    let admin = config.admin.as_ref().map(|admin| admin.address);
    if let Some(address) = admin.filter(|address| !address.ip().to_canonical().is_loopback()) {
        printer.note(format_args!(
            "{BAD}admin.address {address} is not on loopback{BAD:#}: this listener uses HTTP without TLS, so every host that can connect reads the \
             metrics, and every host on the network path can read the token"
        ));
    }
}
