//! Timeouts of peers that send or accept nothing, or too little: for writes, and for the body of a request.

use std::fmt;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_clock::Instant;

use crate::limit::{ConnectionLimit, LimitHits};
use crate::options::ServerOptions;
use crate::timing::block_reason::{BlockReason, SendProgress};

/// The direction of a wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ProgressDirection {
    /// The peer sends.
    PeerSends,
    /// The peer receives.
    PeerReceives,
}

/// A timeout for waits that last too long, or have too little progress. Created once and used for many waits.
///
/// ```text
///   waiting   |-----|      |--------|   |----------|      time in between is not counted
///   received        40 B            0 B            ...
///   paused              |-----|                            the peer could do nothing: not counted either
///             `------------- patience -------------'      less than `min_bytes` in this time: timeout
/// ```
pub struct ProgressTimeout {
    runtime: SharedRuntime,
    direction: ProgressDirection,
    timeout: Duration,
    /// Bytes that complete the wait; with fewer it continues.
    min_bytes: u64,
    hits: LimitHits,
    /// Total time in which the peer could do nothing; it is not counted.
    paused: Duration,
    /// When the current wait began, on the peer's clock.
    since: Option<Instant>,
    /// Total duration of the earlier waits with too little progress.
    waited: Duration,
    /// Bytes that arrived in these waits.
    came: u64,
    /// Reset only when it expires: most waits end long before.
    timer: Option<BoxFuture<()>>,
}

impl fmt::Debug for ProgressTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgressTimeout")
            .field("direction", &self.direction)
            .field("timeout", &self.timeout)
            .field("min_bytes", &self.min_bytes)
            .field("waited", &self.waited)
            .field("came", &self.came)
            .finish_non_exhaustive()
    }
}

impl ProgressTimeout {
    /// For a peer that accepts nothing, or too little.
    pub fn for_writes(runtime: SharedRuntime, options: &ServerOptions) -> Self {
        let stall = Self::new(
            runtime,
            ProgressDirection::PeerReceives,
            options.timeouts.write_timeout,
            options.timeouts.min_rate,
        );
        stall.with_hits(options)
    }

    /// For a server that accepts nothing of a client's upload, or too little: at least `pace` bytes per second of waiting are
    /// expected.
    pub fn for_upload(runtime: SharedRuntime, patience: Duration, pace: u32) -> Self {
        Self::new(runtime, ProgressDirection::PeerReceives, patience, pace)
    }

    /// For a peer that sends nothing, or too little.
    pub(crate) fn for_reads(runtime: SharedRuntime, options: &ServerOptions) -> Self {
        let stall = Self::new(
            runtime,
            ProgressDirection::PeerSends,
            options.timeouts.read_timeout,
            options.timeouts.min_rate,
        );
        stall.with_hits(options)
    }

    fn new(
        runtime: SharedRuntime,
        direction: ProgressDirection,
        patience: Duration,
        min_rate: u32,
    ) -> Self {
        let least = patience.as_secs().saturating_mul(min_rate.into());
        Self {
            runtime,
            direction,
            timeout: patience,
            min_bytes: least.max(1),
            hits: LimitHits::default(),
            paused: Duration::ZERO,
            since: None,
            waited: Duration::ZERO,
            came: 0,
            timer: None,
        }
    }

    /// Also counts it among the server's limits.
    fn with_hits(mut self, options: &ServerOptions) -> Self {
        self.hits = options.hits.clone();
        self
    }

    /// The peer's clock, which stops while the peer can do nothing.
    fn now(&self) -> Instant {
        Instant::ZERO + (self.runtime.now() - Instant::ZERO).saturating_sub(self.paused)
    }

    /// Sets the total time in which the peer could do nothing.
    pub(super) fn set_paused(&mut self, so_far: Duration) {
        self.paused = so_far;
    }

    /// Records that `bytes` were transferred: the wait is over, or there is none.
    pub fn moved(&mut self, bytes: usize) {
        if let Some(since) = self.since.take() {
            self.waited += self.now() - since;
        }
        self.count(bytes as u64);
    }

    /// Records that `bytes` were transferred at `at`; the wait continues.
    fn record_partial(&mut self, bytes: u64, at: Instant) {
        if bytes == 0 {
            return;
        }
        if let Some(since) = &mut self.since {
            let at = at.max(*since);
            self.waited += at - *since;
            *since = at;
        }
        self.count(bytes);
    }

