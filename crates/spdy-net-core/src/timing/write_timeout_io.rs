//! A connection whose writes fail when the peer accepts too little for too long.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use spdy::forward_io;
use spdy::runtime::SharedRuntime;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::network::BoxIo;
use crate::options::ClientOptions;
use crate::timing::progress_timeout::ProgressTimeout;

/// A connection whose writes fail when the peer accepts too little for too long.
#[derive(Debug)]
pub struct WriteTimeoutIo {
    io: BoxIo,
    stall: ProgressTimeout,
}

impl WriteTimeoutIo {
    /// Wraps `io`; a write fails when `stall` expires.
    pub fn new(io: BoxIo, stall: ProgressTimeout) -> Self {
        Self { io, stall }
    }
}

/// A client's connection, whose writes fail when the server accepts nothing for the `write_timeout` of `options`, if it is set.
pub fn with_write_timeout(io: BoxIo, options: &ClientOptions, runtime: &SharedRuntime) -> BoxIo {
    let Some(patience) = options.write_timeout else {
        return io;
    };
    let stall = ProgressTimeout::for_upload(runtime.clone(), patience, options.min_rate);
    Box::new(WriteTimeoutIo::new(io, stall))
}

impl AsyncRead for WriteTimeoutIo {
    forward_io!(poll_read => self.io);
}

impl AsyncWrite for WriteTimeoutIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.io).poll_write(cx, bytes);
        this.stall.guard(cx, polled, |written| *written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.io).poll_write_vectored(cx, slices);
        this.stall.guard(cx, polled, |written| *written)
    }

    forward_io!(is_write_vectored => self.io);

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.io).poll_flush(cx);
        this.stall.guard(cx, polled, |()| 0)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.io).poll_shutdown(cx);
        this.stall.guard(cx, polled, |()| 0)
    }
}
