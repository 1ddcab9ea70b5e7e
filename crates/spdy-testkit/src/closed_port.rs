//! A port of loopback without a listener. A port that was only found free may be bound next by another test.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use socket2::{Domain, Socket, Type};

/// A port that is bound but not listening, so that connections to it are refused, while this value exists.
#[derive(Debug)]
pub struct ClosedPort {
    socket: Socket,
    /// Where it is.
    pub address: SocketAddr,
}

impl ClosedPort {
    /// Takes any.
    ///
    /// # Panics
    ///
    /// If loopback has none left.
    #[must_use]
    pub fn take() -> Self {
        let socket =
            Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket can be created");
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        socket.bind(&any.into()).expect("loopback has a free port");
        let address = socket
            .local_addr()
            .expect("the socket is bound")
            .as_socket();
        Self {
            socket,
            address: address.expect("the socket is bound to an IPv4 address"),
        }
    }

    /// Reserves a port until the program ends.
    #[must_use]
    pub fn leak() -> SocketAddr {
        let port = Self::take();
        let address = port.address;
        std::mem::forget(port);
        address
    }

    /// Opens it.
    ///
    /// # Panics
    ///
    /// If the system does not let it.
    #[must_use]
    pub fn open(self) -> TcpListener {
        self.socket.listen(128).expect("the socket is bound");
        self.socket.into()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn it_refuses_until_it_is_open() {
        let port = ClosedPort::take();
        let address = port.address;
        assert!(TcpStream::connect(address).is_err());
        let _open = port.open();
        assert!(TcpStream::connect(address).is_ok());
    }
}
