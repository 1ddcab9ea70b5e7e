//! How long an HTTP/1.1 connection may wait for a request, and how long the head of one may take: the slow loris.
//!
//! hyper has one limit from the moment it waits for a request to the blank line, and that must be as long
//! as a connection may be idle; and it makes and takes down a timer for each request. Here there are two, and
//! one timer that is set anew when it rings:
//!
//! ```text
//!   waiting --first byte--> head --request handed over--> exchange --response at hand--> waiting
//!    |                       |
//!    |                       `-- head_timeout --> the connection's reads fail
//!    `-- idle_timeout --> they end, as if the client had gone
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
use crate::serve::ServerOptions;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Waiting { since: Instant },
    Head { since: Instant },
    Exchange,
}

/// What a connection and its exchanges share.
#[derive(Clone)]
pub(crate) struct HeadClock(Arc<Shared>);

struct Shared {
    stage: Mutex<Stage>,
    runtime: SharedRuntime,
}

impl HeadClock {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.0.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Instant {
        self.0.runtime.now()
    }

    /// The next request is waited for.
    fn wait(&self) {
        let since = self.now();
        *self.stage() = Stage::Waiting { since };
    }

    /// A request is all there, its body aside.
    pub(crate) fn request(&self) {
        *self.stage() = Stage::Exchange;
    }

    /// Its response is at hand. hyper reads the next head when the last byte of it was given.
    pub(crate) fn response(&self, body: Body) -> Body {
        if body.try_clone().is_some() {
            self.wait();
            return body;
        }
        Body::wrap(Watched {
            body,
            clock: self.clone(),
        })
    }
}

/// A connection whose reads end when no request comes for too long, and fail when a head takes too long.
pub(crate) struct HeadTimed {
    io: BoxIo,
    clock: HeadClock,
    idle: Duration,
    patience: Duration,
    hits: LimitHits,
    timer: Option<Timer>,
}

/// Rings at an instant, and stays there while later ones are waited for.
struct Timer {
    at: Instant,
    rings: BoxFuture<()>,
}

impl HeadTimed {
    pub(crate) fn new(
        io: BoxIo,
        runtime: SharedRuntime,
        options: &ServerOptions,
    ) -> (Self, HeadClock) {
        let since = runtime.now();
        let stage = Mutex::new(Stage::Waiting { since });
        let clock = HeadClock(Arc::new(Shared { stage, runtime }));
        let timed = Self {
            io,
            clock: clock.clone(),
            idle: options.idle_timeout,
            patience: options.head_timeout,
            hits: options.hits.clone(),
            timer: None,
        };
        (timed, clock)
    }

    /// Ready at `deadline`.
    fn poll_until(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let runtime = &self.clock.0.runtime;
        loop {
            let timer = self.timer.take().filter(|timer| timer.at <= deadline);
            let mut timer = timer.unwrap_or_else(|| Timer {
                at: deadline,
                rings: runtime.sleep_until(deadline),
            });
            if timer.rings.as_mut().poll(cx).is_pending() {
                self.timer = Some(timer);
                return Poll::Pending;
            }
            if runtime.now() >= deadline {
                return Poll::Ready(());
            }
        }
    }

    fn took_too_long(&self) -> io::Error {
        self.hits.count(ConnectionLimit::HeadTimeout);
        let why = format!("the head of a request took more than {:?}", self.patience);
        io::Error::new(io::ErrorKind::TimedOut, why)
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
            (Stage::Waiting { .. }, Poll::Ready(Ok(()))) if into.filled().len() > before => {
                let since = this.clock.now();
                *this.clock.stage() = Stage::Head { since };
                polled
            }
            (Stage::Waiting { since }, Poll::Pending) => {
                this.poll_until(cx, since + this.idle).map(Ok)
            }
            (Stage::Head { since }, Poll::Pending) => this
                .poll_until(cx, since + this.patience)
                .map(|()| Err(this.took_too_long())),
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
        self.clock.wait();
    }
}
