//! How long the head of an HTTP/1.1 request may take: the slow loris.
//!
//! hyper has one limit from the moment it waits for a request to the blank line, and that must be as long
//! as a connection may be idle. Here the clock starts with the first byte:
//!
//! ```text
//!   waiting --first byte--> head --request handed over--> exchange --response at hand--> waiting
//!                            |
//!                            `-- head_timeout --> the connection's reads fail
//! ```

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use spdy::body::{Body, BoxError};
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_clock::Instant;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::limit::{ConnectionLimit, LimitHits};
use crate::network::BoxIo;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Waiting,
    Head { since: Instant },
    Exchange,
}

/// What a connection and its exchanges share.
#[derive(Clone, Debug)]
pub(crate) struct HeadClock(Arc<Mutex<Stage>>);

impl HeadClock {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request is all there, its body aside.
    pub(crate) fn request(&self) {
        *self.stage() = Stage::Exchange;
    }

    /// Its response is at hand. hyper reads the next head when the last byte of it was given.
    pub(crate) fn response(&self, body: Body) -> Body {
        if body.try_clone().is_some() {
            *self.stage() = Stage::Waiting;
            return body;
        }
        Body::wrap(Watched {
            body,
            clock: self.clone(),
        })
    }
}

/// A connection whose reads fail when a head takes too long.
pub(crate) struct HeadTimed {
    io: BoxIo,
    clock: HeadClock,
    runtime: SharedRuntime,
    patience: Duration,
    hits: LimitHits,
    timer: Option<BoxFuture<()>>,
}

impl HeadTimed {
    pub(crate) fn new(
        io: BoxIo,
        runtime: SharedRuntime,
        patience: Duration,
        hits: LimitHits,
    ) -> (Self, HeadClock) {
        let clock = HeadClock(Arc::new(Mutex::new(Stage::Waiting)));
        let timed = Self {
            io,
            clock: clock.clone(),
            runtime,
            patience,
            hits,
            timer: None,
        };
        (timed, clock)
    }

    /// Ready when the head that has begun at `since` has taken too long.
    fn poll_over(&mut self, cx: &mut Context<'_>, since: Instant) -> Poll<io::Error> {
        let deadline = since + self.patience;
        loop {
            let timer = self
                .timer
                .get_or_insert_with(|| self.runtime.sleep_until(deadline));
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.timer = None;
            if self.runtime.now() >= deadline {
                self.hits.count(ConnectionLimit::HeadTimeout);
                let why = format!("the head of a request took more than {:?}", self.patience);
                return Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, why));
            }
        }
    }
}

impl AsyncRead for HeadTimed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = into.filled().len();
        let polled = Pin::new(&mut this.io).poll_read(cx, into);
        let stage = *this.clock.stage();
        match (stage, &polled) {
            (Stage::Waiting, Poll::Ready(Ok(()))) if into.filled().len() > before => {
                let since = this.runtime.now();
                *this.clock.stage() = Stage::Head { since };
                polled
            }
            (Stage::Head { since }, Poll::Pending) => this.poll_over(cx, since).map(Err),
            _ => polled,
        }
    }
}

impl AsyncWrite for HeadTimed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
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

/// A response's body that tells when it was given to its end.
struct Watched {
    body: Body,
    clock: HeadClock,
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        *self.clock.stage() = Stage::Waiting;
    }
}
