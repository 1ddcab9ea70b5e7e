//! Decides which addresses and ports an origin may have: only public ones, unless configured otherwise.
//!
//! A client that can make us fetch a name can make us fetch what that name points at: our own loopback, the network
//! behind us, a cloud's metadata. Names can change their addresses, so the check is on addresses, each time one is
//! about to be used.
//!
//! ```text
//!  address ──▶ canonical ──▶ in `deny`?  ──▶ in `allow`? ──▶ in a row of special_ranges.rs? ──▶ allowed
//!              v4-mapped         │ yes          │ yes            │ yes
//!              is IPv4           ▼              ▼                ▼
//!                              denied        allowed           denied
//!  NAT64, 6to4, Teredo and similar: the embedded IPv4 address is checked first, by the same steps
//! ```
//!
//! An address that embeds another is allowed only if the inner address is: allowing `64:ff9b::/96` allows no private network behind it.
//! Machines without IPv4 reach IPv4 hosts through NAT64 (RFC 6146), so the NAT64 addresses of public hosts are allowed. The other
//! forms are obsolete, and the table denies them.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::{IpNet, Ipv6Net};

use crate::origin_host::{self, HostError};
use crate::own_listeners::OwnListeners;
use crate::special_ranges::Range;

/// Default ports of origins: HTTPS and HTTP.
pub const DEFAULT_PORTS: [u16; 2] = [443, 80];
/// NAT64's well-known prefix (RFC 6052 §2.1).
const WELL_KNOWN_NAT64: Ipv6Net =
    Ipv6Net::new_assert(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// The addresses and ports that origins may have. Default: any global unicast address, on 443 and 80.
#[derive(Clone, Debug)]
pub struct AddressRules {
    /// Ranges that are allowed although the table denies them, for labs and for origins in a private network. If there
    /// are any, a `GuardedNetwork` logs a warning.
    pub allow: Vec<IpNet>,
    /// Ranges that are denied in addition; stronger than `allow`.
    pub deny: Vec<IpNet>,
    /// Ports that may be connected to. Default [`DEFAULT_PORTS`].
    pub ports: BTreeSet<u16>,
    /// Our own listening addresses: never an origin, even if `allow` has them.
    pub own: OwnListeners,
    /// Prefixes of NAT64 in the operator's network besides the well-known one (RFC 6052 §2.2). Prefixes of other lengths than 32, 40, 48,
    /// 56, 64 or 96 bits have no effect. An address under a prefix that is missing here counts as global, and can lead to any IPv4 address.
    pub nat64: Vec<Ipv6Net>,
    /// Hosts, in lower case, that may be looked up although they are single labels or under a special name, as
    /// `backend` or `cache.internal`.
    pub hosts: BTreeSet<String>,
}

impl Default for AddressRules {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            deny: Vec::new(),
            ports: DEFAULT_PORTS.into(),
            own: OwnListeners::default(),
            nat64: Vec::new(),
            hosts: BTreeSet::new(),
        }
    }
}

/// An address that no origin may have, and why.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DeniedAddress {
    /// The address as it was found.
    pub address: IpAddr,
    /// The embedded IPv4 address, if it is the address that is denied.
    pub embedded_ipv4: Option<Ipv4Addr>,
    /// What denies it.
    pub by: Denial,
}

/// What denies an address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Denial {
    /// A row of the table.
    Range(&'static Range),
    /// The operator, who listed it.
    Listed(IpNet),
}

impl DeniedAddress {
    /// The reason for metrics and logs: the name of the range's purpose, or `deny_list`.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self.by {
            Denial::Range(range) => range.purpose.name,
            Denial::Listed(_) => "deny_list",
        }
    }
}

impl std::fmt::Display for DeniedAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "address {} is denied", self.address)?;
        if let Some(inside) = self.embedded_ipv4 {
            write!(f, " because it contains {inside}")?;
        }
        match self.by {
            Denial::Range(Range {
                net,
                purpose,
                source,
            }) => write!(f, ": {}, {net} ({source})", purpose.text),
            Denial::Listed(net) => write!(f, ": {net} is in the list of denied addresses"),
        }
    }
}

impl std::error::Error for DeniedAddress {}

/// Why an origin is not connected to.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum OriginDenial {
    /// The host is not a name that is looked up.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The address is not public.
    #[error(transparent)]
    Address(#[from] DeniedAddress),
    /// The port is not one of those that are listed.
    #[error("port {0} is not allowed for origins")]
    Port(u16),
    /// The address is one of our own listeners.
    #[error("{0} is a listener of this program: the request would loop")]
    Own(SocketAddr),
}

impl OriginDenial {
    /// The reason for metrics and logs, in snake case.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Host(refused) => refused.reason(),
            Self::Address(denied) => denied.reason(),
            Self::Port(_) => "port",
            Self::Own(_) => "own_listener",
        }
    }
}

impl OriginDenial {
    /// The key of the configuration that allows it; `None` if nothing does.
    #[must_use]
    pub fn allowed_by(&self) -> Option<&'static str> {
        match self {
            Self::Host(HostError::NoDot(_) | HostError::Special { .. }) => {
                Some("upstream.allow_hosts")
            }
            Self::Address(DeniedAddress {
                by: Denial::Range(_),
                ..
            }) => Some("upstream.allow_addresses"),
            Self::Port(_) => Some("upstream.allow_ports"),
            Self::Host(_) | Self::Address(_) | Self::Own(_) => None,
        }
    }
}

