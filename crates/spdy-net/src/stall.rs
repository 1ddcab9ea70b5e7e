//! Peers that take nothing, or send nothing: how long a write may stand still, and a request's body.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use spdy::body::{Body, BoxError};
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_clock::Instant;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::network::BoxIo;

/// A wait that is given up when it lasts too long. Made once, used for many waits.
pub(crate) struct Stall {
    runtime: SharedRuntime,
    patience: Duration,
    /// What the peer did nothing of: "took", "sent".
    deed: &'static str,
    since: Option<Instant>,
    /// Set anew only when it rings: most waits are over long before.
    timer: Option<BoxFuture<()>>,
}

impl Stall {
    /// For a peer that takes nothing.
    pub(crate) fn of_writing(runtime: SharedRuntime, patience: Duration) -> Self {
        Self::new(runtime, patience, "took")
    }

    /// For a peer that sends nothing.
    pub(crate) fn of_reading(runtime: SharedRuntime, patience: Duration) -> Self {
        Self::new(runtime, patience, "sent")
    }

    fn new(runtime: SharedRuntime, patience: Duration, deed: &'static str) -> Self {
        Self {
            runtime,
            patience,
            deed,
            since: None,
            timer: None,
        }
    }

    /// The wait is over, or there is none.
    pub(crate) fn moved(&mut self) {
        self.since = None;
    }

    /// Something is waited for; ready when that has lasted too long.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let since = *self.since.get_or_insert_with(|| self.runtime.now());
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
                let why = format!("the peer {} nothing for {:?}", self.deed, self.patience);
                return Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, why));
            }
        }
    }

    /// `polled`, unless it is pending for too long.
    fn guard<T>(
        &mut self,
        cx: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match polled {
            Poll::Pending => self.poll(cx).map(Err),
            ready => {
                self.moved();
                ready
            }
        }
    }
}

/// A connection whose writes fail when they stand still for too long.
pub(crate) struct Impatient {
    io: BoxIo,
    stall: Stall,
}

impl Impatient {
    pub(crate) fn new(io: BoxIo, stall: Stall) -> Self {
        Self { io, stall }
    }
}

impl AsyncRead for Impatient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, into)
    }
}

impl AsyncWrite for Impatient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.io).poll_write(cx, bytes);
        this.stall.guard(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.io).poll_write_vectored(cx, slices);
        this.stall.guard(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.io).poll_flush(cx);
        this.stall.guard(cx, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.io).poll_shutdown(cx);
        this.stall.guard(cx, polled)
    }
}

/// A request's body that fails when nothing of it comes for too long. Time that passes while nobody
/// reads it does not count.
pub(crate) struct PatientBody {
    body: Body,
    stall: Stall,
}

impl PatientBody {
    pub(crate) fn new(body: Body, stall: Stall) -> Self {
        Self { body, stall }
    }
}

impl http_body::Body for PatientBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        if polled.is_ready() {
            this.stall.moved();
            return polled;
        }
        let Poll::Ready(error) = this.stall.poll(cx) else {
            return Poll::Pending;
        };
        this.body = Body::empty(); // what it came on is let go
        Poll::Ready(Some(Err(error.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
