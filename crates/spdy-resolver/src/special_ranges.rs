//! Addresses that are not public on the Internet, as a table: the range, its name, and the document that defines it.
//!
//! The rows are those of IANA's special-purpose registries (RFC 6890 and what came later), of multicast and of what was
//! given back; then addresses that are public by number and are answered by the machine's own cloud. Of IPv6 nothing is
//! a global unicast address but what lies in `2000::/3` (RFC 4291 §2.4, IANA), so the table ends with the rest of it.
//! The first row that holds an address names it: narrow rows stand before wide ones.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// A range that no origin may have an address in.
#[derive(Debug, Eq, PartialEq)]
pub struct Range {
    /// The addresses.
    pub net: IpNet,
    /// What they are for, in one word: it stands in messages and metrics, and stays as it is.
    pub name: &'static str,
    /// The document that says so.
    pub source: &'static str,
}

impl Range {
    /// The range that denies `address`, if any. [`address_rules`](crate::address_rules) checks IPv4 addresses within IPv6 ones.
    #[must_use]
    pub fn of(address: IpAddr) -> Option<&'static Self> {
        RANGES.iter().find(|range| range.net.contains(&address))
    }
}

const fn v4(octets: [u8; 4], bits: u8, name: &'static str, source: &'static str) -> Range {
    let [a, b, c, d] = octets;
    let net = Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits);
    Range {
        net: IpNet::V4(net),
        name,
        source,
    }
}

/// `head` are the first four groups; no range here says more, but for those that end in ones and zeros.
const fn v6(head: [u16; 4], bits: u8, name: &'static str, source: &'static str) -> Range {
    let [a, b, c, d] = head;
    v6_whole([a, b, c, d, 0, 0, 0, 0], bits, name, source)
}

const fn v6_whole(groups: [u16; 8], bits: u8, name: &'static str, source: &'static str) -> Range {
    let [a, b, c, d, e, f, g, h] = groups;
    let net = Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), bits);
    Range {
        net: IpNet::V6(net),
        name,
        source,
    }
}

