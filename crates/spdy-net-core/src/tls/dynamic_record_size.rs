//! TLS records that grow as a server sends, so that the client can read the first bytes early.
//!
//! A client can decrypt a record only when it has all of it. With records of 16 KiB from the first byte, the head of a page waits
//! for twelve packets; with an initial window of ten or three, the last arrives a round trip later. With these sizes each flight
//! ends near the end of a record:
//!
//! ```text
//!   record   1  2    3       4           5  ...           12
//!   packets  ▮  ▮▮   ▮▮▮     ▮▮▮▮        ▮▮▮▮▮  ...       ▮▮▮▮▮▮▮▮▮▮▮▮ 16 KiB, and so from here on
//!            └────── one initial window ─┘
//! ```
//!
//! That is five more records for the first 92 KB of a connection: 110 bytes of TLS 1.3, and no additional system calls, since
//! records that are written together are sent together. The sizes are not reset after an idle period.

use std::io::{self, IoSlice, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use spdy::forward_io;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::server::TlsStream;

use crate::network::BoxIo;

/// Bytes of a record that fill one packet of 1,500 bytes: without IPv6, TCP with timestamps, and the overhead of TLS 1.2 (29).
const PACKET_BYTES: usize = 1_500 - 40 - 32 - 29;
/// Bytes of the longest record (RFC 8446 §5.1).
const FULL_BYTES: usize = 1 << 14;
/// Limit of small writes that are joined, bytes.
const JOIN_BUFFER_BYTES: usize = FULL_BYTES;

/// A server's TLS connection whose records grow.
pub(crate) struct DynamicRecordSize {
    tls: TlsStream<BoxIo>,
    /// Maximum size of the next record, bytes.
    next: usize,
}

impl DynamicRecordSize {
    pub(crate) fn new(tls: TlsStream<BoxIo>) -> Self {
        let next = PACKET_BYTES;
        Self { tls, next }
    }

    fn is_grown(&self) -> bool {
        self.next == FULL_BYTES
    }

    /// Notes that a record of `bytes` was written: if it had the maximum size, the next may be a packet longer.
    fn made(&mut self, bytes: usize) {
        if bytes == self.next {
            self.next = FULL_BYTES.min(self.next + PACKET_BYTES);
        }
    }
}

impl AsyncRead for DynamicRecordSize {
    forward_io!(poll_read => self.tls);
}

impl AsyncWrite for DynamicRecordSize {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let mut taken = 0;
        // All records except the last are buffered in the TLS session, and sent with the last.
        while !this.is_grown() && buf.len() - taken > this.next {
            let piece = &buf[taken..][..this.next];
            let made = this.tls.get_mut().1.writer().write(piece)?;
            taken += made;
            this.made(made);
            if made < piece.len() {
                break; // its buffer is full
            }
        }
        let rest = &buf[taken..];
        let last = match this.is_grown() {
            true => rest,
            false => &rest[..rest.len().min(this.next)],
        };
        match Pin::new(&mut this.tls).poll_write(cx, last) {
            Poll::Ready(Ok(made)) => {
                this.made(made);
                Poll::Ready(Ok(taken + made))
            }
            Poll::Pending if taken > 0 => Poll::Ready(Ok(taken)),
            other => other,
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.is_grown() {
            return Pin::new(&mut self.get_mut().tls).poll_write_vectored(cx, bufs);
        }
        let mut joined = Vec::new();
        for buf in bufs {
            let room = JOIN_BUFFER_BYTES - joined.len();
            joined.extend_from_slice(&buf[..buf.len().min(room)]);
        }
        self.poll_write(cx, &joined)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    forward_io!(poll_flush, poll_shutdown => self.tls);
}
