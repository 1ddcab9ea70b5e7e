//! Addresses of a page's hosts behind a link: the recorded ones, if possible.
//!
//! The servers' host has every IPv4 address but the client's, so nearly every recorded address is used. An address that the client
//! cannot reach there (loopback, multicast, IPv6) is replaced by one of 198.18.0.0/15 for all its names: hosts that shared an address
//! still do.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use spdy_tun::host::CLIENT;

/// Block of synthetic addresses: the second /16 of RFC 2544's, without the link's own two /24.
const MADE_UP: [u8; 2] = [198, 19];
/// First third byte there; 198.19.0.0/24 has the client.
const FIRST: usize = 1;

/// The address of each of `hosts`.
#[must_use]
pub fn assign_addresses(hosts: Vec<(String, IpAddr)>) -> BTreeMap<String, Ipv4Addr> {
    let mut exchanged = BTreeMap::new();
    let hosts = hosts.into_iter().map(|(host, address)| {
        let reached = match address {
            IpAddr::V4(address) if is_usable(address) => address,
            other => {
                let next = exchanged.len();
                *exchanged
                    .entry(other)
                    .or_insert_with(|| synthetic_address(next))
            }
        };
        (host, reached)
    });
    hosts.collect()
}

fn is_usable(address: Ipv4Addr) -> bool {
    let first = address.octets()[0];
    let leads_elsewhere = address.is_loopback() || address.is_link_local() || first == 0;
    !leads_elsewhere && first < 224 && address != CLIENT
}

fn synthetic_address(number: usize) -> Ipv4Addr {
    let [.., high, low] = (number + (FIRST << 8)).to_be_bytes();
    Ipv4Addr::new(MADE_UP[0], MADE_UP[1], high, low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_recorded_addresses_are_replaced_consistently() {
        let hosts = [
            ("a.test", "203.0.113.9", "203.0.113.9"),
            ("b.test", "127.0.0.1", "198.19.1.0"),
            ("c.test", "127.0.0.1", "198.19.1.0"),
            ("d.test", "::1", "198.19.1.1"),
            ("e.test", "198.19.0.1", "198.19.1.2"),
            ("f.test", "203.0.113.9", "203.0.113.9"),
        ];
        let named =
            |(host, at, _): (&str, &str, _)| (host.to_owned(), at.parse().expect("an address"));
        let assigned = assign_addresses(hosts.map(named).to_vec());
        for (host, at, expected) in hosts {
            assert_eq!(assigned[host].to_string(), expected, "{host} at {at}");
        }
    }
}
