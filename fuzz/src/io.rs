//! A connection and a runtime for async targets: deterministic and without real time.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use spdy::SharedRuntime;
use spdy::runtime::{BoxFuture, Runtime};
use spdy_clock::Instant;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection with a fixed input, which is read in pieces, and a buffer for the output.
#[derive(Debug, Default)]
pub struct Script {
    pieces: std::collections::VecDeque<Vec<u8>>,
    /// The written bytes.
    pub written: Vec<u8>,
    /// The next read waits once, as a socket would.
    late: bool,
    /// After the last piece the peer stays connected and sends nothing.
    stays: bool,
}

impl Script {
    /// A peer that sends `pieces`, none of them empty.
    #[must_use]
    pub fn new(pieces: &[&[u8]]) -> Self {
        Self {
            pieces: pieces.iter().map(|piece| piece.to_vec()).collect(),
            ..Self::default()
        }
    }

    /// The same peer, which does not end the connection.
    #[must_use]
    pub fn without_end(mut self) -> Self {
        self.stays = true;
        self
    }

    /// The unread bytes.
    #[must_use]
    pub fn left(&self) -> Vec<u8> {
        self.pieces.iter().flatten().copied().collect()
    }
}

impl AsyncRead for Script {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.late = !self.late;
        if self.late {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let Some(piece) = self.pieces.front_mut() else {
            return match self.stays {
                true => Poll::Pending,
                false => Poll::Ready(Ok(())),
            };
        };
        let len = piece.len().min(into.remaining());
        into.put_slice(&piece[..len]);
        piece.drain(..len);
        if piece.is_empty() {
            self.pieces.pop_front();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Script {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.written.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A runtime whose clock does not advance.
struct FrozenRuntime;

impl Runtime for FrozenRuntime {
    fn now(&self) -> Instant {
        Instant::ZERO
    }

    fn sleep_until(&self, _: Instant) -> BoxFuture<()> {
        Box::pin(std::future::pending())
    }

    fn spawn(&self, _: BoxFuture<()>) {
        panic!("unexpected task: targets spawn none");
    }
}

/// A runtime whose clock does not advance.
#[must_use]
pub fn runtime() -> SharedRuntime {
    SharedRuntime::new(FrozenRuntime)
}

/// Runs `work` to completion.
///
/// # Panics
///
/// If it is not complete after a million polls: the work must end once its input has ended.
pub fn complete<R>(work: impl Future<Output = R>) -> R {
    let mut work = pin!(work);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..1_000_000 {
        if let Poll::Ready(done) = work.as_mut().poll(&mut cx) {
            return done;
        }
    }
    panic!("the future did not complete");
}
