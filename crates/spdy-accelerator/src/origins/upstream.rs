//! Connections to origins: trusted authorities, DNS resolvers, and the guard on third-party addresses.

use std::sync::Arc;

use anyhow::Context;
use spdy::runtime::SharedRuntime;
use spdy_dns::zones::SharedZones;
use spdy_net::network::{SharedNetwork, SystemNetwork};
use spdy_net::tls::certificates::certificates_from_pem;
use spdy_net::tls::verify::{Roots, Trust};
use spdy_net::tls::{ClientTls, TlsOptions};
use spdy_proxy::config::Config;
use spdy_proxy::sites::site_table::Sites;
use spdy_proxy::upstream::client::Upstream;
use spdy_resolver::config::{ResolverConfig, system_servers};
use spdy_resolver::guarded_network::{GuardedNetwork, RefusalCounts};
use spdy_resolver::loop_guard::LoopGuard;
use spdy_resolver::own_listeners::OwnListeners;
use spdy_resolver::own_names::OwnNames;
use spdy_resolver::resolver::Resolver;
use spdy_resolver::spoof_budget::MismatchedReplies;
use spdy_service::random;

use super::address_rules;

/// Counters of origins, over all configurations that were read. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct OriginCounters {
    /// Hosts and addresses that no origin may have.
    pub(crate) refusals: RefusalCounts,
    /// DNS replies that do not match their question.
    pub(crate) unwanted: MismatchedReplies,
}

/// The state of connections to origins that all configurations share.
pub(crate) struct OriginContext {
    pub(crate) zones: SharedZones,
    pub(crate) counters: OriginCounters,
    pub(crate) runtime: SharedRuntime,
}

/// The origins, which `tls` verifies, behind the guard on the addresses of others. No connection is made to `own`.
pub(crate) fn upstream(
    config: &Config,
    tls: &ClientTls,
    sites: &Sites,
    own: OwnListeners,
    context: &OriginContext,
) -> anyhow::Result<Upstream> {
    let OriginContext {
        zones,
        counters,
        runtime,
    } = context;
    let servers = match config.dns.servers.is_empty() {
        // The servers of `/etc/resolv.conf`. If there are none, `Resolver` uses the system's own resolver.
        true => system_servers().unwrap_or_default(),
        false => config.dns.servers.clone(),
    };
    let system: SharedNetwork = Arc::new(SystemNetwork);
    let names = ResolverConfig {
        servers,
        ..ResolverConfig::default()
    };
    let zones = zones.clone();
    let own_names = OwnNames::new(move |name| zones.now().owns(name));
    let names = Resolver::new(
        system.clone(),
        runtime.clone(),
        names,
        own_names,
        random::bytes()?,
    );
    let names = names.with_counts(counters.unwanted.clone());
    let rules = address_rules::rules(config, sites, own.clone())?;
    let guarded = GuardedNetwork::with_names(Arc::new(names), system.clone(), rules);
    let guarded = guarded.with_counts(counters.refusals.clone());
    Ok(Upstream::new(
        &config.upstream,
        Some(tls),
        sites,
        Arc::new(LoopGuard::new(system, own)),
        Arc::new(guarded),
        runtime,
    ))
}

/// TLS to origins, with the authorities that may certify them.
pub(crate) fn tls(config: &Config) -> anyhow::Result<ClientTls> {
    let mut authorities = Vec::new();
    for path in &config.upstream.authorities {
        let pem = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        authorities.extend(certificates_from_pem(&pem, &path.display().to_string())?);
    }
    let trust = Trust {
        roots: Roots::SystemPlus(authorities),
        ..Trust::default()
    };
    Ok(ClientTls::new(&trust, &TlsOptions::default())?)
}
