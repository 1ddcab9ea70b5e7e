//! UDP in virtual time: sockets that send datagrams over the path and receive them.
//!
//! ```text
//!   try_send ─► SimNetwork: IP 20 + UDP 8 + payload ─► Path ─► the inbox of the address ─► poll_recv
//!                                                        └ lost, or no socket is bound there: dropped
//! ```
//!
//! A socket accepts every datagram and never blocks. The queue of a link drops packets that exceed its rate, as a router would. There
//! are no congestion marks (ECN). A packet that is larger than an Ethernet frame does not arrive.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use spdy_net::network::{AsyncUdpSocket, RecvMeta, Transmit, UdpPoller};
use spdy_netem::path::Direction;

use crate::network::datagram::Datagram;
use crate::network::packet_network::PacketNetwork;

/// The largest IP packet.
const MTU_BYTES: usize = 1500;

/// A UDP socket in virtual time.
pub(crate) struct SimUdp {
    network: Arc<PacketNetwork>,
    address: SocketAddr,
    outward: Direction,
}

impl SimUdp {
    pub(crate) fn new(
        network: Arc<PacketNetwork>,
        address: SocketAddr,
        outward: Direction,
    ) -> Self {
        Self {
            network,
            address,
            outward,
        }
    }
}

impl fmt::Debug for SimUdp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimUdp({})", self.address)
    }
}

impl Drop for SimUdp {
    fn drop(&mut self) {
        let gone = self
            .network
            .sockets(|sockets| sockets.bound.remove(&self.address));
        drop(gone); // not under the lock: a waker may be the last handle of its task
    }
}

impl AsyncUdpSocket for SimUdp {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(AlwaysWritable)
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let segment = transmit.segment_size.unwrap_or(transmit.contents.len());
        for payload in transmit.contents.chunks(segment.max(1)) {
            let datagram = Datagram {
                from: self.address,
                to: transmit.destination,
                payload: Bytes::copy_from_slice(payload),
            };
            if datagram.ip_len_bytes() <= MTU_BYTES {
                self.network.send_datagram(self.outward, datagram);
            }
        }
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.network.sockets(|sockets| {
            let Some(socket) = sockets.bound.get_mut(&self.address) else {
                panic!("{self:?} reads after it was closed");
            };
            let mut filled = 0;
            for (buf, meta) in bufs.iter_mut().zip(meta) {
                let Some(Datagram { from, payload, .. }) = socket.inbox.pop_front() else {
                    break;
                };
                // A datagram longer than the buffer is cut, as systems do.
                let len = payload.len().min(buf.len());
                buf[..len].copy_from_slice(&payload[..len]);
                *meta = RecvMeta {
                    addr: from,
                    len,
                    stride: len,
                    ecn: None,
                    dst_ip: None,
                };
                filled += 1;
            }
            if filled > 0 {
                return Poll::Ready(Ok(filled));
            }
            socket.reader = Some(cx.waker().clone());
            Poll::Pending
        })
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }

    fn may_fragment(&self) -> bool {
        false
    }
}

/// A send never blocks.
#[derive(Debug)]
struct AlwaysWritable;

impl UdpPoller for AlwaysWritable {
    fn poll_writable(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
