//! Accepts the streams of a server session one by one, and controls the session by a handle.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use spdy_frame::header_block::HeaderBlock;
use spdy_frame::version::Version;
use spdy_session::session::Stats;

use crate::error::Error;
use crate::session::incoming::{Incoming, poll_next, refuse_all, try_next};
use crate::session::shared::Shared;
use crate::session::state::State;
use crate::stream::{OpenOptions, Stream, open_raw};

/// The streams that the peer opens, with at most `max_concurrent_streams` queued. Dropping it shuts the session down.
#[derive(Debug)]
pub struct Accept {
    pub(super) shared: Arc<Shared>,
}

impl Accept {
    /// The next stream; `None` when the session has ended. Cancel safe.
    pub async fn next(&mut self) -> Option<Incoming> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Like [`next`](Self::next), for hand-written futures.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Incoming>> {
        poll_next(&self.shared, cx)
    }

    /// The next stream, if one is queued.
    pub(crate) fn try_next(&mut self) -> Option<Incoming> {
        try_next(&self.shared)
    }

    /// A handle for counters, shutdown and the like, usable in any task.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle {
            shared: self.shared.clone(),
        }
    }
}

impl Drop for Accept {
    fn drop(&mut self) {
        let now = self.shared.runtime.now();
        self.shared.command(|state| {
            refuse_all(state);
            state.shutdown(now);
        });
    }
}

impl State {
    /// Sends GOAWAY now: clients of a server need it to switch to another session.
    fn shutdown(&mut self, now: spdy_clock::Instant) {
        if self.ended.is_none() && !self.closing {
            self.machine.shutdown(now);
        }
        self.closing = true;
    }
}

/// A handle of a server session.
#[derive(Clone, Debug)]
pub struct Handle {
    shared: Arc<Shared>,
}

impl Handle {
    /// Opens a raw stream to the client, without HTTP, as either side may (SPDY/3.1 §2.3). It has no associated stream; for a
    /// request's associated streams use [`Responder::push`](crate::server::Responder::push).
    ///
    /// Unlike a client's stream it is not queued: a browser, and any client that accepts no pushes, has a limit of 0.
    /// [`Stream::reply`], or the end of the stream, shows if the client accepts this one. A client of this crate does after
    /// [`handshake_with_streams`](crate::client::Builder::handshake_with_streams).
    ///
    /// ```
    /// use spdy::{HeaderBlock, SharedRuntime, client, server};
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (near, far) = tokio::io::duplex(4096);
    /// // `offers` alone keeps the session open: this client sends no requests.
    /// let (_, mut offers, connection) =
    ///     client::Builder::default().handshake_with_streams(near, SharedRuntime::tokio());
    /// connection.spawn();
    /// let (accept, connection) = server::handshake(far);
    /// connection.spawn();
    ///
    /// let headers = HeaderBlock::from_iter([("topic", "weather")]);
    /// let mut stream = accept.handle().open(headers, server::OpenOptions::default())?;
    /// stream.write_all(b"rain").await?;
    /// stream.shutdown().await?;
    ///
    /// let offered = offers.next().await.expect("the server opened a stream");
    /// assert_eq!(offered.headers().get("topic"), Some(&b"weather"[..]));
    /// let mut text = String::new();
    /// offered.accept(&HeaderBlock::new())?.read_to_string(&mut text).await?;
    /// assert_eq!(text, "rain");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::TooManyStreams`] if the client's limit is reached or 0; [`Error::Closing`] if the session accepts no new streams;
    /// [`Error::Headers`] if the headers cannot be encoded.
    pub fn open(&self, headers: HeaderBlock, options: OpenOptions) -> Result<Stream, Error> {
        let stream = open_raw(&self.shared, headers, options, false)?;
        let id = stream.id();
        Ok(Stream::new(stream, id))
    }

    /// Sends GOAWAY: no new streams are accepted. Open ones continue; then the session closes.
    pub fn shutdown(&self) {
        let now = self.shared.runtime.now();
        self.shared.command(|state| state.shutdown(now));
    }

    /// Ends the session at once: open streams are lost.
    pub fn abort(&self) {
        self.shared.abort();
    }

    /// Sends a PING and returns its round trip time.
    ///
    /// # Errors
    ///
    /// [`Error::Closing`] if the session ends before the echo. Some peers never answer: use a timeout.
    pub async fn ping(&self) -> Result<Duration, Error> {
        self.shared.ping().await
    }

    /// Waits until the session has ended.
    pub async fn closed(&self) {
        self.shared.ended().await;
    }

    /// Why the session was lost; `None` if it was not.
    #[must_use]
    pub fn error(&self) -> Option<Error> {
        self.shared.error()
    }

    /// Number of open streams.
    #[must_use]
    pub fn active_streams(&self) -> usize {
        self.shared.look(|state| state.active_streams())
    }

    /// The counters so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.look(|state| state.machine.stats())
    }

    /// The version of SPDY.
    #[must_use]
    pub fn version(&self) -> Version {
        self.shared.version
    }
}
