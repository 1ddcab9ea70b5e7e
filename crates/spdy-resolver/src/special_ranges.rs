//! Addresses that are not public on the Internet, as a table: the range, its purpose, and the document that defines it.
//!
//! The rows are those of IANA's special-purpose registries (RFC 6890 and later documents), of multicast and of ranges that
//! were returned, and addresses at which a machine's own cloud responds. In IPv6 only `2000::/3` has global unicast
//! addresses (RFC 4291 §2.4, IANA), so the table ends with the rest. The first row that contains an address applies:
//! narrow ranges are listed before wide ones.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// A range that contains no address of a public origin.
#[derive(Debug, Eq, PartialEq)]
pub struct Range {
    /// The addresses.
    pub net: IpNet,
    /// What they are for.
    pub purpose: Purpose,
    /// The document that defines the range.
    pub source: &'static str,
}

/// What a range is for. Several ranges may have the same purpose.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Purpose {
    /// For metrics and logs, in snake case. Names are stable, because dashboards use them.
    pub name: &'static str,
    /// For messages to people.
    pub text: &'static str,
}

const fn purpose(name: &'static str, text: &'static str) -> Purpose {
    Purpose { name, text }
}

impl Range {
    /// The range that denies `address`, if any. [`address_rules`](crate::address_rules) checks IPv4 addresses within IPv6 ones.
    #[must_use]
    pub fn of(address: IpAddr) -> Option<&'static Self> {
        RANGES.iter().find(|range| range.net.contains(&address))
    }
}

const fn v4(octets: [u8; 4], bits: u8, purpose: Purpose, source: &'static str) -> Range {
    let [a, b, c, d] = octets;
    let net = Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits);
    Range {
        net: IpNet::V4(net),
        purpose,
        source,
    }
}

/// `head` are the first four groups. Other groups are zero; ranges that need them use `v6_whole`.
const fn v6(head: [u16; 4], bits: u8, purpose: Purpose, source: &'static str) -> Range {
    let [a, b, c, d] = head;
    v6_whole([a, b, c, d, 0, 0, 0, 0], bits, purpose, source)
}

const fn v6_whole(groups: [u16; 8], bits: u8, purpose: Purpose, source: &'static str) -> Range {
    let [a, b, c, d, e, f, g, h] = groups;
    let net = Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), bits);
    Range {
        net: IpNet::V6(net),
        purpose,
        source,
    }
}

const METADATA: Purpose = purpose("metadata", "metadata service of a cloud");
const THIS_NETWORK: Purpose = purpose("this_network", "this network");
const PRIVATE: Purpose = purpose("private", "private network");
const CARRIER_GRADE_NAT: Purpose = purpose("carrier_grade_nat", "carrier-grade NAT");
const LOOPBACK: Purpose = purpose("loopback", "loopback");
const LINK_LOCAL: Purpose = purpose("link_local", "link-local");
const IETF_PROTOCOL_ASSIGNMENTS: Purpose =
    purpose("ietf_protocol_assignments", "IETF protocol assignments");
const DOCUMENTATION: Purpose = purpose("documentation", "documentation");
const AS112: Purpose = purpose("as112", "AS112 name servers");
const AUTOMATIC_MULTICAST_TUNNELING: Purpose = purpose(
    "automatic_multicast_tunneling",
    "automatic multicast tunneling",
);
const SIX_TO_FOUR_RELAY: Purpose = purpose("6to4_relay", "6to4 relay");
const BENCHMARKING: Purpose = purpose("benchmarking", "benchmarking");
const MULTICAST: Purpose = purpose("multicast", "multicast");
const BROADCAST: Purpose = purpose("broadcast", "limited broadcast");
const RESERVED: Purpose = purpose("reserved", "reserved for future use");
const UNSPECIFIED: Purpose = purpose("unspecified", "unspecified address");
const IPV4_COMPATIBLE: Purpose = purpose("ipv4_compatible", "IPv4-compatible");
const IPV4_MAPPED: Purpose = purpose("ipv4_mapped", "IPv4-mapped");
const IPV4_TRANSLATED: Purpose = purpose("ipv4_translated", "IPv4-translated");
const NAT64: Purpose = purpose("nat64", "NAT64");
const NAT64_LOCAL_USE: Purpose = purpose("nat64_local_use", "local-use NAT64");
const DISCARD_ONLY: Purpose = purpose("discard_only", "discard-only");
const DUMMY_PREFIX: Purpose = purpose("dummy_prefix", "dummy prefix");
const SEGMENT_ROUTING: Purpose = purpose("segment_routing", "segment routing");
const SITE_LOCAL: Purpose = purpose("site_local", "site-local");
const TEREDO: Purpose = purpose("teredo", "Teredo");
const ORCHID: Purpose = purpose("orchid", "ORCHID identifiers");
const SIX_TO_FOUR: Purpose = purpose("6to4", "6to4");
const SIX_BONE: Purpose = purpose("6bone", "6bone");
const NOT_GLOBAL_UNICAST: Purpose = purpose("not_global_unicast", "not global unicast");