/// Every range, narrow ones first.
pub const RANGES: &[Range] = &[
    // Answered by the machine's own cloud, whatever the number says.
    v4([169, 254, 169, 254], 32, "metadata", "RFC 3927, clouds"),
    v4([168, 63, 129, 16], 32, "metadata", "Azure"),
    v4(
        [100, 100, 100, 200],
        32,
        "metadata",
        "RFC 6598, Alibaba Cloud",
    ),
    v4([192, 0, 0, 192], 32, "metadata", "RFC 6890, Oracle Cloud"),
    v6_whole(
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254],
        128,
        "metadata",
        "RFC 4193, AWS",
    ),
    // IPv4
    v4([0, 0, 0, 0], 8, "this_network", "RFC 1122 §3.2.1.3"),
    v4([10, 0, 0, 0], 8, "private", "RFC 1918"),
    v4([100, 64, 0, 0], 10, "carrier_nat", "RFC 6598"),
    v4([127, 0, 0, 0], 8, "loopback", "RFC 1122 §3.2.1.3"),
    v4([169, 254, 0, 0], 16, "link_local", "RFC 3927"),
    v4([172, 16, 0, 0], 12, "private", "RFC 1918"),
    v4([192, 0, 0, 0], 24, "ietf_protocol", "RFC 6890"),
    v4([192, 0, 2, 0], 24, "documentation", "RFC 5737"),
    v4([192, 31, 196, 0], 24, "as112", "RFC 7535"),
    v4([192, 52, 193, 0], 24, "multicast_tunnel", "RFC 7450"),
    v4([192, 88, 99, 0], 24, "6to4_relay", "RFC 7526"),
    v4([192, 168, 0, 0], 16, "private", "RFC 1918"),
    v4([192, 175, 48, 0], 24, "as112", "RFC 7534"),
    v4([198, 18, 0, 0], 15, "benchmarking", "RFC 2544"),
    v4([198, 51, 100, 0], 24, "documentation", "RFC 5737"),
    v4([203, 0, 113, 0], 24, "documentation", "RFC 5737"),
    v4([224, 0, 0, 0], 4, "multicast", "RFC 5771"),
    v4([255, 255, 255, 255], 32, "broadcast", "RFC 919"),
    v4([240, 0, 0, 0], 4, "reserved", "RFC 1112 §4"),
    // IPv6, outside of 2000::/3 what has a name
    v6_whole(
        [0, 0, 0, 0, 0, 0, 0, 0],
        128,
        "unspecified",
        "RFC 4291 §2.5.2",
    ),
    v6_whole([0, 0, 0, 0, 0, 0, 0, 1], 128, "loopback", "RFC 4291 §2.5.3"),
    v6([0, 0, 0, 0], 96, "ipv4_compatible", "RFC 4291 §2.5.5.1"),
    v6_whole(
        [0, 0, 0, 0, 0, 0xffff, 0, 0],
        96,
        "ipv4_mapped",
        "RFC 4291 §2.5.5.2",
    ),
    v6_whole(
        [0, 0, 0, 0, 0xffff, 0, 0, 0],
        96,
        "ipv4_translated",
        "RFC 2765 §2.1",
    ),
    v6([0x64, 0xff9b, 0, 0], 96, "nat64", "RFC 6052 §2.1"),
    v6([0x64, 0xff9b, 1, 0], 48, "nat64_local", "RFC 8215"),
    v6([0x100, 0, 0, 0], 64, "discard", "RFC 6666"),
    v6([0x100, 0, 0, 1], 64, "dummy", "RFC 9780"),
    v6([0x5f00, 0, 0, 0], 16, "segment_routing", "RFC 9602"),
    v6([0xfc00, 0, 0, 0], 7, "private", "RFC 4193"),
    v6([0xfe80, 0, 0, 0], 10, "link_local", "RFC 4291 §2.5.6"),
    v6([0xfec0, 0, 0, 0], 10, "site_local", "RFC 3879"),
    v6([0xff00, 0, 0, 0], 8, "multicast", "RFC 4291 §2.7"),
    // inside of it
    v6([0x2001, 0, 0, 0], 32, "teredo", "RFC 4380"),
    v6([0x2001, 2, 0, 0], 48, "benchmarking", "RFC 5180"),
    v6([0x2001, 0x10, 0, 0], 28, "orchid", "RFC 4843"),
    v6([0x2001, 0x20, 0, 0], 28, "orchid", "RFC 7343"),
    v6([0x2001, 0, 0, 0], 23, "ietf_protocol", "RFC 2928"),
    v6([0x2001, 0xdb8, 0, 0], 32, "documentation", "RFC 3849"),
    v6([0x2002, 0, 0, 0], 16, "6to4", "RFC 3056"),
    v6([0x2620, 0x4f, 0x8000, 0], 48, "as112", "RFC 7534"),
    v6([0x3ffe, 0, 0, 0], 16, "6bone", "RFC 3701"),
    v6([0x3fff, 0, 0, 0], 20, "documentation", "RFC 9637"),
    // and the rest of it, which IANA has not given to anybody
    v6([0, 0, 0, 0], 3, "not_global", "RFC 4291 §2.4"),
    v6([0x4000, 0, 0, 0], 2, "not_global", "RFC 4291 §2.4"),
    v6([0x8000, 0, 0, 0], 1, "not_global", "RFC 4291 §2.4"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_range_is_hidden_behind_a_wider_one_before_it() {
        for (number, range) in RANGES.iter().enumerate() {
            let hides = RANGES[..number]
                .iter()
                .find(|before| before.net.contains(&range.net));
            assert_eq!(hides, None, "{range:?}");
            assert_eq!(range.net.trunc(), range.net, "host bits are set: {range:?}");
        }
    }

    #[test]
    fn of_ipv6_only_two_thousand_slash_three_is_left() {
        for head in 0..=0xffff_u16 {
            let address = IpAddr::from([head, 0x4860, 0, 0, 0, 0, 0, 0x8888]);
            let global = (0x2000..0x4000).contains(&head) && ![0x2002, 0x3ffe].contains(&head);
            assert_eq!(Range::of(address).is_none(), global, "{address}");
        }
    }
}
