//! The driver: connects a session machine to a transport, as a future.
//!
//! ```text
//!           +--> read all there is --> machine --> events to streams --+
//!           |                                                          |
//!  woken ---+--> time, if a timeout expired ---------------------------+--> sleep
//!           |                                                          |
//!           +--> machine --> one batch of frames --> one write --------+
//! ```
//!
//! The driver makes no decisions of its own. It continues to read while a write is pending, so that two peers with full buffers
//! cannot deadlock. A batch is all output of the machine, up to [`WRITE_AHEAD`] bytes, so that a control frame reaches the socket
//! in one piece (OkHttp fails on a header block split near its end) and urgent output does not wait behind much other output. The
//! order is deterministic: the same events give the same bytes at the same instant.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use spdy_clock::Instant;
use spdy_session::limit::Limit;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use crate::error::Error;
use crate::runtime::BoxFuture;
use crate::session::buffers;
use crate::session::entry::register;
use crate::session::shared::Shared;
use crate::session::state::State;

/// Bytes of frames collected before a write.
const WRITE_AHEAD: usize = 64 * 1024;
/// Capacity of a new write buffer, so that one batch seldom fills it: then it can be used again.
const MIN_WRITE_BUFFER: usize = 4 * 1024;
/// Bytes per read.
const READ_BYTES: usize = 32 * 1024;
/// Maximum number of reads before the driver handles input and writes, and of passes before it yields to other tasks.
const MAX_PASSES: usize = 16;
/// Timeout for writing the last frames of an ended session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to read and discard input after our side was closed: closing a connection with unread bytes resets it, and the reset
/// can destroy our last frames in the peer's buffer.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);

/// The I/O part of a session: nothing is sent or received unless it [runs](Self::run).
///
/// [`spawn`](Self::spawn) it, or await [`run`](Self::run) concurrently with the requests. If it is dropped before the session has
/// ended, every use of the session fails with [`Error::ConnectionDropped`]. If it is not run while a task waits for the session,
/// that fails with [`Error::ConnectionNotRun`] after 10 s.
#[must_use = "the session does nothing unless its connection is spawned or run"]
pub struct Connection<T> {
    io: T,
    shared: Arc<Shared>,
    /// Received bytes; between reads, an incomplete frame.
    input: BytesMut,
    /// Bytes of frames to write.
    out: BytesMut,
    /// True if bytes were written since the last flush.
    unflushed: bool,
    /// When the transport stopped accepting bytes, if there are bytes to write.
    blocked_since: Option<Instant>,
    /// Timeout for that.
    write_timeout: Option<Duration>,
    /// True until the peer has closed its side.
    readable: bool,
    timer: Option<(Instant, BoxFuture<()>)>,
    phase: Phase,
    /// True once it was run.
    is_started: bool,
    woken: Vec<Waker>,
}

/// Why reading stopped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ReadStop {
    /// There may be more to read after other tasks had a turn.
    Yield,
    /// The transport has no data, and wakes us when it has.
    WouldBlock,
    /// The machine accepts no input now: data on the transport does not wake us.
    Paused,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// The session is open.
    Running,
    /// The session ended; its last frames are being written.
    Closing { until: Instant },
    /// Our side is closed; the peer's remaining bytes are read and discarded.
    Lingering { until: Instant },
    /// The transport is closed.
    Done,
}

