//! Sockets that the starter of the program bound for it: systemd's socket units, or a program that does the same.
//!
//! ```text
//!  starter: binds, listens ─┬─ LISTEN_FDS ─▶ the program: accepts, ends ┐
//!                           │     connections that come now wait        │ no connection is refused
//!                           └─ LISTEN_FDS ─▶ its successor: accepts ◀───┘
//! ```
//!
//! The starter may be the program itself, which another is to follow. Then there is also a connection to it, by the
//! name [`PREDECESSOR`].
//!
//! A process that closes its socket also closes the connections that were not accepted yet; these sockets stay open
//! beside the program. They are matched by their addresses, not by the order in which they came.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
#[cfg(unix)]
use std::os::{fd::OwnedFd, unix::net::UnixStream};

#[cfg(unix)]
use listenfd::ListenFd;

/// Name in `LISTEN_FDNAMES` of the connection to the predecessor, which is the first of all that are handed over.
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
    /// Those of this process by `LISTEN_FDS`, and `LISTEN_PID` if that is there (sd_listen_fds(3)). What it starts
    /// itself does not see them. To be called before there are threads: the environment is theirs, too.
    ///
    /// # Errors
    ///
    /// One is no socket of TCP that listens, and none of UDP.
    #[cfg(unix)]
    pub fn from_env() -> io::Result<Self> {
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut all = ListenFd::from_env();
        let mut handed = Self::default();
        if names.split(':').next() == Some(PREDECESSOR) {
            let line = all.take_unix_listener(0)?; // any stream of Unix is one to it
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

    /// None: only Unix has such.
    ///
    /// # Errors
    ///
    /// None.
    #[cfg(not(unix))]
    pub fn from_env() -> io::Result<Self> {
        Ok(Self::default())
    }

    /// The one that takes connections at `address`.
    pub fn tcp(&mut self, address: SocketAddr) -> Option<TcpListener> {
        let nth = self.tcp.iter().position(|(at, _)| *at == address)?;
        Some(self.tcp.remove(nth)?.1)
    }

    /// The one for datagrams to `address`.
    pub fn udp(&mut self, address: SocketAddr) -> Option<UdpSocket> {
        let nth = self.udp.iter().position(|(at, _)| *at == address)?;
        Some(self.udp.remove(nth)?.1)
    }

    /// The line to the program that started this one to follow it, if one did.
    #[cfg(unix)]
    pub fn predecessor(&mut self) -> Option<UnixStream> {
        self.predecessor.take()
    }

    /// Addresses of the sockets that were not taken.
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
