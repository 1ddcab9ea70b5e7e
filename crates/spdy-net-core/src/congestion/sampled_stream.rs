//! A connection whose congestion window is recorded.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::congestion_socket::CongestionSocket;
use super::memory::WindowSample;
use super::remembered_windows::RememberedWindows;

/// Bytes between two samples: each is a system call.
const SAMPLE_INTERVAL_BYTES: usize = 64 * 1024;

/// A connection of a client. It records the window after each [`SAMPLE_INTERVAL_BYTES`] and when it is dropped.
#[derive(Debug)]
pub(super) struct SampledStream<S: CongestionSocket> {
    stream: S,
    client: IpAddr,
    windows: RememberedWindows,
    bytes_since_sample: usize,
    retransmissions: u64,
}

impl<S: CongestionSocket> SampledStream<S> {
    pub(super) fn new(stream: S, client: IpAddr, windows: RememberedWindows) -> Self {
        // The retransmissions of the handshake say little about the path's capacity.
        let retransmissions = stream.window().map_or(0, |window| window.retransmissions);
        Self {
            stream,
            client,
            windows,
            bytes_since_sample: 0,
            retransmissions,
        }
    }

    fn sample(&mut self) {
        self.bytes_since_sample = 0;
        if let Ok(window) = self.stream.window() {
            let sample = WindowSample {
                window_packets: window.packets,
                has_losses: window.retransmissions > self.retransmissions,
            };
            self.retransmissions = window.retransmissions;
            self.windows.record(self.client, sample);
        }
    }

    fn count(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = written {
            self.bytes_since_sample += bytes;
            if self.bytes_since_sample >= SAMPLE_INTERVAL_BYTES {
                self.sample();
            }
        }
        written
    }
}

impl<S: CongestionSocket> Drop for SampledStream<S> {
    fn drop(&mut self) {
        if self.bytes_since_sample > 0 {
            self.sample();
        }
    }
}

impl<S: CongestionSocket> AsyncRead for SampledStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: CongestionSocket> AsyncWrite for SampledStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.count(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.count(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::Ipv4Addr;

    use spdy::runtime::{SharedRuntime, TokioRuntime};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::congestion::DEFAULT_INITIAL_WINDOW;

    #[tokio::test]
    async fn large_response_raises_the_window_of_the_next_connection() {
        const BODY_BYTES: usize = 32 * 1024 * 1024;
        let client = Ipv4Addr::LOCALHOST.into();
        let windows = RememberedWindows::new(SharedRuntime::new(TokioRuntime::start()));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let reading = tokio::spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let mut bytes = vec![0; 64 * 1024];
            while stream.read(&mut bytes).await.unwrap() > 0 {}
        });
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = windows.start(stream, client);
        assert_eq!(windows.initial_window(client), DEFAULT_INITIAL_WINDOW);
        stream.write_all(&vec![0; BODY_BYTES]).await.unwrap();
        drop(stream);
        reading.await.unwrap();
        assert!(windows.initial_window(client) > DEFAULT_INITIAL_WINDOW);
    }
}
