//! The sources that connection limits apply to.
//!
//! A source is a whole IPv4 address, or the first half of an IPv6 one: one network gets a /64. A client with its own site has
//! 65,536 of those, and could appear as many clients, so its /48 is counted as well.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Limit of an IPv6 /48 as a multiple of that of a /64. If it were higher, two of them could take all slots. If it were lower,
/// mobile networks would suffer, because they put many customers into one /48.
const SITE_FACTOR: u32 = 2;

/// Prefix lengths of a network: for IPv4, and for IPv6.
const NETWORK_BITS: (u32, u32) = (24, 32);

/// The first 16 bits of a 6to4 address (RFC 3056). The IPv4 address of its owner follows.
const SIX_TO_FOUR: u16 = 0x2002;

/// The network that a client at `address` belongs to: the /24 of an IPv4 address, the /32 of an IPv6 one.
///
/// All addresses of such a network commonly belong to one party, so it counts once in collective decisions of clients (votes). A
/// registry allocates an IPv6 /32 to a provider; a customer gets a /48 or more, and could have any number of votes. An IPv6 address
/// that represents an IPv4 address (IPv4-mapped, 6to4) belongs to the network of that, because every IPv4 address has a /48 of
/// 6to4. Limits of connections use narrower prefixes, so that they do not punish neighbours.
#[must_use]
pub fn network_of(address: IpAddr) -> IpAddr {
    let (v4_bits, v6_bits) = NETWORK_BITS;
    let address = match address.to_canonical() {
        IpAddr::V6(v6) if v6.segments()[0] == SIX_TO_FOUR => {
            let [_, _, a, b, c, d, ..] = v6.octets();
            Ipv4Addr::new(a, b, c, d).into()
        }
        other => other,
    };
    match address {
        IpAddr::V4(address) => {
            Ipv4Addr::from(u32::from(address) & (u32::MAX << (32 - v4_bits))).into()
        }
        IpAddr::V6(address) => {
            Ipv6Addr::from(u128::from(address) & (u128::MAX << (128 - v6_bits))).into()
        }
    }
}

/// A source with its own limits: a prefix of an address.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Source {
    prefix: IpAddr,
    bits: u8,
}

impl Source {
    /// The sources that a connection from `address` counts for, the widest first: a client that uses many of its /64s reaches the
    /// limit of its /48 before each of them gets a record.
    pub(super) fn all(address: IpAddr) -> impl DoubleEndedIterator<Item = Self> + Clone {
        let address = address.to_canonical();
        let all: &[u8] = if address.is_ipv4() { &[32] } else { &[48, 64] };
        all.iter().map(move |&bits| Self {
            prefix: match address {
                IpAddr::V6(address) => {
                    let prefix = u128::from(address) >> (128 - bits) << (128 - bits);
                    IpAddr::V6(Ipv6Addr::from(prefix))
                }
                v4 => v4,
            },
            bits,
        })
    }

    /// The widest source of `address`.
    pub(super) fn widest(address: IpAddr) -> Self {
        let widest = Self::all(address).next();
        widest.unwrap_or_else(|| unreachable!("every address is a source"))
    }

    /// Multiple of the limits of an address that apply to it.
    pub(super) fn factor(self) -> u32 {
        if self.bits == 48 { SITE_FACTOR } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use crate::admission::source::network_of;

    #[test]
    fn a_network_is_a_24_of_ipv4_and_a_32_of_ipv6() {
        for (address, network) in [
            ("203.0.113.77", "203.0.113.0"),
            ("2001:db8:1:2::77", "2001:db8::"),
            ("2001:db8:ffff::1", "2001:db8::"),
            ("2001:db9:1::1", "2001:db9::"),
        ] {
            let [address, network] = [address, network].map(|text| text.parse().unwrap());
            assert_eq!(network_of(address), network);
        }
    }

    #[test]
    fn an_ipv6_address_that_stands_for_an_ipv4_one_is_of_its_24() {
        for (address, network) in [
            ("::ffff:203.0.113.77", "203.0.113.0"),
            ("2002:cb00:714d::1", "203.0.113.0"),
            ("2002:cb00:71ff:9::8", "203.0.113.0"),
            ("2002:cb00:7200::1", "203.0.114.0"),
        ] {
            let [address, network] = [address, network].map(|text| text.parse().unwrap());
            assert_eq!(network_of(address), network, "{address}");
        }
    }
}
