//! Sends and receives one datagram at a time over a [`DatagramSocket`], whose calls may return several.

use std::fmt;
use std::future::poll_fn;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::task::Poll;

use crate::network::{DatagramSocket, RecvMeta, Transmit};

/// Largest result of one receive call: the kernel may join datagrams of one sender (GRO).
pub const MAX_RECEIVE_BYTES: usize = 64 * 1024;

/// A UDP socket with a receive buffer. No other code may receive from the same socket.
pub struct Datagrams {
    socket: DatagramSocket,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that were already returned.
    returned: usize,
    /// The datagrams in `buffer`.
    meta: RecvMeta,
}

/// Without the received bytes.
impl fmt::Debug for Datagrams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Datagrams")
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

/// The sender of a datagram, and the address of ours that received it.
#[derive(Clone, Copy, Debug)]
pub struct DatagramPeer {
    /// The sender's address.
    pub address: SocketAddr,
    /// The local address to which it was sent, if the system reports it.
    pub to: Option<IpAddr>,
}

impl Datagrams {
    /// Uses `socket` with a receive buffer of `buffer_bytes`. The rest of a longer datagram is lost.
    #[must_use]
    pub fn new(socket: DatagramSocket, buffer_bytes: usize) -> Self {
        Self {
            socket,
            buffer: vec![0; buffer_bytes],
            returned: 0,
            meta: RecvMeta::default(),
        }
    }

    /// The next datagram that is not empty.
    ///
    /// # Errors
    ///
    /// The error of the socket.
    pub async fn receive(&mut self) -> io::Result<(&[u8], DatagramPeer)> {
        while self.returned >= self.meta.len {
            let (socket, buffer) = (&self.socket, &mut self.buffer);
            let mut received = [RecvMeta::default()];
            let receiving = poll_fn(|cx| {
                let mut buffers = [IoSliceMut::new(buffer)];
                socket.poll_recv(cx, &mut buffers, &mut received)
            });
            let calls = receiving.await?;
            let [received] = received;
            (self.returned, self.meta) = (0, received);
            if calls == 0 || received.len == 0 {
                self.returned = received.len.max(1); // skips an empty datagram
            }
        }
        let from = self.returned;
        let stride = self.meta.stride.max(1);
        let end = (from + stride).min(self.meta.len);
        self.returned = end;
        let sender = DatagramPeer {
            address: self.meta.addr,
            to: self.meta.dst_ip,
        };
        Ok((&self.buffer[from..end], sender))
    }

    /// Sends `contents` to `to`, from the address to which `to` sent its datagram.
    ///
    /// # Errors
    ///
    /// The error of the socket.
    pub async fn reply(&self, to: DatagramPeer, contents: &[u8]) -> io::Result<()> {
        self.send(to.address, to.to, contents).await
    }

    /// Sends `contents` to `destination`, from `src_ip` or the address that the system chooses.
    ///
    /// # Errors
    ///
    /// The error of the socket.
    pub async fn send(
        &self,
        destination: SocketAddr,
        src_ip: Option<IpAddr>,
        contents: &[u8],
    ) -> io::Result<()> {
        let transmit = Transmit {
            destination,
            ecn: None,
            contents,
            segment_size: None,
            src_ip,
        };
        let mut poller = self.socket.clone().create_io_poller();
        poll_fn(|cx| {
            loop {
                match self.socket.try_send(&transmit) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    done => return Poll::Ready(done),
                }
                match poller.as_mut().poll_writable(cx) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await
    }
}