impl<T> std::fmt::Debug for Connection<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("session", &self.shared)
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> Connection<T> {
    pub(crate) fn new(io: T, shared: Arc<Shared>) -> Self {
        let write_timeout = shared.look(|state| state.machine.config().write_timeout);
        Self {
            io,
            shared,
            input: BytesMut::new(),
            out: BytesMut::new(),
            unflushed: false,
            blocked_since: None,
            write_timeout,
            readable: true,
            timer: None,
            phase: Phase::Running,
            is_started: false,
            woken: Vec::new(),
        }
    }

    /// Runs the session until it has ended and its last byte is written.
    ///
    /// Dropping the future before that loses the session: every stream fails.
    ///
    /// # Errors
    ///
    /// [`Error::SessionLost`] for a protocol error of the peer or an end without GOAWAY, [`Error::Io`] for an error of the
    /// transport, [`Error::ConnectionNotRun`] if the session has ended because this was called too late.
    pub fn run(mut self) -> impl Future<Output = Result<(), Error>> {
        self.begin(); // now, since the future may be polled after that of a request
        async move { poll_fn(|cx| self.poll_run(cx, |_| {})).await }
    }

    /// Stops the watch for a connection that is never run.
    fn begin(&mut self) {
        if !self.is_started {
            self.is_started = true;
            if !self.shared.run_watch.run() {
                self.phase = Phase::Done;
            }
        }
    }

    /// Runs while there is work. `between` is called after received events were dispatched and before anything is written: its
    /// output is in the same batch.
    pub(crate) fn poll_run(
        &mut self,
        cx: &mut Context<'_>,
        between: impl FnMut(&mut Context<'_>),
    ) -> Poll<Result<(), Error>> {
        self.begin();
        let polled = match self.phase {
            Phase::Done => Poll::Ready(self.ended()),
            _ => self.poll_passes(cx, between),
        };
        buffers::READ.release(&mut self.input);
        buffers::WRITE.release(&mut self.out);
        polled
    }

    fn poll_passes(
        &mut self,
        cx: &mut Context<'_>,
        mut between: impl FnMut(&mut Context<'_>),
    ) -> Poll<Result<(), Error>> {
        let span = self.shared.span.clone();
        let _within = span.enter();
        for _ in 0..MAX_PASSES {
            let stopped = self.receive(cx);
            between(cx);
            let phase = self.phase;
            let next_timeout = self.send(cx);
            let timer_fired = self.wait(cx, next_timeout);
            if self.phase == Phase::Done {
                return Poll::Ready(self.ended());
            }
            let reads_on = match stopped {
                ReadStop::Yield => true,
                ReadStop::WouldBlock => false,
                // The output that paused the input may have been written since.
                ReadStop::Paused => self.shared.look(|state| state.machine.accepts_input()),
            };
            // A session that has ended accepts no input; the rest of its transport is still read.
            if !reads_on && !timer_fired && self.phase == phase {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// The result of the session.
    fn ended(&self) -> Result<(), Error> {
        let ended = self.shared.look(|state| state.ended.clone());
        ended.unwrap_or(Ok(()))
    }

    /// Reads the bytes that are available.
    fn receive(&mut self, cx: &mut Context<'_>) -> ReadStop {
        for _ in 0..MAX_PASSES {
            if !self.readable || self.phase == Phase::Done {
                return ReadStop::WouldBlock;
            }
            // A session that accepts no input now wakes us when it does.
            if self.phase == Phase::Running
                && !self.shared.look(|state| state.machine.accepts_input())
            {
                return ReadStop::Paused;
            }
            buffers::READ.acquire(&mut self.input);
            if self.input.capacity() - self.input.len() < READ_BYTES / 4 {
                self.input.reserve(READ_BYTES);
            }
            // The future holds no state between polls, so it may be created again.
            match pin!(self.io.read_buf(&mut self.input)).poll(cx) {
                Poll::Pending => return ReadStop::WouldBlock,
                Poll::Ready(Ok(0)) => {
                    self.readable = false;
                    self.update(|state, now| state.machine.handle_eof(now));
                }
                Poll::Ready(Ok(_)) if self.phase == Phase::Running => {
                    let mut input = std::mem::take(&mut self.input);
                    self.update(|state, now| state.machine.handle_input_buffer(now, &mut input));
                    self.input = input;
                }
                Poll::Ready(Ok(_)) => self.input.clear(), // lingering: input is discarded
                Poll::Ready(Err(error)) => self.handle_io_error(error),
            }
        }
        ReadStop::Yield
    }

    /// Writes the machine's output; returns its next deadline.
    fn send(&mut self, cx: &mut Context<'_>) -> Option<Instant> {
        buffers::WRITE.acquire(&mut self.out);
        if self.out.capacity() == 0 {
            self.out.reserve(MIN_WRITE_BUFFER);
        }
        let next_timeout = loop {
            let now = self.shared.runtime.now();
            let mut old = None;
            let (out, woken, shared) = (&mut self.out, &mut self.woken, &self.shared);
            let (timeout, closed) = shared.look(|state| {
                if out.is_empty() {
                    state.machine.handle_transmitted(now);
                }
                if state.draining && state.waiting.is_empty() {
                    // Only now: queued streams must be opened first.
                    state.draining = false;
                    state.cancel_all_unclaimed();
                    state.closing = true;
                    state.machine.shutdown(now);
                }
                loop {
                    while out.len() < WRITE_AHEAD && state.machine.poll_transmit(now, out) {}
                    // The output may have freed a stream slot, which is used at once.
                    if !state.dispatch(shared.role, shared.version, woken)
                        || out.len() >= WRITE_AHEAD
                    {
                        break;
                    }
                }
                if out.is_empty() {
                    register(&mut state.driver, cx.waker(), &mut old);
                }
                (
                    state.next_deadline(),
                    state.ended.is_some() && state.machine.is_closed(),
                )
            });
            self.wake();
            if closed && self.phase == Phase::Running {
                self.phase = Phase::Closing {
                    until: now + CLOSE_TIMEOUT,
                };
            }
            if self.out.is_empty() {
                break timeout;
            }
            match Pin::new(&mut self.io).poll_write(cx, &self.out) {
                Poll::Ready(Ok(0)) => self.handle_io_error(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(written)) => {
                    self.out.advance(written);
                    self.unflushed = true;
                    self.blocked_since = None;
                }
                Poll::Ready(Err(error)) => self.handle_io_error(error),
                Poll::Pending => {
                    self.blocked_since.get_or_insert(now);
                    let mut old = None;
                    self.shared
                        .look(|state| register(&mut state.driver, cx.waker(), &mut old));
                    break timeout;
                }
            }
            if self.phase == Phase::Done {
                return None;
            }
        };
        if self.unflushed {
            match Pin::new(&mut self.io).poll_flush(cx) {
                Poll::Ready(Ok(())) => {
                    self.unflushed = false;
                    if self.out.is_empty() {
                        self.blocked_since = None;
                    }
                }
                Poll::Ready(Err(error)) => self.handle_io_error(error),
                Poll::Pending => {
                    self.blocked_since.get_or_insert(self.shared.runtime.now());
                }
            }
        }
        if let Phase::Closing { .. } = self.phase
            && self.out.is_empty()
            && !self.unflushed
        {
            match Pin::new(&mut self.io).poll_shutdown(cx) {
                // It can no longer be known if the peer receives the end.
                Poll::Ready(_) if self.readable => {
                    self.phase = Phase::Lingering {
                        until: self.shared.runtime.now() + LINGER_TIMEOUT,
                    };
                }
                Poll::Ready(_) => self.phase = Phase::Done,
                Poll::Pending => {}
            }
        }
        match self.phase {
            Phase::Running => next_timeout.into_iter().chain(self.write_deadline()).min(),
            Phase::Closing { until } | Phase::Lingering { until } => Some(until),
            Phase::Done => None,
        }
    }

    /// When the transport has accepted nothing for too long. The machine cannot detect it, because it counts a frame in our buffer
    /// as sent. Without this timeout, a response that fits into the buffer would wait forever.
    fn write_deadline(&self) -> Option<Instant> {
        self.blocked_since
            .zip(self.write_timeout)
            .map(|(since, limit)| since + limit)
    }

    /// Sleeps until `deadline`; `true` if it has expired and was handled.
    fn wait(&mut self, cx: &mut Context<'_>, deadline: Option<Instant>) -> bool {
        if let Phase::Lingering { .. } = self.phase
            && !self.readable
        {
            self.phase = Phase::Done;
        }
        let Some(deadline) = deadline.filter(|_| self.phase != Phase::Done) else {
            self.timer = None;
            return false;
        };
        loop {
            // An early timer is reused, so that timeouts that move with every frame cost nothing.
            if self.timer.as_ref().is_none_or(|(at, _)| *at > deadline) {
                self.timer = Some((deadline, self.shared.runtime.sleep_until(deadline)));
            }
            match &mut self.timer {
                Some((_, timer)) => match timer.as_mut().poll(cx) {
                    Poll::Ready(()) => self.timer = None,
                    Poll::Pending => return false,
                },
                None => unreachable!("the timer is not set"),
            }
            if self.shared.runtime.now() >= deadline {
                break;
            }
        }
        match self.phase {
            Phase::Running
                if self
                    .write_deadline()
                    .is_some_and(|end| self.shared.runtime.now() >= end) =>
            {
                let waited = self.write_timeout.unwrap_or_default();
                let message = format!("the peer accepted no bytes for {waited:?}");
                self.update(|state, _| state.machine.count(Limit::WriteTimeout));
                self.handle_io_error(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            Phase::Running => self.update(State::handle_timeout),
            Phase::Closing { .. } | Phase::Lingering { .. } => self.phase = Phase::Done,
            Phase::Done => {}
        }
        true
    }

    /// Handles an error of the transport.
    fn handle_io_error(&mut self, error: io::Error) {
        self.readable = false;
        self.phase = Phase::Done;
        self.out.clear();
        let error = Error::Io(Arc::new(error));
        self.update(|state, now| {
            state.io_error = Some(error.clone());
            state.machine.handle_eof(now);
        });
        let woken = &mut self.woken;
        self.shared.look(|state| state.end(Err(error), woken));
        self.wake();
    }
}

impl<T> Connection<T> {
    /// Passes an event to the machine, and dispatches its effects.
    fn update(&mut self, happened: impl FnOnce(&mut State, Instant)) {
        let (shared, woken) = (&self.shared, &mut self.woken);
        let now = shared.runtime.now();
        let awake = shared.look(|state| {
            happened(state, now);
            state.dispatch(shared.role, shared.version, woken);
            // Output of later commands is written in this same turn, so they need not wake the driver.
            state.driver.take()
        });
        drop(awake);
        self.wake();
    }

    /// Wakes the tasks whose streams changed, after the lock is released.
    fn wake(&mut self) {
        for waker in self.woken.drain(..) {
            waker.wake();
        }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Connection<T> {
    /// Runs it as a task of the session's runtime; the session's handle reports the result.
    pub fn spawn(self) {
        let runtime = self.shared.runtime.clone();
        let run = self.run();
        runtime.spawn(Box::pin(async move {
            if let Err(error) = run.await {
                tracing::debug!(%error, "session ended");
            }
        }));
    }
}

/// Without its driver a session is lost, and every waiting task must be woken.
impl<T> Drop for Connection<T> {
    fn drop(&mut self) {
        if !self.shared.look(|state| state.ended.is_some()) {
            let error = Error::ConnectionDropped;
            let woken = &mut self.woken;
            self.shared.look(|state| state.end(Err(error), woken));
            self.wake();
        }
        self.shared.handle_driver_dropped();
    }
}
