//! Receive windows of a server's streams: they start small, and over HTTP/2 they grow if the body is read fast.
//!
//! ```text
//!   stream       64 KiB --a whole window read within a second--> twice as much .. 1 MiB
//!                       <--too many uploads for that ----------- half as much
//!   connection   64 KiB for each stream that may be open, and 4 MiB of growth for all of them
//! ```
//!
//! A window that is smaller than what a reader consumes in a round trip limits the client to one window per round trip. The round-trip
//! time is not measured here, but it is rarely longer than a second.
//!
//! HTTP/2 has one size for the windows of all streams (SETTINGS_INITIAL_WINDOW_SIZE), so it grows with the fastest reader, but only
//! so far that every open upload can have its window and every other stream its first 64 KiB. SPDY has a window for each stream
//! (spdy-session/src/state/window.rs). QUIC could have that too, but quinn has one size that never changes, so over HTTP/3 windows
//! have their maximum size from the start.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use spdy::runtime::SharedRuntime;
use spdy_clock::Instant;

/// Receive window of a stream before a whole window of it was read, bytes.
pub const FIRST_WINDOW_BYTES: u32 = 64 * 1024;
/// Maximum size after growth, bytes: 80 Mbit/s at 100 ms.
pub const GROWN_WINDOW_BYTES: u32 = 1024 * 1024;
/// Limit of the growth of the windows of all streams of a connection, bytes.
const GROWTH_BYTES: u32 = 4 * 1024 * 1024;
/// The maximum window of HTTP/2 (RFC 9113 §6.9.1).
const MAX_WINDOW_BYTES: u32 = (1 << 31) - 1;
/// A reader is fast if it consumes a whole window within this time.
const GROWTH_PERIOD: Duration = Duration::from_secs(1);

/// Receive window of a connection with at most `streams` streams, bytes: the first window of each, so that unread streams do not
/// block others, and the growth.
pub fn connection_window(streams: u32) -> u32 {
    let first = streams.max(1).saturating_mul(FIRST_WINDOW_BYTES);
    let growth = streams
        .max(1)
        .saturating_mul(GROWN_WINDOW_BYTES - FIRST_WINDOW_BYTES)
        .min(GROWTH_BYTES);
    first.saturating_add(growth).min(MAX_WINDOW_BYTES)
}

/// The maximum window for `uploads` concurrent uploads, bytes.
fn allowed(uploads: u32) -> u32 {
    let mut window = GROWN_WINDOW_BYTES;
    while window > FIRST_WINDOW_BYTES
        && (window - FIRST_WINDOW_BYTES).saturating_mul(uploads) > GROWTH_BYTES
    {
        window /= 2;
    }
    window
}

/// The size of the windows of one HTTP/2 connection's streams. Clones share it.
#[derive(Clone, Debug)]
pub struct UploadWindows {
    state: Arc<Mutex<State>>,
    runtime: SharedRuntime,
}

#[derive(Debug)]
struct State {
    /// Number of bodies that are being received.
    uploads: u32,
    /// The size that the windows should have.
    target: u32,
    /// The window size in the last SETTINGS sent.
    sent: u32,
    /// The task that sends SETTINGS.
    connection: Waker,
}

impl State {
    fn set(&mut self, target: u32) -> Option<Waker> {
        self.target = target;
        (target != self.sent).then(|| self.connection.clone())
    }
}

