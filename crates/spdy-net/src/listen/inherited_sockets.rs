//! Sockets that the parent process has bound for the program: by systemd's socket units, or by a program that does the same.
//!
//! ```text
//!  parent: binds, listens ──┬─ LISTEN_FDS ─▶ the program: accepts, ends ┐
//!                           │     new connections are queued            │ no connection is refused
//!                           └─ LISTEN_FDS ─▶ its successor: accepts ◀───┘
//! ```
//!
//! The parent may be an older instance of the program itself, which the new one replaces. Then there is also a connection to it,
//! with the name [`PREDECESSOR`].
//!
//! A process that closes its listening socket also closes the connections that were not accepted yet; inherited sockets stay open
//! independent of the program. They are matched by their addresses, not by their order.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
#[cfg(unix)]
use std::os::{fd::OwnedFd, unix::net::UnixStream};

#[cfg(unix)]
use listenfd::ListenFd;

/// Name in `LISTEN_FDNAMES` of the connection to the predecessor, which is the first inherited socket.
pub const PREDECESSOR: &str = "spdy-predecessor";

/// Inherited sockets that were not taken yet.
#[derive(Debug, Default)]
pub struct InheritedSockets {
    tcp: VecDeque<(SocketAddr, TcpListener)>,
    udp: VecDeque<(SocketAddr, UdpSocket)>,
    #[cfg(unix)]
    predecessor: Option<UnixStream>,
}

impl InheritedSockets {
    /// Takes the sockets of this process by `LISTEN_FDS`, and `LISTEN_PID` if that is set (sd_listen_fds(3)). Removes the
    /// variables, so that child processes do not get them. To be called before there are threads, because the environment is
    /// shared.
    ///
    /// # Errors
    ///
    /// A socket is neither a listening TCP socket nor a UDP socket.
    #[cfg(unix)]
    pub fn from_env() -> io::Result<Self> {
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut all = ListenFd::from_env();
        let mut handed = Self::default();
        if names.split(':').next() == Some(PREDECESSOR) {
            let line = all.take_unix_listener(0)?; // accepts any Unix stream socket
            handed.predecessor = line.map(|line| OwnedFd::from(line).into());
        }
        for nth in usize::from(handed.predecessor.is_some())..all.len() {
            if let Ok(Some(listener)) = all.take_tcp_listener(nth) {
                handed.tcp.push_back((listener.local_addr()?, listener));
            } else if let Some(socket) = all.take_udp_socket(nth)? {
                handed.udp.push_back((socket.local_addr()?, socket));
            }
        }
        Ok(handed)
    }

    /// Always empty: only Unix has inherited sockets.
    ///
    /// # Errors
    ///
    /// None.
    #[cfg(not(unix))]
    pub fn from_env() -> io::Result<Self> {
        Ok(Self::default())
    }

    /// The listening socket for `address`.
    pub fn tcp(&mut self, address: SocketAddr) -> Option<TcpListener> {
        let nth = self.tcp.iter().position(|(at, _)| *at == address)?;
        Some(self.tcp.remove(nth)?.1)
    }

    /// The UDP socket for `address`.
    pub fn udp(&mut self, address: SocketAddr) -> Option<UdpSocket> {
        let nth = self.udp.iter().position(|(at, _)| *at == address)?;
        Some(self.udp.remove(nth)?.1)
    }

    /// The connection to the predecessor, if the program was started to replace it.
    #[cfg(unix)]
    pub fn predecessor(&mut self) -> Option<UnixStream> {
        self.predecessor.take()
    }

    /// Addresses of the sockets that were not used.
    pub fn left(&self) -> impl Iterator<Item = SocketAddr> {
        let tcp = self.tcp.iter().map(|(at, _)| *at);
        tcp.chain(self.udp.iter().map(|(at, _)| *at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_found_by_its_address_and_kind_and_taken_once() {
        let here = ("127.0.0.1", 0);
        let listener = TcpListener::bind(here).expect("loopback has a free port");
        let socket = UdpSocket::bind(here).expect("loopback has a free port");
        let at = (listener.local_addr(), socket.local_addr());
        let (tcp, udp) = (at.0.expect("it is bound"), at.1.expect("it is bound"));
        let mut handed = InheritedSockets {
            tcp: [(tcp, listener)].into(),
            udp: [(udp, socket)].into(),
            ..InheritedSockets::default()
        };
        assert_eq!(handed.left().collect::<Vec<_>>(), [tcp, udp]);
        if tcp != udp {
            assert!(handed.udp(tcp).is_none() && handed.tcp(udp).is_none());
        }
        assert!(handed.tcp(tcp).is_some() && handed.tcp(tcp).is_none());
        assert!(handed.udp(udp).is_some() && handed.udp(udp).is_none());
        assert_eq!(handed.left().count(), 0);
    }
}
