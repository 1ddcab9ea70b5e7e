//! Datagrams, and the table of UDP sockets by address.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::task::Waker;

use bytes::Bytes;

/// Bytes of the heads before a datagram's payload: 20 of IP, 8 of UDP.
const HEADERS_LEN_BYTES: usize = 20 + 8;
/// The client's address, in the benchmark block (RFC 2544), in the half that has no servers.
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 19, 255, 1));
/// First port of clients (RFC 6335 §6).
const FIRST_PORT: u16 = 49_152;

/// A datagram on its way.
pub(crate) struct Datagram {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) payload: Bytes,
}

impl Datagram {
    /// The server's address, independent of the sender.
    pub(crate) fn server(&self) -> Option<IpAddr> {
        let ends = [self.from.ip(), self.to.ip()];
        ends.into_iter().find(|ip| ip.to_canonical() != CLIENT)
    }

    /// Length with its headers. IPv6 headers count as IPv4 headers, as with TCP.
    pub(crate) fn ip_len_bytes(&self) -> usize {
        HEADERS_LEN_BYTES + self.payload.len()
    }
}

/// All sockets, by address.
#[derive(Default)]
pub(crate) struct UdpSockets {
    pub(super) bound: BTreeMap<SocketAddr, Socket>,
    clients: u16,
}

#[derive(Default)]
pub(super) struct Socket {
    pub(super) inbox: VecDeque<Datagram>,
    pub(super) reader: Option<Waker>,
}

impl UdpSockets {
    pub(crate) fn bind(&mut self, address: SocketAddr) -> io::Result<()> {
        if self.bound.contains_key(&address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        self.bound.insert(address, Socket::default());
        Ok(())
    }

    /// Binds a client's socket: at its own port, unless `local` has one.
    pub(crate) fn bind_client(&mut self, local: SocketAddr) -> io::Result<SocketAddr> {
        let port = match local.port() {
            0 => {
                let port = FIRST_PORT.checked_add(self.clients);
                let port = port.ok_or(io::ErrorKind::AddrNotAvailable)?;
                self.clients += 1;
                port
            }
            named => named,
        };
        // A QUIC endpoint sends to the address family of its socket.
        let address = match local.ip() {
            IpAddr::V4(_) => SocketAddr::new(CLIENT, port),
            IpAddr::V6(_) => SocketAddr::new(Ipv4Addr::to_ipv6_mapped(&client_v4()).into(), port),
        };
        self.bind(address)?;
        Ok(address)
    }

    /// Puts the datagram into the inbox of its socket, if there is one. Returns the waker of the task that waits for it.
    pub(crate) fn deliver(&mut self, datagram: Datagram) -> Option<Waker> {
        let socket = self.bound.get_mut(&datagram.to)?;
        socket.inbox.push_back(datagram);
        socket.reader.take()
    }
}

const fn client_v4() -> Ipv4Addr {
    match CLIENT {
        IpAddr::V4(address) => address,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binding_fails_every_time_when_all_ports_are_taken() {
        let mut sockets = UdpSockets::default();
        let anywhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        let taken = (0..=u16::MAX).filter(|_| sockets.bind_client(anywhere).is_ok());
        assert_eq!(taken.count(), 16_384);
        let refused = sockets.bind_client(anywhere).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AddrNotAvailable);
    }
}
