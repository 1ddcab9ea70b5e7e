//! UDP in virtual time: sockets that send datagrams over the path, and find those that arrived.
//!
//! ```text
//!   try_send ─► SimNetwork: IP 20 + UDP 8 + payload ─► Path ─► the inbox of the address ─► poll_recv
//!                                                        └ lost, or nobody is bound there: gone without a word
//! ```
//!
//! A socket takes what it is given and never says that it is full: what a link cannot carry, its queue drops, as a
//! router would. There is no congestion mark (ECN). A packet larger than an Ethernet frame bears does not arrive.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use spdy_net::network::{AsyncUdpSocket, RecvMeta, Transmit, UdpPoller};
use spdy_netem::path::Direction;

use crate::sim::carrier::PacketNetwork;
use crate::sim::endpoint::wake;

/// Bytes of the heads before a datagram's payload: 20 of IP, 8 of UDP.
const HEADERS_LEN_BYTES: usize = 20 + 8;
/// The largest IP packet.
const MTU_BYTES: usize = 1500;
/// The client's address, in the block for benchmarks (RFC 2544), in the half that no server is given.
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 19, 255, 1));
/// Ports of clients begin here (RFC 6335 §6).
const FIRST_PORT: u16 = 49_152;

/// A datagram on its way.
pub(crate) struct Datagram {
    from: SocketAddr,
    to: SocketAddr,
    payload: Bytes,
}

impl Datagram {
    /// The server's address, whichever end sent it.
    pub(crate) fn server(&self) -> Option<IpAddr> {
        let ends = [self.from.ip(), self.to.ip()];
        ends.into_iter().find(|ip| ip.to_canonical() != CLIENT)
    }

    /// With its heads. Those of IPv6 are not counted, as with TCP.
    pub(crate) fn ip_len_bytes(&self) -> usize {
        HEADERS_LEN_BYTES + self.payload.len()
    }
}

/// All sockets, by address.
#[derive(Default)]
pub(crate) struct UdpSockets {
    bound: BTreeMap<SocketAddr, Socket>,
    clients: u16,
}

#[derive(Default)]
struct Socket {
    inbox: VecDeque<Datagram>,
    reader: Option<Waker>,
}

impl UdpSockets {
    pub(crate) fn bind(&mut self, address: SocketAddr) -> io::Result<()> {
        if self.bound.contains_key(&address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        self.bound.insert(address, Socket::default());
        Ok(())
    }

    /// A client's socket: at a port of its own, unless `local` names one.
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
        // An endpoint of QUIC speaks to the family that its socket is of.
        let address = match local.ip() {
            IpAddr::V4(_) => SocketAddr::new(CLIENT, port),
            IpAddr::V6(_) => SocketAddr::new(Ipv4Addr::to_ipv6_mapped(&client_v4()).into(), port),
        };
        self.bind(address)?;
        Ok(address)
    }

    pub(crate) fn deliver(&mut self, datagram: Datagram) {
        if let Some(socket) = self.bound.get_mut(&datagram.to) {
            socket.inbox.push_back(datagram);
            wake(&mut socket.reader);
        }
    }
}

const fn client_v4() -> Ipv4Addr {
    match CLIENT {
        IpAddr::V4(address) => address,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    }
}

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
                panic!("{self:?} reads after its end");
            };
            let mut filled = 0;
            for (buf, meta) in bufs.iter_mut().zip(meta) {
                let Some(Datagram { from, payload, .. }) = socket.inbox.pop_front() else {
                    break;
                };
                // What is longer than the buffer is cut off, as systems do.
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

/// There is always room.
#[derive(Debug)]
struct AlwaysWritable;

impl UdpPoller for AlwaysWritable {
    fn poll_writable(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
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