    fn count(&mut self, bytes: u64) {
        self.came = self.came.saturating_add(bytes);
        if self.came >= self.min_bytes {
            (self.waited, self.came) = (Duration::ZERO, 0);
        }
    }

    /// Waits for the peer; ready when that has lasted too long.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let now = self.now();
        let since = *self.since.get_or_insert(now);
        let deadline = since + self.timeout.saturating_sub(self.waited) + self.paused;
        loop {
            let timer = self
                .timer
                .get_or_insert_with(|| self.runtime.sleep_until(deadline));
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.timer = None;
            if self.runtime.now() >= deadline {
                return Poll::Ready(self.error());
            }
        }
    }

    fn error(&self) -> io::Error {
        use ProgressDirection::{PeerReceives, PeerSends};
        let limit = match (self.direction, self.came) {
            (PeerSends, 0) => ConnectionLimit::ReadTimeout,
            (PeerReceives, 0) => ConnectionLimit::WriteTimeout,
            (PeerSends, _) => ConnectionLimit::MinReadRate,
            (PeerReceives, _) => ConnectionLimit::MinWriteRate,
        };
        self.hits.count(limit);
        let deed = match self.direction {
            PeerSends => "sent",
            PeerReceives => "accepted",
        };
        let (patience, came, least) = (self.timeout, self.came, self.min_bytes);
        let reason = match came {
            0 => format!("the peer {deed} nothing for {patience:?}"),
            _ => {
                format!("the peer {deed} {came} bytes in {patience:?} of waiting, expected {least}")
            }
        };
        io::Error::new(io::ErrorKind::TimedOut, ProgressTimeoutError(reason))
    }

    /// Returns `polled`, unless it is pending for too long. `moved` returns how many bytes of it are progress.
    pub(super) fn guard<T>(
        &mut self,
        cx: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
        moved: impl FnOnce(&T) -> usize,
    ) -> Poll<io::Result<T>> {
        match polled {
            Poll::Pending => self.poll(cx).map(Err),
            Poll::Ready(done) => {
                self.moved(done.as_ref().map_or(0, moved));
                Poll::Ready(done)
            }
        }
    }
}

/// The same for a stream of HTTP/2, which waits for its own window or for the connection.
///
/// While its window is closed, the peer accepts nothing of it, and the stream's own timeout runs. While it is open, other streams
/// use the room of the connection, and the stream will have its turn: all output of the connection counts as progress.
#[derive(Debug)]
pub struct StreamProgressTimeout {
    own: ProgressTimeout,
    connection: ProgressTimeout,
    /// Bytes of the connection that were already counted.
    seen: u64,
}

impl StreamProgressTimeout {
    /// `make` creates a new timeout.
    pub fn new(make: impl Fn() -> ProgressTimeout) -> Self {
        Self {
            own: make(),
            connection: make(),
            seen: 0,
        }
    }

    /// Records that the stream has room for `bytes`, or waits for something that does not depend on the peer.
    pub fn moved(&mut self, bytes: usize) {
        self.own.moved(bytes);
        self.connection.moved(0);
    }

    /// Waits for room; ready when the peer is the cause of that for too long.
    pub fn poll(&mut self, cx: &mut Context<'_>, awaited: BlockReason) -> Poll<io::Error> {
        match awaited {
            BlockReason::Window => {
                self.connection.moved(0);
                self.own.poll(cx)
            }
            BlockReason::Connection(SendProgress { bytes, at }) => {
                self.own.moved(0);
                self.connection.record_partial(bytes - self.seen, at);
                self.seen = bytes;
                self.connection.poll(cx)
            }
        }
    }
}

/// The error of a timeout of a peer.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct ProgressTimeoutError(String);

/// True if `error` is the timeout of a peer without progress, not a timeout of the transport itself.
pub fn is_progress_timeout(error: &(dyn std::error::Error + 'static)) -> bool {
    let of_stall = |error: &(dyn std::error::Error + 'static)| {
        let inner = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        inner.is_some_and(<dyn std::error::Error + Send + Sync>::is::<ProgressTimeoutError>)
    };
    std::iter::successors(Some(error), |error| error.source()).any(of_stall)
}
