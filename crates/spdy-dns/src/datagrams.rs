//! One datagram at a time out of a [`DatagramSocket`], whose calls bring several.

use std::future::poll_fn;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::task::Poll;

use spdy_net::network::{DatagramSocket, RecvMeta, Transmit};

/// The most that one call brings: the kernel may join datagrams of one sender (GRO).
pub(crate) const MAX_RECEIVE_BYTES: usize = 64 * 1024;

/// A socket that is received from here alone.
pub(crate) struct Datagrams {
    socket: DatagramSocket,
    room: Vec<u8>,
    /// What was brought and not yet taken: from where on, and of what.
    taken: usize,
    meta: RecvMeta,
}

/// The sender of a datagram, and which of our addresses it was sent to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DatagramPeer {
    pub(crate) address: SocketAddr,
    pub(crate) to: Option<IpAddr>,
}

impl Datagrams {
    /// With room for `room` bytes a call; what does not fit is lost.
    pub(crate) fn new(socket: DatagramSocket, room: usize) -> Self {
        Self {
            socket,
            room: vec![0; room],
            taken: 0,
            meta: RecvMeta::default(),
        }
    }

    /// The next datagram.
    pub(crate) async fn receive(&mut self) -> io::Result<(&[u8], DatagramPeer)> {
        while self.taken >= self.meta.len {
            let (socket, room) = (&self.socket, &mut self.room);
            let mut brought = [RecvMeta::default()];
            let receiving = poll_fn(|cx| {
                let mut room = [IoSliceMut::new(room)];
                socket.poll_recv(cx, &mut room, &mut brought)
            });
            let calls = receiving.await?;
            let [brought] = brought;
            (self.taken, self.meta) = (0, brought);
            if calls == 0 || brought.len == 0 {
                self.taken = brought.len.max(1); // an empty one is nothing
            }
        }
        let from = self.taken;
        let stride = self.meta.stride.max(1);
        let end = (from + stride).min(self.meta.len);
        self.taken = end;
        let sender = DatagramPeer {
            address: self.meta.addr,
            to: self.meta.dst_ip,
        };
        Ok((&self.room[from..end], sender))
    }

    /// Sends `contents` back, from the address that was sent to.
    pub(crate) async fn reply(&self, to: DatagramPeer, contents: &[u8]) -> io::Result<()> {
        self.send(to.address, to.to, contents).await
    }

    pub(crate) async fn send(
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
