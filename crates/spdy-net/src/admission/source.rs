//! Whom the limits of a door are for.
//!
//! An address is a whole IPv4 address, or the first half of an IPv6 one: /64 is what one network gets. Who has a
//! site of his own has 65,536 of those, and could be as many clients: so the /48 around it is counted as well.

use std::net::{IpAddr, Ipv6Addr};

/// How many times what one /64 of IPv6 may have its /48 may have. Not more, or two of them would fill the house;
/// not less, for a mobile network puts many customers into one.
const SITE_FACTOR: u32 = 2;

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