impl AddressRules {
    /// Whether `host` may be looked up at all.
    ///
    /// # Errors
    ///
    /// `host` is not a name, or it is a name with another meaning on every machine: see [`HostError`].
    pub fn check_host(&self, host: &str) -> Result<(), HostError> {
        match origin_host::check(host) {
            Err(HostError::NoDot(_) | HostError::Special { .. })
                if self.hosts.contains(&host.to_ascii_lowercase()) =>
            {
                Ok(())
            }
            checked => checked,
        }
    }

    /// Whether an origin may have `address`.
    ///
    /// # Errors
    ///
    /// The reason, if it may not.
    pub fn check(&self, address: IpAddr) -> Result<(), DeniedAddress> {
        let canonical = address.to_canonical();
        let denied = |inside, by| DeniedAddress {
            address,
            embedded_ipv4: inside,
            by,
        };
        let inside = match canonical {
            IpAddr::V6(wrapping) => self.embedded(wrapping),
            IpAddr::V4(_) => None,
        };
        if let Some((inner, _)) = inside {
            self.classify(IpAddr::V4(inner))
                .map_err(|by| denied(Some(inner), by))?;
        }
        match self.classify(canonical) {
            // The wrapped address was already checked, and NAT64 only leads to it.
            Err(Denial::Range(_)) if inside.is_some_and(|(_, nat64)| nat64) => Ok(()),
            judged => judged.map_err(|by| {
                let mapped = address != canonical;
                let inside = match canonical {
                    IpAddr::V4(inner) if mapped => Some(inner),
                    _ => None,
                };
                denied(inside, by)
            }),
        }
    }

    /// Whether an origin may be connected to at `to`.
    ///
    /// # Errors
    ///
    /// `to` is one of our own listeners, or its port or its address is not allowed.
    pub fn check_target(&self, to: SocketAddr) -> Result<(), OriginDenial> {
        if self.own.contains(to) {
            return Err(OriginDenial::Own(to));
        }
        if !self.ports.contains(&to.port()) {
            return Err(OriginDenial::Port(to.port()));
        }
        Ok(self.check(to.ip())?)
    }

    fn classify(&self, address: IpAddr) -> Result<(), Denial> {
        let holds = |nets: &[IpNet]| nets.iter().find(|net| net.contains(&address)).copied();
        if let Some(listed) = holds(&self.deny) {
            return Err(Denial::Listed(listed));
        }
        if holds(&self.allow).is_some() {
            return Ok(());
        }
        Range::of(address).map_or(Ok(()), |range| Err(Denial::Range(range)))
    }

    /// The IPv4 address that packets to `address` may end at, and whether they get there by NAT64.
    fn embedded(&self, address: Ipv6Addr) -> Option<(Ipv4Addr, bool)> {
        let nat64 = self.nat64.iter().chain([&WELL_KNOWN_NAT64]);
        for prefix in nat64.filter(|prefix| prefix.contains(&address)) {
            if let Some(inner) = embedded(address, prefix.prefix_len()) {
                return Some((inner, true));
            }
        }
        let octets = address.octets();
        let at = |first: usize| {
            let mut inner = [0; 4];
            inner.copy_from_slice(&octets[first..first + 4]);
            Ipv4Addr::from(inner)
        };
        match address.segments() {
            // the client's own address, with all bits inverted (RFC 4380 §4)
            [0x2001, 0, ..] => Some((Ipv4Addr::from(!u32::from(at(12))), false)),
            [0x2002, ..] => Some((at(2), false)),
            [0, 0, 0, 0, 0xffff, 0, ..] | [0x64, 0xff9b, 1, ..] => Some((at(12), false)),
            // `::` and `::1` are not of that form
            [0, 0, 0, 0, 0, 0, high, _] if high != 0 => Some((at(12), false)),
            // ISATAP, under any prefix (RFC 5214 §6.1)
            [_, _, _, _, 0 | 0x200, 0x5efe, ..] => Some((at(12), false)),
            _ => None,
        }
    }
}

/// Whether `prefix` has a length that NAT64 allows (RFC 6052 §2.2).
#[must_use]
pub fn is_nat64(prefix: Ipv6Net) -> bool {
    matches!(prefix.prefix_len(), 32 | 40 | 48 | 56 | 64 | 96)
}

/// The IPv4 address after a prefix of `bits` bits, without the octet of bits 64 to 71 (RFC 6052 §2.2).
fn embedded(address: Ipv6Addr, bits: u8) -> Option<Ipv4Addr> {
    let first = match bits {
        32 | 40 | 48 | 56 | 64 | 96 => usize::from(bits / 8),
        _ => return None,
    };
    let octets = address.octets();
    let mut behind = (first..16)
        .filter(|&octet| octet != 8)
        .map(|octet| octets[octet]);
    let inner = std::array::from_fn::<u8, 4, _>(|_| behind.next().unwrap_or_default());
    Some(Ipv4Addr::from(inner))
}
