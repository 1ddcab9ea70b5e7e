//! Copies bytes both ways between a client and an origin, once they use another protocol than HTTP.
//!
//! ```text
//!  client ──▶ 8 KiB ──▶ origin      a side is not read while the other side does not read
//!         ◀── 8 KiB ◀──
//!    one ends its half, or is cut off ─▶ its bytes are delivered, the other half is ended, and bytes in the other direction are still delivered
//!    nothing passes for `idle`, or we stop ─▶ both get a close frame, if one fits in the stream, and have a second to close
//! ```

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::{Either, join, select};
use parking_lot::{Mutex, MutexGuard};
use spdy::forward_io;
use spdy::runtime::SharedRuntime;
use spdy_clock::Instant;
use spdy_net::latch::Latch;
use spdy_net::network::BoxIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf, copy_bidirectional};

use crate::websocket::frames::Frames;

/// How long both sides have to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The size of one read of discarded bytes.
const DISCARD_BUFFER_BYTES: usize = 4096;

/// What ended a tunnel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TunnelEnd {
    /// The client, before its origin did.
    Client,
    /// The origin.
    Origin,
    /// Nothing passed for too long.
    Idle,
    /// The program stops.
    Shutdown,
    /// A connection failed, or a peer did not read, before either side ended it.
    Error,
}

impl TunnelEnd {
    /// The end by the other side.
    fn other(self) -> Self {
        match self {
            Self::Client => Self::Origin,
            Self::Origin => Self::Client,
            end => end,
        }
    }

    /// The label of its counter.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Origin => "origin",
            Self::Idle => "idle",
            Self::Shutdown => "shutdown",
            Self::Error => "error",
        }
    }
}

/// The result of a tunnel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TunnelStats {
    pub(crate) end: TunnelEnd,
    /// Bytes that were written to the origin.
    pub(crate) to_origin: u64,
    /// Bytes that were written to the client.
    pub(crate) to_client: u64,
}

impl TunnelStats {
    /// The result of a tunnel that ended before it began.
    pub(crate) const NOTHING: Self = Self {
        end: TunnelEnd::Error,
        to_origin: 0,
        to_client: 0,
    };
}

/// Carries bytes between `client` and `origin` until both have ended, nothing passes for `idle`, or `stop` is set.
pub(crate) async fn run(
    client: BoxIo,
    origin: BoxIo,
    idle: Duration,
    stop: &Latch,
    runtime: &SharedRuntime,
) -> TunnelStats {
    let activity = TunnelActivity::new(runtime.now());
    let side = |io, end| Side {
        io,
        end,
        activity: &activity,
        runtime,
        written_bytes: 0,
        frames: Frames::default(),
    };
    let (mut client, mut origin) = (
        side(client, TunnelEnd::Client),
        side(origin, TunnelEnd::Origin),
    );
    let end = {
        let copy = pin!(copy_bidirectional(&mut client, &mut origin));
        let idle_timeout = pin!(activity.idle_timeout(idle, runtime));
        let idle_or_stop = select(idle_timeout, stop.wait());
        match select(copy, idle_or_stop).await {
            Either::Left((Ok(_), _)) => activity.lock().first.unwrap_or(TunnelEnd::Error),
            Either::Left((Err(error), _)) => {
                tracing::debug!(%error, "WebSocket tunnel failed");
                // Browsers close the connection after their last frame without ending TLS.
                activity.lock().first.unwrap_or(TunnelEnd::Error)
            }
            Either::Right((Either::Left(_), _)) => TunnelEnd::Idle,
            Either::Right((Either::Right(_), _)) => TunnelEnd::Shutdown,
        }
    };
    if matches!(end, TunnelEnd::Idle | TunnelEnd::Shutdown) {
        let both = pin!(join(client.close(false), origin.close(true)));
        select(both, runtime.sleep_until(runtime.now() + CLOSE_TIMEOUT)).await;
    }
    TunnelStats {
        end,
        to_origin: origin.written_bytes,
        to_client: client.written_bytes,
    }
}

/// The state that both sides share.
struct TunnelActivity(Mutex<ActivityState>);

struct ActivityState {
    /// When something passed last.
    at: Instant,
    /// How the tunnel ended first: by a close frame, or because a side ended its half.
    first: Option<TunnelEnd>,
}

impl TunnelActivity {
    fn new(at: Instant) -> Self {
        Self(Mutex::new(ActivityState { at, first: None }))
    }

