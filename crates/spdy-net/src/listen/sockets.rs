//! The listening sockets of a program: inherited ones, new ones for other addresses, and copies of all for its successor
//! (`LISTEN_FDS` again, sd_listen_fds(3)).

use spdy_net_core::network::SystemNetwork;
use std::io;
use std::net::{SocketAddr, UdpSocket};
#[cfg(unix)]
use std::os::fd::OwnedFd;

use crate::listen::Listener;
use crate::listen::inherited_sockets::InheritedSockets;

/// Attempts to get a TCP port from the system that is also free for UDP.
const PORT_TRIES: usize = 20;

/// Uses inherited sockets and binds others. All of them stay open until this is dropped.
#[derive(Debug, Default)]
pub struct Sockets {
    inherited: InheritedSockets,
    #[cfg(unix)]
    copies: Vec<OwnedFd>,
}

impl Sockets {
    /// Uses the inherited sockets `handed` first.
    #[must_use]
    pub fn new(handed: InheritedSockets) -> Self {
        Self {
            inherited: handed,
            ..Self::default()
        }
    }

    /// A TCP listener at `address`; port 0 lets the system choose. To be called in a tokio runtime.
    ///
    /// # Errors
    ///
    /// The address is in use, not local, or not permitted.
    pub fn tcp(&mut self, address: SocketAddr) -> io::Result<Listener> {
        let listener = match self.inherited.tcp(address) {
            None => Listener::bind(address)?,
            Some(socket) => Listener::over(socket)?,
        };
        #[cfg(unix)]
        self.copies.push(listener.try_clone_fd()?);
        Ok(listener)
    }

    /// A UDP socket at `address`: an inherited one, or a new one.
    ///
    /// # Errors
    ///
    /// As in [`tcp`](Self::tcp).
    pub fn udp(&mut self, address: SocketAddr) -> io::Result<UdpSocket> {
        let socket = match self.inherited.udp(address) {
            None => SystemNetwork::bind_datagrams(address)?,
            Some(socket) => socket,
        };
        #[cfg(unix)]
        self.copies.push(socket.try_clone()?.into());
        Ok(socket)
    }

    /// A TCP and a UDP socket at the same `address`; port 0 lets the system choose one that is free for both. To be called in a
    /// tokio runtime.
    ///
    /// # Errors
    ///
    /// As in [`tcp`](Self::tcp).
    pub fn tcp_and_udp(&mut self, address: SocketAddr) -> io::Result<(Listener, UdpSocket)> {
        let mut tries = if address.port() == 0 { PORT_TRIES } else { 1 };
        loop {
            #[cfg(unix)]
            let before = self.copies.len();
            let listener = self.tcp(address)?;
            match self.udp(listener.address()) {
                Ok(socket) => return Ok((listener, socket)),
                Err(error) => {
                    // Otherwise its copy would accept connections that no task serves.
                    #[cfg(unix)]
                    self.copies.truncate(before);
                    tries -= 1;
                    if tries == 0 {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Closes the inherited sockets that were not used, and returns their addresses. Left open, they would accept connections that
    /// no task serves.
    pub fn close_unused(&mut self) -> Vec<SocketAddr> {
        std::mem::take(&mut self.inherited).left().collect()
    }

    /// Copies of all used or bound sockets.
    ///
    /// # Errors
    ///
    /// The system has no free descriptors.
    #[cfg(unix)]
    pub fn copies(&self) -> io::Result<Vec<OwnedFd>> {
        self.copies.iter().map(OwnedFd::try_clone).collect()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn if_udp_cannot_bind_the_tcp_socket_is_closed() {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let taken = UdpSocket::bind(here).expect("loopback has a free port");
        let at = taken.local_addr().expect("it is bound");
        let mut sockets = Sockets::default();
        sockets.tcp_and_udp(at).expect_err("the UDP port is in use");
        TcpListener::bind(at).expect("the port is free");
        drop(taken);
        let (listener, datagrams) = sockets.tcp_and_udp(at).expect("both are free");
        assert_eq!(listener.address(), at);
        assert_eq!(datagrams.local_addr().ok(), Some(at));
        assert_eq!(
            sockets.copies().expect("descriptors are available").len(),
            2
        );
    }

    #[tokio::test]
    async fn the_copy_of_a_socket_stays_open() {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut sockets = Sockets::default();
        let listener = sockets.tcp(here).expect("loopback has a free port");
        let datagrams = sockets.udp(here).expect("loopback has a free port");
        let at = (listener.address(), datagrams.local_addr());
        drop((listener, datagrams));
        let copies = sockets.copies().expect("descriptors are available");
        drop(sockets);
        let mut copies = copies.into_iter();
        let copied = copies.next().map(TcpListener::from);
        assert!(TcpListener::bind(at.0).is_err(), "the socket is still open");
        assert_eq!(copied.and_then(|it| it.local_addr().ok()), Some(at.0));
        let copied = copies.next().map(UdpSocket::from);
        assert_eq!(
            copied.and_then(|it| it.local_addr().ok()),
            at.1.ok(),
            "the second socket is UDP"
        );
    }
}
