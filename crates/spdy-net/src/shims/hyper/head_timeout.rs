//! Timeouts of an HTTP/1.1 connection: for waiting for a request, and for reading its head (slowloris).
//!
//! hyper has one timeout from the start of waiting for a request to the blank line. It would have to be as long as a connection may
//! be idle, and hyper creates and drops a timer for each request. Here there are two timeouts, and one timer that is reset only
//! when it expires:
//!
//! ```text
//!   waiting --first byte--> head --request handed over--> exchange --its body and its response over--> waiting
//!    |                       |
//!    |                       `-- head_timeout --> the connection's reads fail
//!    `-- idle_timeout --> they end, as if the client had gone
//! ```
//!
//! A response may be complete before its request is: bytes that arrive then are not a head.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use parking_lot::{Mutex, MutexGuard};
use spdy::body::{Body, BoxError};
use spdy::forward_io;
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_clock::Instant;
use spdy_net_core::limit::{ConnectionLimit, LimitHits};
use spdy_net_core::network::BoxIo;
use spdy_net_core::options::ServerOptions;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A head and a body of at most this length are joined, bytes: the system writes one piece faster than two.
const JOINED_BYTES: usize = 2048;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ReadStage {
    Waiting {
        since: Instant,
    },
    Head {
        since: Instant,
    },
    /// The `nth` exchange of the connection; `open` counts the incomplete parts of it: the request's body and the response.
    Exchange {
        nth: u64,
        open: u8,
    },
}

/// The state that a connection and its exchanges share.
#[derive(Clone)]
pub(crate) struct HeadTimer(Arc<Shared>);

struct Shared {
    stage: Mutex<ReadStage>,
    /// Number of exchanges so far.
    exchanges: AtomicU64,
    /// The task that waits for bytes. A request body ends in another task, which then starts a timeout for it.
    reader: AtomicWaker,
    runtime: SharedRuntime,
}

impl HeadTimer {
    fn stage(&self) -> MutexGuard<'_, ReadStage> {
        self.0.stage.lock()
    }

    fn now(&self) -> Instant {
        self.0.runtime.now()
    }

    /// To be called when a request's head is complete.
    pub(crate) fn request(&self) -> TimedExchange {
        let nth = self.0.exchanges.fetch_add(1, Ordering::Relaxed);
        *self.stage() = ReadStage::Exchange { nth, open: 1 };
        TimedExchange {
            clock: self.clone(),
            nth,
        }
    }
}

/// The parts of an exchange that can be incomplete.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ExchangeHalf {
    Request,
    Response,
}

/// One request and its response.
#[derive(Clone)]
pub(crate) struct TimedExchange {
    clock: HeadTimer,
    nth: u64,
}

impl TimedExchange {
    /// Wraps the body of the request, which is not complete yet.
    pub(crate) fn request_body(&self, body: Incoming) -> Body {
        if let ReadStage::Exchange { nth, open } = &mut *self.clock.stage()
            && *nth == self.nth
        {
            *open += 1;
        }
        self.watched(body, ExchangeHalf::Request)
    }

    /// Wraps the response. hyper reads the next head when the last byte of it and of the request's body were passed on.
    pub(crate) fn response(&self, body: Body) -> Body {
        if body.is_in_memory() {
            self.is_over(ExchangeHalf::Response);
            return body;
        }
        self.watched(body, ExchangeHalf::Response)
    }

    fn watched<B>(&self, body: B, part: ExchangeHalf) -> Body
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        Body::wrap(TrackedBody {
            body,
            of: Some(self.clone()),
            part,
        })
    }

    /// Marks a part as complete. After both parts the connection waits for the next request.
    fn is_over(&self, part: ExchangeHalf) {
        let since = self.clock.now();
        let mut stage = self.clock.stage();
        // A completely received body may stay unread until after the next request.
        if let ReadStage::Exchange { nth, open } = &mut *stage
            && *nth == self.nth
        {
            *open -= 1;
            if *open == 0 {
                *stage = ReadStage::Waiting { since };
                drop(stage);
                // The task of the connection detects the end of a response by itself.
                if part == ExchangeHalf::Request {
                    self.clock.0.reader.wake();
                }
            }
        }
    }
}