/// Every range, narrow ones first.
pub const RANGES: &[Range] = &[
    // Answered by the machine's own cloud, although the address looks like another kind.
    v4([169, 254, 169, 254], 32, METADATA, "RFC 3927, clouds"),
    v4([168, 63, 129, 16], 32, METADATA, "Azure"),
    v4(
        [100, 100, 100, 200],
        32,
        METADATA,
        "RFC 6598, Alibaba Cloud",
    ),
    v4([192, 0, 0, 192], 32, METADATA, "RFC 6890, Oracle Cloud"),
    v6_whole(
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254],
        128,
        METADATA,
        "RFC 4193, AWS",
    ),
    // IPv4
    v4([0, 0, 0, 0], 8, THIS_NETWORK, "RFC 1122 §3.2.1.3"),
    v4([10, 0, 0, 0], 8, PRIVATE, "RFC 1918"),
    v4([100, 64, 0, 0], 10, CARRIER_GRADE_NAT, "RFC 6598"),
    v4([127, 0, 0, 0], 8, LOOPBACK, "RFC 1122 §3.2.1.3"),
    v4([169, 254, 0, 0], 16, LINK_LOCAL, "RFC 3927"),
    v4([172, 16, 0, 0], 12, PRIVATE, "RFC 1918"),
    v4([192, 0, 0, 0], 24, IETF_PROTOCOL_ASSIGNMENTS, "RFC 6890"),
    v4([192, 0, 2, 0], 24, DOCUMENTATION, "RFC 5737"),
    v4([192, 31, 196, 0], 24, AS112, "RFC 7535"),
    v4(
        [192, 52, 193, 0],
        24,
        AUTOMATIC_MULTICAST_TUNNELING,
        "RFC 7450",
    ),
    v4([192, 88, 99, 0], 24, SIX_TO_FOUR_RELAY, "RFC 7526"),
    v4([192, 168, 0, 0], 16, PRIVATE, "RFC 1918"),
    v4([192, 175, 48, 0], 24, AS112, "RFC 7534"),
    v4([198, 18, 0, 0], 15, BENCHMARKING, "RFC 2544"),
    v4([198, 51, 100, 0], 24, DOCUMENTATION, "RFC 5737"),
    v4([203, 0, 113, 0], 24, DOCUMENTATION, "RFC 5737"),
    v4([224, 0, 0, 0], 4, MULTICAST, "RFC 5771"),
    v4([255, 255, 255, 255], 32, BROADCAST, "RFC 919"),
    v4([240, 0, 0, 0], 4, RESERVED, "RFC 1112 §4"),
    // IPv6: named ranges outside of 2000::/3
    v6_whole(
        [0, 0, 0, 0, 0, 0, 0, 0],
        128,
        UNSPECIFIED,
        "RFC 4291 §2.5.2",
    ),
    v6_whole([0, 0, 0, 0, 0, 0, 0, 1], 128, LOOPBACK, "RFC 4291 §2.5.3"),
    v6([0, 0, 0, 0], 96, IPV4_COMPATIBLE, "RFC 4291 §2.5.5.1"),
    v6_whole(
        [0, 0, 0, 0, 0, 0xffff, 0, 0],
        96,
        IPV4_MAPPED,
        "RFC 4291 §2.5.5.2",
    ),
    v6_whole(
        [0, 0, 0, 0, 0xffff, 0, 0, 0],
        96,
        IPV4_TRANSLATED,
        "RFC 2765 §2.1",
    ),
    v6([0x64, 0xff9b, 0, 0], 96, NAT64, "RFC 6052 §2.1"),
    v6([0x64, 0xff9b, 1, 0], 48, NAT64_LOCAL_USE, "RFC 8215"),
    v6([0x100, 0, 0, 0], 64, DISCARD_ONLY, "RFC 6666"),
    v6([0x100, 0, 0, 1], 64, DUMMY_PREFIX, "RFC 9780"),
    v6([0x5f00, 0, 0, 0], 16, SEGMENT_ROUTING, "RFC 9602"),
    v6([0xfc00, 0, 0, 0], 7, PRIVATE, "RFC 4193"),
    v6([0xfe80, 0, 0, 0], 10, LINK_LOCAL, "RFC 4291 §2.5.6"),
    v6([0xfec0, 0, 0, 0], 10, SITE_LOCAL, "RFC 3879"),
    v6([0xff00, 0, 0, 0], 8, MULTICAST, "RFC 4291 §2.7"),
    // ranges inside of 2000::/3
    v6([0x2001, 0, 0, 0], 32, TEREDO, "RFC 4380"),
    v6([0x2001, 2, 0, 0], 48, BENCHMARKING, "RFC 5180"),
    v6([0x2001, 0x10, 0, 0], 28, ORCHID, "RFC 4843"),
    v6([0x2001, 0x20, 0, 0], 28, ORCHID, "RFC 7343"),
    v6([0x2001, 0, 0, 0], 23, IETF_PROTOCOL_ASSIGNMENTS, "RFC 2928"),
    v6([0x2001, 0xdb8, 0, 0], 32, DOCUMENTATION, "RFC 3849"),
    v6([0x2002, 0, 0, 0], 16, SIX_TO_FOUR, "RFC 3056"),
    v6([0x2620, 0x4f, 0x8000, 0], 48, AS112, "RFC 7534"),
    v6([0x3ffe, 0, 0, 0], 16, SIX_BONE, "RFC 3701"),
    v6([0x3fff, 0, 0, 0], 20, DOCUMENTATION, "RFC 9637"),
    // the rest outside of 2000::/3, which IANA has not assigned
    v6([0, 0, 0, 0], 3, NOT_GLOBAL_UNICAST, "RFC 4291 §2.4"),
    v6([0x4000, 0, 0, 0], 2, NOT_GLOBAL_UNICAST, "RFC 4291 §2.4"),
    v6([0x8000, 0, 0, 0], 1, NOT_GLOBAL_UNICAST, "RFC 4291 §2.4"),
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
    fn purposes_have_a_snake_case_name_and_plain_words() {
        let mut texts = std::collections::BTreeMap::new();
        for Range { purpose, .. } in RANGES {
            let Purpose { name, text } = *purpose;
            let is_snake_case = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            assert!(name.bytes().all(is_snake_case), "{name}");
            assert_eq!(name, name.to_ascii_lowercase());
            assert!(!text.contains('_'), "{text}");
            assert_eq!(*texts.entry(name).or_insert(text), text, "{name}");
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
