//! A transport with delays, which is cut after some bytes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use spdy::runtime::BoxFuture;
use spdy::{SharedRuntime, forward_io};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::random::TestRandom;

/// A transport that is late now and then, and is cut after some bytes.
pub(crate) struct Rough<T> {
    pub(crate) io: T,
    pub(crate) runtime: SharedRuntime,
    pub(crate) random: TestRandom,
    /// Bytes until it is cut, both ways together.
    pub(crate) bytes_until_cut: u64,
    /// Set when it was, for both ends.
    pub(crate) cut: Arc<AtomicBool>,
    pub(crate) delay: Option<BoxFuture<()>>,
}

impl<T> Rough<T> {
    pub(crate) fn poll_rough(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.bytes_until_cut == 0 {
            self.cut.store(true, Ordering::Relaxed);
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if let Some(delay) = &mut self.delay {
            ready!(delay.as_mut().poll(cx));
            self.delay = None;
        } else if self.random.one_in(200) {
            let until = self.runtime.now() + Duration::from_millis(self.random.below(20));
            self.delay = Some(self.runtime.sleep_until(until));
            return self.poll_rough(cx);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Rough<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_rough(cx))?;
        let limit = usize::try_from(self.bytes_until_cut).unwrap_or(usize::MAX);
        let mut part = into.take(limit);
        ready!(Pin::new(&mut self.io).poll_read(cx, &mut part))?;
        let len = part.filled().len();
        // `part` was the unfilled rest of `into`, initialised as far as it is filled
        let data = part.filled().to_vec();
        into.put_slice(&data);
        self.bytes_until_cut -= len as u64;
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Rough<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_rough(cx))?;
        let limit = usize::try_from(self.bytes_until_cut)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        let len = ready!(Pin::new(&mut self.io).poll_write(cx, &bytes[..limit]))?;
        self.bytes_until_cut -= len as u64;
        Poll::Ready(Ok(len))
    }

    forward_io!(poll_flush, poll_shutdown => self.io);
}
