//! Implements quinn's UDP socket with ours.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use quinn::udp::{RecvMeta, Transmit};
use spdy_net_core::network::{DatagramSocket, UdpPoller};

/// A network's socket as an implementation of quinn's.
#[derive(Debug)]
pub(super) struct QuicSocket(DatagramSocket);

impl QuicSocket {
    pub(super) fn shared(socket: DatagramSocket) -> Arc<dyn quinn::AsyncUdpSocket> {
        Arc::new(Self(socket))
    }
}

impl quinn::AsyncUdpSocket for QuicSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn quinn::UdpPoller>> {
        Box::pin(QuicSocketPoller(self.0.clone().create_io_poller()))
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.0.try_send(transmit)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_recv(cx, bufs, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.0.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.0.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.0.may_fragment()
    }
}

/// Waits until the socket is writable, as quinn's poller.
#[derive(Debug)]
struct QuicSocketPoller(Pin<Box<dyn UdpPoller>>);

impl quinn::UdpPoller for QuicSocketPoller {
    fn poll_writable(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_writable(cx)
    }
}
