//! One end of a connection for async code: `AsyncRead + AsyncWrite`.
//!
//! Back-pressure is modelled: a write takes at most the free space of TCP's send buffer, and unread bytes close the receive window.
//! Writes are sent at once (TCP_NODELAY, as on the real network); a vectored write is one write. Dropping the socket closes it in
//! order, or resets the connection if bytes were left unread, as systems do.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use spdy_net::congestion::{CongestionSocket, WindowState};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::network::endpoint::{EndpointId, abandon};
use crate::network::packet_network::PacketNetwork;

/// A socket in virtual time.
pub(crate) struct SimIo {
    network: Arc<PacketNetwork>,
    end: EndpointId,
    /// Shut down: the socket sends FIN and accepts no more bytes.
    is_shut_down: bool,
}

impl SimIo {
    pub(crate) fn new(network: Arc<PacketNetwork>, end: EndpointId) -> Self {
        Self {
            network,
            end,
            is_shut_down: false,
        }
    }

    /// Waits for the end of the handshake.
    pub(crate) fn poll_established(&self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        self.network.with(self.end, |end, _| {
            if let Some(error) = end.error() {
                return Poll::Ready(Err(error));
            }
            if end.tcp().is_established() {
                return Poll::Ready(Ok(()));
            }
            end.wait_to_write(cx);
            Poll::Pending
        })
    }

    fn poll_write_all_of(&self, cx: &Context<'_>, slices: &[&[u8]]) -> Poll<io::Result<usize>> {
        if self.is_shut_down {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        self.network.with(self.end, |end, now| {
            if let Some(error) = end.error() {
                return Poll::Ready(Err(error));
            }
            if slices.iter().all(|slice| slice.is_empty()) {
                return Poll::Ready(Ok(0));
            }
            let mut written = 0;
            for slice in slices.iter().filter(|slice| !slice.is_empty()) {
                let accepted = end.tcp_mut().write(now, slice);
                written += accepted;
                if accepted < slice.len() {
                    break;
                }
            }
            if written == 0 {
                end.wait_to_write(cx);
                return Poll::Pending;
            }
            Poll::Ready(Ok(written))
        })
    }
}

impl AsyncRead for SimIo {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.network.with(self.end, |end, now| {
            if end.tcp().readable_bytes() > 0 {
                while buf.remaining() > 0 && end.tcp().readable_bytes() > 0 {
                    buf.put_slice(&end.tcp_mut().read(now, buf.remaining()));
                }
                return Poll::Ready(Ok(()));
            }
            if let Some(error) = end.error() {
                return Poll::Ready(Err(error));
            }
            if end.tcp().is_read_closed() || buf.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            end.wait_to_read(cx);
            Poll::Pending
        })
    }
}

impl AsyncWrite for SimIo {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_all_of(cx, &[bytes])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let slices: Vec<&[u8]> = slices.iter().map(|slice| &**slice).collect();
        self.poll_write_all_of(cx, &slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Everything written has already been sent, as far as the windows allow.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !std::mem::replace(&mut self.is_shut_down, true) {
            self.network
                .with(self.end, |end, now| end.tcp_mut().close(now));
        }
        Poll::Ready(Ok(()))
    }
}

impl CongestionSocket for SimIo {
    fn set_initial_window(&self, packets: u32) -> io::Result<()> {
        let is_set = self
            .network
            .with(self.end, |end, _| end.tcp_mut().set_initial_window(packets));
        match is_set {
            true => Ok(()),
            false => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn window(&self) -> io::Result<WindowState> {
        Ok(self.network.with(self.end, |end, _| WindowState {
            packets: end.tcp().window_segments(),
            retransmissions: end.tcp().stats().retransmits,
        }))
    }
}

impl Drop for SimIo {
    fn drop(&mut self) {
        self.network.with(self.end, abandon);
    }
}
