//! Flow control of received DATA: which WINDOW_UPDATE is next, how windows grow, and backpressure (SPDY/3.1 §2.6.8).

use std::time::Duration;

use spdy_clock::Instant;
use spdy_frame::frame::WindowUpdate;
use spdy_frame::stream_id::StreamId;

use crate::config::SettingsTiming;
use crate::session::endpoint::Session;
use crate::state::window::MAX_WINDOW;

/// A session window smaller than this counts as closed, bytes: OkHttp holds up to 8 KiB back if the window is nearly closed.
const MIN_OPEN_WINDOW: i64 = 8 * 1024;

impl Session {
    /// Total time until `now` in which the peer could send no DATA on any stream, because received DATA was not
    /// [consumed](Self::consume).
    #[must_use]
    pub fn backpressure_time(&self, now: Instant) -> Duration {
        self.backpressure.time(now)
    }

    /// Without windows: true if unconsumed DATA has reached its limit, so that nothing more is read.
    pub(crate) fn is_full(&self) -> bool {
        !self.stream_windows && self.unread >= self.config.unread_limit()
    }

    /// Updates the state of backpressure; to be called when the peer's credit may have changed.
    pub(crate) fn update_backpressure(&mut self) {
        let no_credit = self.session_window && self.receive_window.available() < MIN_OPEN_WINDOW;
        let closed = self.is_full() || (self.stream_windows && no_credit);
        self.backpressure.update(closed, self.now);
    }

    /// The next WINDOW_UPDATE: that of the session first, because all streams stop without it.
    pub(crate) fn next_grant(&mut self) -> Option<WindowUpdate> {
        if self.closing.has_ended() {
            return None;
        }
        // an initial SETTINGS that waits for the peer's first frame also delays this
        let may_write = self.outbound.initial_settings_done
            || self.config.settings_timing == SettingsTiming::Never;
        if self.grants_session_window() && may_write && self.receive_window.is_session_update_due()
        {
            let (stream_id, delta) = (StreamId::ZERO, self.receive_window.grant());
            self.version_detection.record_credit();
            self.update_backpressure();
            return Some(WindowUpdate { stream_id, delta });
        }
        while let Some(id) = self.outbound.window_updates.pop_front() {
            // no grant for a stream that was removed, or has received FIN since
            let Some(stream) = self.streams.get_mut(id) else {
                continue;
            };
            stream.grant_queued = false;
            if !stream.needs_grants() {
                continue;
            }
            if stream.discarded.is_none() && stream.receive_window.keeps_up(self.now) {
                self.grow_window(id);
            }
            if let Some(stream) = self.streams.get_mut(id) {
                return Some(WindowUpdate {
                    stream_id: id,
                    delta: stream.receive_window.grant(),
                });
            }
        }
        None
    }

    /// Doubles the window of a stream whose owner keeps up with the peer, as far as the limits allow. The session
    /// window grows with it, so that other streams keep their share.
    fn grow_window(&mut self, id: StreamId) {
        let (most, in_all) = (
            i64::from(self.config.grown_window_bytes).min(MAX_WINDOW),
            i64::from(self.config.window_growth_bytes),
        );
        let remaining = (in_all - self.streams.window_growth()).max(0);
        if let Some(stream) = self.streams.get_mut(id) {
            let of_session = self.receive_window.room_to_grow(MAX_WINDOW);
            let bytes = stream
                .receive_window
                .room_to_grow(most)
                .min(remaining)
                .min(of_session);
            stream.receive_window.grow(bytes);
            self.receive_window.grow(bytes);
        }
    }
}