    fn lock(&self) -> MutexGuard<'_, ActivityState> {
        self.0.lock()
    }

    /// Completes when nothing has passed for `idle`.
    async fn idle_timeout(&self, idle: Duration, runtime: &SharedRuntime) {
        loop {
            let due = self.lock().at + idle;
            if runtime.now() >= due {
                return;
            }
            runtime.sleep_until(due).await;
        }
    }
}

/// The connection of one side, and its state.
struct Side<'a> {
    io: BoxIo,
    /// The end that this side causes.
    end: TunnelEnd,
    activity: &'a TunnelActivity,
    runtime: &'a SharedRuntime,
    /// Bytes that were written to it.
    written_bytes: u64,
    /// Those bytes, as frames.
    frames: Frames,
}

impl Side<'_> {
    /// Sends a close frame if one fits in the byte stream, and waits for the other side to agree.
    async fn close(&mut self, masked: bool) {
        if let Some(frame) = self.frames.close_frame(masked)
            && self.io.write_all(&frame).await.is_err()
        {
            return;
        }
        if self.io.shutdown().await.is_err() {
            return;
        }
        // A connection that is closed with unread bytes is reset, and the last bytes sent are lost with it.
        let mut discarded = [0; DISCARD_BUFFER_BYTES];
        while self.io.read(&mut discarded).await.is_ok_and(|len| len > 0) {}
    }
}

/// Whether a reader takes this error for an end: TCP's without TLS's, or a reset.
fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionReset, UnexpectedEof};
    matches!(error.kind(), ConnectionReset | UnexpectedEof)
}

impl AsyncRead for Side<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = into.filled().len();
        let polled = match Pin::new(&mut this.io).poll_read(cx, into) {
            // Earlier bytes are for the other side, and its response may still be read.
            Poll::Ready(Err(error)) if is_end(&error) => Poll::Ready(Ok(())),
            polled => polled,
        };
        if matches!(polled, Poll::Ready(Ok(()))) && into.filled().len() == before {
            this.activity.lock().first.get_or_insert(this.end);
        }
        polled
    }
}

impl AsyncWrite for Side<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.io).poll_write(cx, bytes);
        if let Poll::Ready(Ok(len)) = polled {
            this.frames.advance(&bytes[..len]);
            this.written_bytes += len as u64;
            let mut state = this.activity.lock();
            state.at = this.runtime.now();
            if this.frames.is_closed() {
                // The side that closes the connection first does not matter: servers should do it (RFC 6455 §7.1.1).
                state.first.get_or_insert(this.end.other());
            }
        }
        polled
    }

    forward_io!(poll_flush, poll_shutdown => self.io);
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Arc;

    use spdy_testkit::clock::Clock;
    use tokio::io::duplex;

    use super::*;

    /// Returns its bytes, then fails, and accepts everything that is written.
    struct CutConnection {
        input: VecDeque<u8>,
        how: io::ErrorKind,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl AsyncRead for CutConnection {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            into: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if self.input.is_empty() {
                return Poll::Ready(Err(self.how.into()));
            }
            let most = into.remaining().min(self.input.len());
            let bytes: Vec<u8> = self.input.drain(..most).collect();
            into.put_slice(&bytes);
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for CutConnection {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.written.lock().extend(bytes);
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// Origins that ended TCP without ending TLS lost bytes that a client had not received yet, including the close frame.
    #[tokio::test]
    async fn tunnel_delivers_both_directions_after_half_close() {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        for (how, expected, expected_end) in [
            (UnexpectedEof, 6000, TunnelEnd::Origin),
            (ConnectionReset, 6000, TunnelEnd::Origin),
            (BrokenPipe, 1000, TunnelEnd::Error),
        ] {
            let written = Arc::<Mutex<Vec<u8>>>::default();
            let origin = CutConnection {
                input: vec![0; 6000].into(),
                how,
                written: written.clone(),
            };
            let (mut client, far) = duplex(1000);
            let runtime = SharedRuntime::new(Clock::default());
            let running = tokio::spawn(async move {
                let (idle, stop) = (Duration::from_secs(300), Latch::new());
                run(Box::new(far), Box::new(origin), idle, &stop, &runtime).await
            });
            let mut received = Vec::new();
            client
                .read_to_end(&mut received)
                .await
                .expect("a clean end");
            assert_eq!(received.len(), expected, "{how}");
            client.write_all(b"goodbye").await.ok();
            drop(client);
            let stats = running.await.expect("no panic");
            assert_eq!(stats.end, expected_end, "{how}");
            let all_back = expected_end == TunnelEnd::Origin;
            assert_eq!(*written.lock() == b"goodbye", all_back, "{how}");
        }
    }
}
