//! Whom the limits of a door are for.
//!
//! An address is a whole IPv4 address, or the first half of an IPv6 one: /64 is what one network gets. Who has a
//! site of his own has 65,536 of those, and could be as many clients: so the /48 around it is counted as well.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How many times what one /64 of IPv6 may have its /48 may have. Not more, or two of them would fill the house;
/// not less, for a mobile network puts many customers into one.
const SITE_FACTOR: u32 = 2;

/// Bits of an IPv4 address, and of an IPv6 address, that are one network.
const NETWORK_BITS: (u32, u32) = (24, 48);

/// The network that a client at `address` belongs to: the /24 of an IPv4 address, the /48 of an IPv6 one.
///
/// One party commonly has all addresses of such a network, so what clients may decide together (votes) counts it once.
/// Limits of connections are narrower: they must not punish neighbours.
#[must_use]
pub fn network_of(address: IpAddr) -> IpAddr {
    let (v4_bits, v6_bits) = NETWORK_BITS;
    match address.to_canonical() {
        IpAddr::V4(address) => {
            Ipv4Addr::from(u32::from(address) & (u32::MAX << (32 - v4_bits))).into()
        }
        IpAddr::V6(address) => {
            Ipv6Addr::from(u128::from(address) & (u128::MAX << (128 - v6_bits))).into()
        }
    }
}

/// Whom limits are for: as many bits of an address as he has.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Source {
    prefix: IpAddr,
    bits: u8,
}

impl Source {
    /// Those that a connection from `address` counts for, the widest first: who sweeps his /64s meets the limit of
    /// his /48 before each of them is remembered.
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

    /// The widest of them.
    pub(super) fn widest(address: IpAddr) -> Self {
        let widest = Self::all(address).next();
        widest.unwrap_or_else(|| unreachable!("every address counts for itself"))
    }

    /// How many times what an address may have it may have.
    pub(super) fn factor(self) -> u32 {
        if self.bits == 48 { SITE_FACTOR } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::network_of;

    #[test]
    fn a_network_is_a_24_of_ipv4_and_a_48_of_ipv6() {
        for (address, network) in [
            ("203.0.113.77", "203.0.113.0"),
            ("::ffff:203.0.113.77", "203.0.113.0"),
            ("2001:db8:1:2::77", "2001:db8:1::"),
        ] {
            let [address, network] = [address, network].map(|text| text.parse().unwrap());
            assert_eq!(network_of(address), network);
        }
    }
}
