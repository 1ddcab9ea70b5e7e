//! The origins of `spdy accelerate`: trusted authorities, DNS resolvers, and denied addresses.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use anyhow::Context;
use ipnet::Ipv6Net;
use spdy::runtime::SharedRuntime;
use spdy_dns::address_rules;
use spdy_dns::address_rules::AddressRules;
use spdy_dns::guarded_network::{GuardedNetwork, RefusalCounts};
use spdy_dns::loop_guard::LoopGuard;
use spdy_dns::own_listeners::OwnListeners;
use spdy_dns::resolver::config::{ResolverConfig, system_servers};
use spdy_dns::resolver::{MismatchedReplies, Resolver};
use spdy_dns::zones::SharedZones;
use spdy_net::network::{SharedNetwork, SystemNetwork};
use spdy_net::tls::certificates::certificates_from_pem;
use spdy_net::tls::verify::{Roots, Trust};
use spdy_net::tls::{ClientTls, TlsOptions};
use spdy_proxy::config::Config;
use spdy_proxy::config::upstream::UpstreamConfig;
use spdy_proxy::sites::site_table::Sites;
use spdy_proxy::upstream::client::Upstream;

use crate::commands::Usage;
use crate::printer::{BAD, Printer};

/// What is counted of origins over all configurations that were read. Clones count together.
#[derive(Clone, Debug, Default)]
pub(super) struct OriginCounters {
    /// Hosts and addresses that no origin may have.
    pub(super) refusals: RefusalCounts,
    /// DNS replies that do not match their question.
    pub(super) unwanted: MismatchedReplies,
}

