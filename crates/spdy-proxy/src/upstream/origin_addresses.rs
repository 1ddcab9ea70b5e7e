//! The configured addresses of sites' own origins, by name and port.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::sites::site_table::Sites;

/// A name, its port (any if `None`), and its address.
pub(crate) type OriginAddress = (String, Option<u16>, IpAddr);

/// The configured addresses of `sites`' own origins. The `address` of a site overrides `resolve`. If both were used, both would be tried.
pub(crate) fn origin_addresses(
    sites: &Sites,
    resolve: &BTreeMap<String, IpAddr>,
) -> Vec<OriginAddress> {
    let mut result = sites.addresses().to_vec();
    let has_site_address = |name: &str| {
        sites
            .addresses()
            .iter()
            .any(|(addresses, ..)| addresses == name)
    };
    let has_address_at = |name: &str, port| {
        let mut addresses = sites.addresses().iter();
        addresses.any(|(addresses, at, _)| addresses == name && at.is_none_or(|at| at == port))
    };
    // Another site may have an origin with the same name at another port.
    let remaining_ports = |name: &str| {
        let origins = sites.all().map(|site| site.origin());
        let ports = origins.filter(|(_, host, port)| *host == name && !has_address_at(host, *port));
        ports
            .map(|(_, _, port)| Some(port))
            .collect::<BTreeSet<_>>()
    };
    for (name, &address) in resolve {
        let name = name.to_ascii_lowercase();
        // Names that an origin is contacted by have the address of its own name.
        let aliases = sites
            .connect_hosts()
            .iter()
            .filter(|(_, own)| **own == name);
        let aliases = aliases.map(|(aliases, _)| aliases.clone());
        let of_itself = (!sites.connect_hosts().contains_key(&name)).then(|| name.clone());
        let names = of_itself.into_iter().chain(aliases);
        for name in names {
            let ports = match has_site_address(&name) {
                true => remaining_ports(&name),
                false => BTreeSet::from([None]),
            };
            result.extend(ports.into_iter().map(|port| (name.clone(), port, address)));
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use spdy_rewrite::rules::capability::Keys;

    use super::*;
    use crate::config::Config;

    #[test]
    fn resolve_applies_to_site_origins_unless_site_has_address() {
        let text = "[upstream.resolve]\n'Looked.test' = '192.0.2.1'\n'sited.test' = '192.0.2.2'\n'preserved.test' = '192.0.2.3'\n\
            'www.c.test' = '192.0.2.4'\n'cdn.test' = '192.0.2.5'\n\
            [[site]]\nnames = ['www.a.test']\norigin = 'https://looked.test'\n\
            [[site]]\nnames = ['www.b.test']\norigin = 'https://sited.test'\naddress = '198.51.100.1'\n\
            [[site]]\nnames = ['www.d.test']\norigin = 'https://sited.test:8443'\naddress = '198.51.100.2'\n\
            [[site]]\nnames = ['www.e.test']\norigin = 'https://sited.test:9443'\n\
            [[site]]\nnames = ['www.c.test', 'c.test']\norigin = 'https://preserved.test'\nkeep_host = true\n";
        let config = Config::parse(text).expect("a valid value");
        let keys = Keys::from_secrets(&[7; 32], None).expect("the secret is long enough");
        let sites = Sites::compile(&config, &keys).expect("valid sites");
        let placed = origin_addresses(&sites, &config.upstream.resolve);
        let of = |name: &str| {
            let matching = placed.iter().filter(|(placed, ..)| placed == name);
            let matching = matching.map(|(_, _, address)| address.to_string());
            matching.collect::<Vec<_>>().join(" ")
        };
        for (name, address) in [
            ("looked.test", "192.0.2.1"),
            ("sited.test", "198.51.100.1 198.51.100.2 192.0.2.2"),
            ("preserved.test", "192.0.2.3"),
            ("www.c.test", "192.0.2.3"),
            ("c.test", "192.0.2.3"),
            ("www.a.test", ""),
        ] {
            assert_eq!(of(name), address, "{name}");
        }
        let of_site_address = placed.iter().filter(|(name, ..)| name == "sited.test");
        let at: Vec<_> = of_site_address.map(|(_, port, _)| *port).collect();
        assert_eq!(at, [Some(443), Some(8443), Some(9443)], "each where it is");
    }
}
