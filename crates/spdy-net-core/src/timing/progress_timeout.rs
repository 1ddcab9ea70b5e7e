//! Peers that take nothing, or send nothing, or too little of it: how long a write may stand still, and a
//! request's body, and how slow either may be.

use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_clock::Instant;

use crate::limit::{ConnectionLimit, LimitHits};
use crate::options::ServerOptions;
use crate::timing::block_reason::{BlockReason, SendProgress};

/// How slow a peer may be in one direction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ProgressDirection {
    /// It sends us something.
    PeerSends,
    /// It takes something from us.
    PeerReceives,
}

/// A wait that is given up when it lasts too long, or brings too little. Made once, used for many waits.
///
/// ```text
///   waiting   |-----|      |--------|   |----------|      time in between is ours, and not counted
///   came            40 B            0 B            ...
///   held up             |-----|                            nor is time in which the peer could do nothing
///             `------------- patience -------------'      so long a wait for less than `least`: given up
/// ```
pub struct ProgressTimeout {
    runtime: SharedRuntime,
    direction: ProgressDirection,
    timeout: Duration,
    /// Bytes that end the wait; fewer only pass the time.
    min_bytes: u64,
    hits: LimitHits,
    /// How long the peer could do nothing, so far: on its clock all that stands still.
    paused: Duration,
    /// Where the present wait began, on that clock.
    since: Option<Instant>,
    /// How long the waits before it lasted, in which too little came.
    waited: Duration,
    /// What came in them, bytes.
    came: u64,
    /// Set again only when it fires: most waits end long before.
    timer: Option<BoxFuture<()>>,
}

impl ProgressTimeout {
    /// For a peer that takes nothing, or a trickle.
    pub fn for_writes(runtime: SharedRuntime, options: &ServerOptions) -> Self {
        let stall = Self::new(
            runtime,
            ProgressDirection::PeerReceives,
            options.timeouts.write_timeout,
            options.timeouts.min_rate,
        );
        stall.with_hits(options)
    }

    /// For a server that takes nothing of what a client sends, or a trickle: at least `pace` bytes per second of waiting are expected.
    pub fn for_upload(runtime: SharedRuntime, patience: Duration, pace: u32) -> Self {
        Self::new(runtime, ProgressDirection::PeerReceives, patience, pace)
    }

    /// For a peer that sends nothing, or a trickle.
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

    /// The same, counted where a server's limits are.
    fn with_hits(mut self, options: &ServerOptions) -> Self {
        self.hits = options.hits.clone();
        self
    }

    /// The peer's clock: it stands while it is held up.
    fn now(&self) -> Instant {
        Instant::ZERO + (self.runtime.now() - Instant::ZERO).saturating_sub(self.paused)
    }

    /// The peer could do nothing for so long, so far.
    pub(super) fn set_paused(&mut self, so_far: Duration) {
        self.paused = so_far;
    }

    /// `bytes` moved: the wait is over, or there is none.
    pub fn moved(&mut self, bytes: usize) {
        if let Some(since) = self.since.take() {
            self.waited += self.now() - since;
        }
        self.count(bytes as u64);
    }

    /// `bytes` moved at `at` of what is waited for, and the wait goes on.
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

    /// Something is waited for; ready when that has lasted too long.
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

    /// `polled`, unless it is pending for too long. `moved` returns how many bytes of it are progress.
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
/// While its window is closed, the peer takes nothing of it, and its own time runs. While it is open, others have what room the
/// connection has, and its turn will come: whatever the connection takes is progress.
pub struct StreamProgressTimeout {
    own: ProgressTimeout,
    connection: ProgressTimeout,
    /// Bytes of the connection that were looked at.
    seen: u64,
}

impl StreamProgressTimeout {
    /// `make` makes a stall without a past.
    pub fn new(make: impl Fn() -> ProgressTimeout) -> Self {
        Self {
            own: make(),
            connection: make(),
            seen: 0,
        }
    }

    /// The stream has room for so many bytes, or waits for what is not the peer's to give.
    pub fn moved(&mut self, bytes: usize) {
        self.own.moved(bytes);
        self.connection.moved(0);
    }

    /// There is no room; ready when the peer is the cause of that for too long.
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

/// Why a peer was given up that stood still.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct ProgressTimeoutError(String);

/// Whether `error` comes of a peer that was given up since it stood still, and not of a transport that did so by itself.
pub fn is_progress_timeout(error: &(dyn std::error::Error + 'static)) -> bool {
    let of_stall = |error: &(dyn std::error::Error + 'static)| {
        let inner = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        inner.is_some_and(<dyn std::error::Error + Send + Sync>::is::<ProgressTimeoutError>)
    };
    std::iter::successors(Some(error), |error| error.source()).any(of_stall)
}