/// A connection whose reads end when no request arrives in time, and fail when a head takes too long.
pub(crate) struct HeadTimeoutIo {
    io: BoxIo,
    clock: HeadTimer,
    idle: Duration,
    timeout: Duration,
    hits: LimitHits,
    timer: Option<Timer>,
}

/// A timer that is not reset while later deadlines are waited for.
struct Timer {
    at: Instant,
    sleep: BoxFuture<()>,
}

impl HeadTimeoutIo {
    pub(crate) fn new(
        io: BoxIo,
        runtime: SharedRuntime,
        options: &ServerOptions,
    ) -> (Self, HeadTimer) {
        let since = runtime.now();
        let stage = Mutex::new(ReadStage::Waiting { since });
        let clock = HeadTimer(Arc::new(Shared {
            stage,
            exchanges: AtomicU64::new(0),
            reader: AtomicWaker::new(),
            runtime,
        }));
        let timed = Self {
            io,
            clock: clock.clone(),
            idle: options.timeouts.idle_timeout,
            timeout: options.timeouts.head_timeout,
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
                sleep: runtime.sleep_until(deadline),
            });
            if timer.sleep.as_mut().poll(cx).is_pending() {
                self.timer = Some(timer);
                return Poll::Pending;
            }
            if runtime.now() >= deadline {
                return Poll::Ready(());
            }
        }
    }

    fn timeout_error(&self) -> io::Error {
        self.hits.count(ConnectionLimit::HeadTimeout);
        let reason = format!("the request head took more than {:?}", self.timeout);
        io::Error::new(io::ErrorKind::TimedOut, reason)
    }
}

impl AsyncRead for HeadTimeoutIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = into.filled().len();
        let polled = Pin::new(&mut this.io).poll_read(cx, into);
        if polled.is_pending() {
            this.clock.0.reader.register(cx.waker());
        }
        let stage = *this.clock.stage();
        match (stage, &polled) {
            (ReadStage::Waiting { .. }, Poll::Ready(Ok(()))) if into.filled().len() > before => {
                let since = this.clock.now();
                *this.clock.stage() = ReadStage::Head { since };
                polled
            }
            (ReadStage::Waiting { since }, Poll::Pending) => {
                this.poll_until(cx, since + this.idle).map(Ok)
            }
            (ReadStage::Head { since }, Poll::Pending) => this
                .poll_until(cx, since + this.timeout)
                .map(|()| Err(this.timeout_error())),
            _ => polled,
        }
    }
}

impl AsyncWrite for HeadTimeoutIo {
    forward_io!(poll_write, is_write_vectored, poll_flush, poll_shutdown => self.io);

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let len = slices.iter().map(|slice| slice.len()).sum();
        if slices.len() < 2 || len > JOINED_BYTES {
            return Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        }
        let (mut joined, mut at) = ([0; JOINED_BYTES], 0);
        for slice in slices {
            joined[at..][..slice.len()].copy_from_slice(slice);
            at += slice.len();
        }
        Pin::new(&mut self.io).poll_write(cx, &joined[..len])
    }
}

/// A body that reports its end: complete, failed, or dropped.
struct TrackedBody<B> {
    body: B,
    /// `None` once the end was reported.
    of: Option<TimedExchange>,
    part: ExchangeHalf,
}

impl<B> TrackedBody<B> {
    fn is_over(&mut self) {
        if let Some(exchange) = self.of.take() {
            exchange.is_over(self.part);
        }
    }
}

impl<B: http_body::Body<Data = Bytes> + Unpin> http_body::Body for TrackedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if self.body.is_end_stream() {
            // hyper reports the end of a body after its response only when the next head has arrived.
            self.is_over();
            return Poll::Ready(None);
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) || self.body.is_end_stream() {
            self.is_over();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for TrackedBody<B> {
    fn drop(&mut self) {
        self.is_over();
    }
}
