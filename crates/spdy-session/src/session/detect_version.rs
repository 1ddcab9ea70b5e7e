//! Applies the version detection of `state/version_detection.rs` to a session: probes the peer, and turns to SPDY/3 or 3.1.

use spdy_clock::Instant;

use crate::session::endpoint::Session;
use crate::state::version_detection::DetectionState;
use crate::state::window::INITIAL_WINDOW;

impl Session {
    /// Whether DATA of ours is bounded by a window of the session.
    pub(crate) fn obeys_session_window(&self) -> bool {
        self.session_window || self.version_detection.is_pending()
    }

    /// Whether the session is to get credit, if it is owed any.
    pub(crate) fn grants_session_window(&self) -> bool {
        // what the first credit opened is judged by its own size, as in any session of 3.1
        let opened =
            self.version_detection.granted || self.receive_window.available() <= INITIAL_WINDOW / 2;
        self.session_window || (self.version_detection.is_pending() && opened)
    }

    /// Probes the peer's version, if DATA waits for a window that the peer may not have.
    pub(crate) fn probe_version(&mut self) {
        let waits = self.outbound.data_bytes > 0 && self.send.credit() == 0;
        if self.version_detection.state == DetectionState::Unknown && waits {
            self.version_detection.state = DetectionState::ProbeQueued;
            self.pings.request_behind_data(self.now);
        }
    }

    /// Call it when the transport has accepted all output of [`poll_transmit`](Self::poll_transmit), at `now`. With
    /// [`detect_session_window`](crate::config::Config::detect_session_window) a driver must call this: otherwise the
    /// session waits for ever for a peer that answers no PING.
    pub fn handle_transmitted(&mut self, now: Instant) {
        self.advance(now);
        if self.version_detection.state == DetectionState::ProbeQueued && !self.pings.is_unwritten()
        {
            self.version_detection.state = DetectionState::ProbeSent(now);
        }
    }

    /// The peer uses 3.1: both windows count from the first byte.
    pub(crate) fn set_version_31(&mut self) {
        self.version_detection.state = DetectionState::Decided;
        self.session_window = true;
        self.open_session_window();
    }

    /// The peer uses 3, or did not answer the probe. WINDOW_UPDATE for stream 0 still shows 3.1.
    pub(crate) fn set_version_3(&mut self) {
        self.version_detection.state = DetectionState::Decided;
        self.release_delayed(false);
    }

    /// The echo of a PING arrived.
    pub(crate) fn handle_probe_echo(&mut self) {
        if matches!(
            self.version_detection.state,
            DetectionState::ProbeQueued | DetectionState::ProbeSent(_)
        ) {
            self.set_version_3();
        }
    }
}
