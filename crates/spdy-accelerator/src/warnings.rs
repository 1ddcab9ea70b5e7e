//! Warnings about a configuration that is valid but may be a mistake.

use std::collections::{BTreeMap, BTreeSet};

use spdy_proxy::config::Config;
use spdy_proxy::sites::site_table::Sites;
use spdy_service::notice::Notices;

use super::origins::address_rules::address_rules;
use super::origins::upstream_needs::UpstreamNeeds;

/// Warns of settings that may be mistakes.
pub(crate) fn warn_sites(sites: &Sites, notices: &Notices) {
    for site in sites.possible_loops() {
        notices.error(format_args!("site {site}"), format_args!(": the hostname of its origin is also a name of a site: if it resolves to this machine, every \
             request fails with 508; set `address`"));
    }
    for site in sites.all() {
        for host in site.rules.unmarked_public_cdns() {
            notices.error(format_args!("site {}", site.name), format_args!(": {host} is a public CDN with scripts of any author, and all of them are moved: a page whose policy \
                 has 'self' allows each of them; set `shared = true`, or the `path` that the site needs"));
        }
    }
}

/// Adds a note for each listed host that the accelerator cannot reach with this configuration.
///
/// # Errors
///
/// `[upstream]` has an invalid address range.
pub(crate) fn warn_unreachable_hosts(config: &Config, notices: &Notices) -> anyhow::Result<()> {
    let hosts = config.site.iter().flat_map(|site| &site.rewrite.hosts);
    let hosts = hosts.map(|entry| entry.host.split(':').next().unwrap_or_default());
    let hosts: BTreeSet<&str> = hosts.filter(|host| !host.contains('*')).collect();
    let rules = address_rules(&config.upstream)?;
    let needs = UpstreamNeeds::of_hosts(hosts, &BTreeMap::new(), &config.upstream, &rules);
    for host in &needs.allow_hosts {
        notices.warning(
            format_args!("{host}"),
            " is not a public hostname, so it is refused: add it to `upstream.allow_hosts`",
        );
    }
    for address in &needs.allow_addresses {
        notices.warning(format_args!("{address}"), " of `upstream.resolve` is not public, so it is refused: add it to `upstream.allow_addresses`");
    }
    // Resolvers that are configured may know names that the public DNS does not have.
    for host in needs
        .resolve
        .keys()
        .filter(|_| config.dns.servers.is_empty())
    {
        notices.warning(format_args!("{host}"), " is not in the public DNS: unless this machine's resolver finds it, set its address in `upstream.resolve`");
    }
    Ok(())
}

/// Warns of an admin listener that other machines can reach.
pub(crate) fn warn_admin_address(config: &Config, notices: &Notices) {
    let admin = config.admin.as_ref().map(|admin| admin.address);
    if let Some(address) = admin.filter(|address| !address.ip().to_canonical().is_loopback()) {
        notices.error(
            format_args!("admin.address {address} is not on loopback"),
            format_args!(
                ": this listener uses HTTP without TLS, so every host that can connect reads the \
             metrics, and every host on the network path can read the token"
            ),
        );
    }
}