impl UploadWindows {
    /// The windows of a connection whose streams begin with [`FIRST_WINDOW_BYTES`].
    pub fn new(runtime: SharedRuntime) -> Self {
        let state = State {
            uploads: 0,
            target: FIRST_WINDOW_BYTES,
            sent: FIRST_WINDOW_BYTES,
            connection: Waker::noop().clone(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            runtime,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Begins a body.
    pub fn open(&self) -> Upload {
        let waker = {
            let mut state = self.lock();
            state.uploads += 1;
            let target = state.target.min(allowed(state.uploads));
            state.set(target)
        };
        waker.into_iter().for_each(Waker::wake);
        Upload {
            windows: self.clone(),
            since: None,
            read: 0,
        }
    }

    /// The size that SETTINGS should announce, if it differs from that in the last SETTINGS. The task of `cx` is woken when that
    /// changes.
    pub fn poll_change(&self, cx: &Context<'_>) -> Option<u32> {
        let mut state = self.lock();
        state.connection.clone_from(cx.waker());
        (state.target != state.sent).then_some(state.target)
    }

    /// Records that SETTINGS with `size` were sent.
    pub fn settings_sent(&self, size: u32) {
        self.lock().sent = size;
    }
}

/// A body that is being received.
#[derive(Debug)]
pub struct Upload {
    windows: UploadWindows,
    /// When counting of `read` began: at the first byte, or when the last whole window was read.
    since: Option<Instant>,
    /// Bytes.
    read: usize,
}

impl Upload {
    /// Records that the reader consumed `bytes`.
    pub fn read(&mut self, bytes: usize) {
        let now = self.windows.runtime.now();
        let since = *self.since.get_or_insert(now);
        self.read += bytes;
        let waker = {
            let mut state = self.windows.lock();
            if self.read < state.target as usize {
                return;
            }
            (self.since, self.read) = (Some(now), 0);
            if now - since > GROWTH_PERIOD {
                return;
            }
            let target = (state.target * 2).min(allowed(state.uploads));
            state.set(target)
        };
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.windows.lock().uploads -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spdy_testkit::clock::Clock;

    fn windows() -> (UploadWindows, Clock) {
        let time = Clock::default();
        (UploadWindows::new(SharedRuntime::new(time.clone())), time)
    }

    /// The window size that the next SETTINGS frame announces.
    fn next(windows: &UploadWindows) -> Option<u32> {
        let change = windows.poll_change(&Context::from_waker(Waker::noop()));
        change
            .into_iter()
            .for_each(|size| windows.settings_sent(size));
        change
    }

    #[test]
    fn the_window_doubles_with_each_window_that_is_read_within_a_second() {
        let (windows, time) = windows();
        let mut upload = windows.open();
        let mut size = FIRST_WINDOW_BYTES;
        while size < GROWN_WINDOW_BYTES {
            upload.read(size as usize / 2);
            assert_eq!(next(&windows), None);
            time.push(GROWTH_PERIOD);
            upload.read(size as usize / 2);
            size *= 2;
            assert_eq!(next(&windows), Some(size));
        }
        upload.read(100 * size as usize);
        assert_eq!(next(&windows), None, "the window has its maximum size");
    }

    #[test]
    fn a_reader_that_takes_longer_for_a_window_gets_no_more() {
        let (windows, time) = windows();
        let mut upload = windows.open();
        for _ in 0..10 {
            upload.read(FIRST_WINDOW_BYTES as usize / 2);
            time.push(GROWTH_PERIOD + Duration::from_millis(1));
        }
        assert_eq!(next(&windows), None);
    }

    #[test]
    fn many_uploads_have_smaller_windows_and_together_no_more_than_the_growth() {
        let (windows, _time) = windows();
        let mut uploads = vec![windows.open()];
        (0..5).for_each(|_| uploads[0].read(GROWN_WINDOW_BYTES as usize));
        assert_eq!(next(&windows), Some(GROWN_WINDOW_BYTES));
        let mut size = GROWN_WINDOW_BYTES;
        for open in 2..=100 {
            uploads.push(windows.open());
            size = next(&windows).unwrap_or(size);
            let growth = open * u64::from(size - FIRST_WINDOW_BYTES);
            assert!(growth <= GROWTH_BYTES.into(), "{open} of {size}");
        }
        assert_eq!(size, FIRST_WINDOW_BYTES);
        uploads.truncate(2);
        assert_eq!(
            next(&windows),
            None,
            "the window grows when the reader keeps up"
        );
        uploads[0].read(FIRST_WINDOW_BYTES as usize);
        assert_eq!(next(&windows), Some(2 * FIRST_WINDOW_BYTES));
    }

    #[test]
    fn a_connection_has_room_for_the_first_window_of_every_stream_and_the_growth() {
        assert_eq!(connection_window(0), GROWN_WINDOW_BYTES);
        assert_eq!(connection_window(1), GROWN_WINDOW_BYTES);
        assert_eq!(
            connection_window(100),
            100 * FIRST_WINDOW_BYTES + GROWTH_BYTES
        );
        assert_eq!(connection_window(u32::MAX), MAX_WINDOW_BYTES);
    }
}
