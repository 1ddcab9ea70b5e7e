//! Builds the parts of `spdy accelerate` from its configuration: sites, zones, warnings, timing, telemetry.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context;
use spdy_dns::zones::Zones;
use spdy_net::protocol::Protocol;
use spdy_net::tls::identities::Identities;
use spdy_net::tls::{ServerTls, TlsOptions};
use spdy_proxy::cache::disk::store::DiskStore;
use spdy_proxy::config::{Config, TimingConfig};
use spdy_proxy::response::server_timing::Timing;
use spdy_proxy::sites::alias_dns_records;
use spdy_proxy::sites::site_table::Sites;
use spdy_proxy::token::Token;

use crate::commands::Usage;
use crate::commands::accelerate::origins;
use crate::commands::accelerate::secrets::{self, RandomSecret};
use crate::commands::accelerate::upstream_needs::UpstreamNeeds;
use crate::commands::telemetry;
use crate::printer::{BAD, Printer, WARN};

/// Characters of a token.
const MIN_TOKEN_CHARS: usize = 16;

/// The sites. Their capabilities use the operator's current secrets, or `chance`.
pub(super) fn compile(config: &Config, chance: &RandomSecret) -> anyhow::Result<Sites> {
    let keys = secrets::keys(config, chance)?;
    let sites = Sites::compile(config, &keys).map_err(|error| Usage(error.to_string()))?;
    Ok(sites)
}

/// Warns of settings that may be mistakes.
pub(super) fn warn_sites(sites: &Sites, printer: &Printer) {
    for site in sites.possible_loops() {
        printer.note(format_args!(
            "{BAD}site {site}{BAD:#}: its origin has a name that is answered for here, and no address: where that name leads back \
             here, every request ends with 508; say `address`"
        ));
    }
    for site in sites.all() {
        for host in site.rules.unmarked_public_cdns() {
            printer.note(format_args!(
                "{BAD}site {}{BAD:#}: {host} has anybody's scripts for everybody, and all of them are moved: a page whose policy has \
                 'self' lets any of them run; say `shared = true`, or the `path` of what the site needs",
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
pub(super) fn warn_unreachable_hosts(config: &Config, printer: &Printer) -> anyhow::Result<()> {
    let hosts = config.site.iter().flat_map(|site| &site.rewrite.hosts);
    let hosts = hosts.map(|entry| entry.host.split(':').next().unwrap_or_default());
    let hosts: BTreeSet<&str> = hosts.filter(|host| !host.contains('*')).collect();
    let rules = origins::address_rules(&config.upstream)?;
    let needs = UpstreamNeeds::of_hosts(hosts, &BTreeMap::new(), &config.upstream, &rules);
    for host in &needs.allow_hosts {
        printer.note(format_args!(
            "{WARN}{host}{WARN:#} is no public name, and is not fetched from: add it to `upstream.allow_hosts`"
        ));
    }
    for address in &needs.allow_addresses {
        printer.note(format_args!(
            "{WARN}{address}{WARN:#} of `upstream.resolve` is not public, and is not connected to: add it to `upstream.allow_addresses`"
        ));
    }
    // Resolvers that are configured may know names that the public DNS does not have.
    for host in needs
        .resolve
        .keys()
        .filter(|_| config.dns.servers.is_empty())
    {
        printer.note(format_args!(
            "{WARN}{host}{WARN:#} is in no public DNS: unless this machine's resolver knows it, give its address in `upstream.resolve`"
        ));
    }
    Ok(())
}

/// Warns of an admin listener that other machines can reach.
pub(super) fn warn_admin_address(config: &Config, printer: &Printer) {
    let admin = config.admin.as_ref().map(|admin| admin.address);
    if let Some(address) = admin.filter(|address| !address.ip().to_canonical().is_loopback()) {
        printer.note(format_args!(
            "{BAD}admin.address {address} is not on loopback{BAD:#}: the door speaks plain HTTP, so whoever reaches it has the metrics, and \
             whoever is on the way has the token"
        ));
    }
}

/// The disk tier of the cache, if configured.
pub(super) fn disk(config: &Config) -> anyhow::Result<Option<DiskStore>> {
    let Some(folder) = &config.cache.disk else {
        return Ok(None);
    };
    let disk = DiskStore::open(folder, (config.cache.disk_mib as u64) << 20);
    let disk = disk.with_context(|| format!("cannot keep anything in {}", folder.display()))?;
    Ok(Some(disk))
}

/// TLS for clients on every listener. It shows `identities`, and answers tls-alpn-01 challenges.
pub(super) fn tls(identities: &Identities, protocols: &[Protocol]) -> anyhow::Result<ServerTls> {
    let tls = ServerTls::of(identities, protocols, &TlsOptions::default())?;
    Ok(tls.with_dynamic_record_size().with_acme_challenges())
}

/// The zones that are answered for, with the names that other hosts have for `sites`.
pub(super) fn zones(config: &Config, sites: &Sites) -> anyhow::Result<Zones> {
    Zones::new(&alias_dns_records::with_alias_records(config, sites))
        .map_err(|error| Usage(format!("dns.zone: {error}")).into())
}

/// The clients that get a Server-Timing header.
pub(super) fn timing(config: &TimingConfig) -> anyhow::Result<Timing> {
    let token = config.token_file.as_deref().map(token).transpose()?;
    Ok(Timing {
        token: token.as_deref().map(Token::new),
    })
}

/// Where spans are sent, if configured.
pub(super) fn telemetry(config: &Config) -> anyhow::Result<Option<telemetry::Settings>> {
    let telemetry = config.telemetry.as_ref();
    telemetry.map(telemetry::Settings::of).transpose()
}

/// A token: the first line of a file.
pub(super) fn token(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    let token = text.lines().next().unwrap_or_default().trim();
    if token.len() < MIN_TOKEN_CHARS {
        let (what, got) = (path.display(), token.len());
        let why =
            format!("{what}: want a token of {MIN_TOKEN_CHARS} characters or more, got {got}");
        return Err(Usage(why).into());
    }
    Ok(token.to_owned())
}
