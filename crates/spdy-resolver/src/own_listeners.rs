//! The addresses that this server listens on. No origin may be one of them, or a request would return to us.

use std::net::{IpAddr, SocketAddr};

/// Our listeners, and the addresses of this machine.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct OwnListeners {
    listeners: Vec<SocketAddr>,
    addresses: Vec<IpAddr>,
}

impl OwnListeners {
    /// `listeners` as they are bound, and the addresses of the `machine`'s interfaces. A listener at an unspecified address is reached at
    /// every loopback address and at each address of `machine`: `0.0.0.0` at those of IPv4, `::` at all.
    #[must_use]
    pub fn new(listeners: Vec<SocketAddr>, machine: Vec<IpAddr>) -> Self {
        Self {
            listeners,
            addresses: machine,
        }
    }

    /// Whether a connection to `to` reaches one of them.
    #[must_use]
    pub fn contains(&self, to: SocketAddr) -> bool {
        let address = to.ip().to_canonical();
        // `0.0.0.0` itself is connected to as loopback.
        let is_here = || {
            let mut machine = self.addresses.iter().map(IpAddr::to_canonical);
            address.is_loopback() || address.is_unspecified() || machine.any(|one| one == address)
        };
        self.listeners.iter().any(|listener| {
            let listens = listener.ip().to_canonical();
            let takes = listens.is_unspecified() && (listens.is_ipv6() || address.is_ipv4());
            let reaches = listens == address || (takes && is_here());
            listener.port() == to.port() && reaches
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_everywhere_is_at_each_address_of_the_machine() {
        let own = OwnListeners::new(
            vec![
                "0.0.0.0:8443".parse().unwrap(),
                "[::]:8444".parse().unwrap(),
                "192.0.2.1:80".parse().unwrap(),
            ],
            vec![
                "198.51.100.9".parse().unwrap(),
                "2001:db8::9".parse().unwrap(),
            ],
        );
        for (to, is_ours) in [
            ("127.0.0.1:8443", true),
            ("127.9.9.9:8443", true),
            ("[::1]:8443", false),
            ("[::1]:8444", true),
            ("127.0.0.1:8444", true),
            ("198.51.100.9:8444", true),
            ("0.0.0.0:8443", true),
            ("198.51.100.9:8443", true),
            ("[::ffff:198.51.100.9]:8443", true),
            ("[2001:db8::9]:8443", false),
            ("[2001:db8::9]:8444", true),
            ("198.51.100.9:443", false),
            ("198.51.100.8:8443", false),
            ("192.0.2.1:80", true),
            // This listener is reached at its own address only.
            ("127.0.0.1:80", false),
            ("198.51.100.9:80", false),
        ] {
            assert_eq!(own.contains(to.parse().unwrap()), is_ours, "{to}");
        }
    }
}
