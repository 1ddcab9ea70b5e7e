//! Which addresses origins and third-party hosts may have: the rules of `[upstream]`, and the listeners of this program, which none may be.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use ipnet::Ipv6Net;
use spdy_proxy::config::Config;
use spdy_proxy::config::upstream::UpstreamConfig;
use spdy_proxy::sites::site_table::Sites;
use spdy_resolver::address_rules::{self, AddressRules};
use spdy_resolver::own_listeners::OwnListeners;
use spdy_service::error::Usage;
use spdy_service::notice::Notices;

/// The addresses that third-party hosts may have: the operator's rules, and the ports of the hosts that the configuration lists.
pub(crate) fn rules(
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
///
/// # Errors
///
/// `upstream` has an invalid address range.
pub fn address_rules(upstream: &UpstreamConfig) -> anyhow::Result<AddressRules> {
    let mut ports: BTreeSet<u16> = address_rules::DEFAULT_PORTS.into();
    ports.extend(&upstream.allow_ports);
    let nat64 = ranges::<Ipv6Net>("nat64", "64:ff9b:1::/96", &upstream.nat64)?;
    if let Some(wrong) = nat64.iter().find(|net| !address_rules::is_nat64(**net)) {
        let expected = "a prefix of 32, 40, 48, 56, 64 or 96 bits (RFC 6052)";
        return Err(Usage(format!(
            "upstream.nat64: expected {expected}, found {wrong}"
        ))
        .into());
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
            let reason = format!("upstream.{key}: expected a range such as {such}, found {text:?}");
            Usage(reason).into()
        })
    };
    texts.iter().map(range).collect()
}

/// The addresses at which clients, operators and resolvers connect: `listening`, and each public address with the ports of `listening`
/// and the public port.
pub(crate) fn own_listeners(
    config: &Config,
    listening: &[SocketAddr],
    notices: &Notices,
) -> OwnListeners {
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
    let interfaces = match listening.iter().any(is_everywhere) {
        true => interface_addresses(notices),
        false => Vec::new(),
    };
    OwnListeners::new(all, interfaces)
}

/// The addresses of the machine's interfaces. Empty, with a note, if the system does not report them.
#[cfg(target_os = "linux")]
fn interface_addresses(notices: &Notices) -> Vec<IpAddr> {
    match nix::ifaddrs::getifaddrs() {
        Ok(interfaces) => interfaces
            .filter_map(|interface| {
                let address = interface.address?;
                let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
                v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
            })
            .collect(),
        Err(error) => {
            notices.error(
                "cannot find this machine's addresses",
                format_args!(
                    ": {error}; set `listen.public_addresses`, so that no request to an \
                 origin loops back"
                ),
            );
            Vec::new()
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn interface_addresses(_: &Notices) -> Vec<IpAddr> {
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
        let config = Config::parse(TEXT).expect("a valid configuration");
        let keys = Keys::from_secrets(&[7; 32], None).expect("a secret of 32 bytes");
        let sites = Sites::compile(&config, &keys).expect("valid sites");
        (config, sites)
    }

    #[test]
    fn listed_ports_are_allowed_and_denied_addresses_denied() {
        let (config, sites) = configured();
        let rules = rules(&config, &sites, OwnListeners::default()).expect("a valid configuration");
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
        let notices = Notices::default();
        let listening = ["127.0.0.1:8443".parse().unwrap()];
        let own = own_listeners(&config, &listening, &notices);
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
        assert!(interface_addresses(&Notices::default()).contains(&loopback));
    }
}