/// The origins, which `tls` verifies, behind the guard on the addresses of others. None is connected to at `own`.
pub(super) fn upstream(
    config: &Config,
    tls: &ClientTls,
    sites: &Sites,
    zones: &SharedZones,
    own: OwnListeners,
    counted: &OriginCounters,
    runtime: &SharedRuntime,
) -> anyhow::Result<Upstream> {
    let servers = match config.dns.servers.is_empty() {
        // A system without a list of them has another way, which is taken then.
        true => system_servers().unwrap_or_default(),
        false => config.dns.servers.clone(),
    };
    let system: SharedNetwork = Arc::new(SystemNetwork);
    let names = ResolverConfig {
        servers,
        ..ResolverConfig::default()
    };
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    let names = Resolver::new(system.clone(), runtime.clone(), names, zones.clone(), seed);
    let names = names.with_counts(counted.unwanted.clone());
    let rules = rules(config, sites, own.clone())?;
    let guarded = GuardedNetwork::with_names(Arc::new(names), system.clone(), rules);
    let guarded = guarded.with_counts(counted.refusals.clone());
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
pub(super) fn tls(config: &Config) -> anyhow::Result<ClientTls> {
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

/// The addresses that third-party hosts may have: the operator's rules, and the ports of the hosts that the configuration lists.
pub(super) fn rules(
    config: &Config,
    sites: &Sites,
    own: OwnListeners,
) -> anyhow::Result<AddressRules> {
    let mut rules = address_rules(&config.upstream)?;
    let ports = sites.all().flat_map(|site| site.rules.ports());
    rules.ports.extend(ports);
    Ok(AddressRules { own, ..rules })
}

/// The addresses that other hosts may have by `upstream` alone.
pub(super) fn address_rules(upstream: &UpstreamConfig) -> anyhow::Result<AddressRules> {
    let mut ports: BTreeSet<u16> = address_rules::DEFAULT_PORTS.into();
    ports.extend(&upstream.allow_ports);
    let nat64 = ranges::<Ipv6Net>("nat64", "64:ff9b:1::/96", &upstream.nat64)?;
    if let Some(wrong) = nat64.iter().find(|net| !address_rules::is_nat64(**net)) {
        let want = "a prefix of 32, 40, 48, 56, 64 or 96 bits (RFC 6052)";
        return Err(Usage(format!("upstream.nat64: want {want}, got {wrong}")).into());
    }
    let lower = |host: &String| host.to_ascii_lowercase();
    Ok(AddressRules {
        allow: ranges("allow_addresses", "10.0.0.0/8", &upstream.allow_addresses)?,
        deny: ranges("deny_addresses", "10.0.0.0/8", &upstream.deny_addresses)?,
        ports,
        nat64,
        hosts: upstream.allow_hosts.iter().map(lower).collect(),
        ..AddressRules::default()
    })
}

fn ranges<T: FromStr>(key: &str, such: &str, texts: &[String]) -> anyhow::Result<Vec<T>> {
    let range = |text: &String| {
        text.parse().map_err(|_| {
            let why = format!("upstream.{key}: want a range as {such}, got {text:?}");
            Usage(why).into()
        })
    };
    texts.iter().map(range).collect()
}

/// Where clients, operators and resolvers come in: `listening`, and what leads there from outside.
pub(super) fn own(config: &Config, listening: &[SocketAddr], printer: &Printer) -> OwnListeners {
    let listen = &config.listen;
    let ports: BTreeSet<u16> = listening
        .iter()
        .map(SocketAddr::port)
        .chain(listen.public_port)
        .collect();
    let from_outside = listen.public_addresses.iter().flat_map(|&address| {
        ports
            .iter()
            .map(move |&port| SocketAddr::new(address, port))
    });
    let mut all = listening.to_owned();
    all.extend(from_outside);
    let is_everywhere = |one: &SocketAddr| one.ip().is_unspecified();
    let machine = match listening.iter().any(is_everywhere) {
        true => machine(printer),
        false => Vec::new(),
    };
    OwnListeners::new(all, machine)
}

/// The addresses of the machine's interfaces. Empty, with a note, if the system does not report them.
#[cfg(target_os = "linux")]
fn machine(printer: &Printer) -> Vec<IpAddr> {
    match nix::ifaddrs::getifaddrs() {
        Ok(interfaces) => interfaces
            .filter_map(|interface| {
                let address = interface.address?;
                let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
                v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
            })
            .collect(),
        Err(error) => {
            printer.note(format_args!(
                "{BAD}the system does not tell this machine's addresses{BAD:#}: {error}; say `listen.public_addresses`, so that no \
                 request for an origin comes back here"
            ));
            Vec::new()
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn machine(_: &Printer) -> Vec<IpAddr> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use spdy_rewrite::rules::capability::Keys;

    use super::*;

    const TEXT: &str = "
        [listen]
        public_port = 443
        public_addresses = ['198.51.100.9']
        [upstream]
        allow_ports = [8080]
        deny_addresses = ['203.0.113.0/24', '8.8.8.8/32']
        nat64 = ['2001:db9:64::/96']
        allow_hosts = ['Backend']
        [[site]]
        names = ['www.site.test']
        origin = 'https://origin.site.test'
        [[site.rewrite.hosts]]
        host = 'cdn.test:8443'
        kinds = ['image']
    ";

    fn configured() -> (Config, Sites) {
        let config = Config::parse(TEXT).expect("it is good");
        let keys = Keys::from_secrets(&[7; 32], None).expect("it is long enough");
        let sites = Sites::compile(&config, &keys).expect("likewise");
        (config, sites)
    }

    #[test]
    fn listed_ports_are_allowed_and_denied_addresses_denied() {
        let (config, sites) = configured();
        let rules = rules(&config, &sites, OwnListeners::default()).expect("it is good");
        let may = |to: &str| rules.check_target(to.parse().expect("an address")).is_ok();
        assert!(may("1.1.1.1:443") && may("1.1.1.1:80"));
        assert!(may("1.1.1.1:8443"), "a host is listed with it");
        assert!(may("1.1.1.1:8080") && !may("1.1.1.1:22"));
        assert!(!may("8.8.8.8:443"), "the operator denies it");
        assert!(may("[2001:db9:64::101:101]:443"), "1.1.1.1 by NAT64");
        assert!(!may("[2001:db9:64::a9fe:a9fe]:443"), "metadata by NAT64");
        assert_eq!(rules.check_host("backend"), Ok(()));
        assert!(rules.check_host("other").is_err());
    }

    #[test]
    fn public_addresses_of_the_machine_are_own_listeners() {
        let (config, _) = configured();
        let printer = Printer::new(true, clap::ColorChoice::Never);
        let listening = ["127.0.0.1:8443".parse().unwrap()];
        let own = own(&config, &listening, &printer);
        for (to, is_ours) in [
            ("127.0.0.1:8443", true),
            ("198.51.100.9:8443", true),
            ("198.51.100.9:443", true),
            ("198.51.100.9:80", false),
            ("127.0.0.1:443", false),
        ] {
            assert_eq!(own.contains(to.parse().unwrap()), is_ours, "{to}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_machine_knows_its_own_addresses() {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        assert!(machine(&Printer::new(true, clap::ColorChoice::Never)).contains(&loopback));
    }
}
