//! Bytes that pass, counted for all connections of a thread; in HTTP/2, those of header blocks apart.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use spdy_net::network::BoxIo;
use spdy_net::shims::wire_observer::FrameScanner;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What has passed so far, bytes. TLS is not in it: these are the bytes of the protocol.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Bytes {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) headers_sent: u64,
    pub(crate) headers_received: u64,
}

impl Bytes {
    /// What passed since `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            sent: self.sent - earlier.sent,
            received: self.received - earlier.received,
            headers_sent: self.headers_sent - earlier.headers_sent,
            headers_received: self.headers_received - earlier.headers_received,
        }
    }

    /// Both together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            received: self.received + other.received,
            headers_sent: self.headers_sent + other.headers_sent,
            headers_received: self.headers_received + other.headers_received,
        }
    }
}

/// The counters of one thread.
#[derive(Debug, Default)]
pub(crate) struct Traffic(Cell<Bytes>);

impl Traffic {
    pub(crate) fn read(&self) -> Bytes {
        self.0.get()
    }

    pub(crate) fn add(&self, more: Bytes) {
        self.0.set(self.0.get().plus(more));
    }
}

/// A connection whose bytes are counted.
pub(crate) struct CountingIo {
    io: BoxIo,
    traffic: Rc<Traffic>,
    /// Frame scanners for sent and for received bytes.
    scanners: Option<Box<[FrameScanner; 2]>>,
}

impl CountingIo {
    /// Counts all bytes of `io`.
    pub(crate) fn new(io: BoxIo, traffic: Rc<Traffic>) -> Self {
        Self {
            io,
            traffic,
            scanners: None,
        }
    }

    /// Also counts the payloads of HEADERS and CONTINUATION.
    pub(crate) fn http2(io: BoxIo, traffic: Rc<Traffic>) -> Self {
        Self {
            scanners: Some(Box::new([
                FrameScanner::for_client(),
                FrameScanner::default(),
            ])),
            ..Self::new(io, traffic)
        }
    }

    fn header_bytes(&mut self, direction: usize, bytes: &[u8]) -> u64 {
        let mut len = 0;
        if let Some(scanners) = &mut self.scanners {
            scanners[direction].scan(bytes, |frame, _| {
                if matches!(frame.kind, 1 | 5 | 9) {
                    len += frame.len_bytes as u64;
                }
            });
        }
        len
    }

    fn sent(&mut self, bytes: &[u8]) {
        let headers_sent = self.header_bytes(0, bytes);
        self.traffic.add(Bytes {
            sent: bytes.len() as u64,
            headers_sent,
            ..Bytes::default()
        });
    }

    fn received(&mut self, bytes: &[u8]) {
        let headers_received = self.header_bytes(1, bytes);
        self.traffic.add(Bytes {
            received: bytes.len() as u64,
            headers_received,
            ..Bytes::default()
        });
    }
}

impl AsyncRead for CountingIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let polled = Pin::new(&mut self.io).poll_read(cx, into);
        if let Poll::Ready(Ok(())) = &polled {
            self.received(&into.filled()[before..]);
        }
        polled
    }
}

impl AsyncWrite for CountingIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write(cx, bytes);
        if let Poll::Ready(Ok(len)) = polled {
            self.sent(&bytes[..len]);
        }
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        if let Poll::Ready(Ok(mut remaining)) = polled {
            for slice in slices {
                let len = remaining.min(slice.len());
                self.sent(&slice[..len]);
                remaining -= len;
            }
        }
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
