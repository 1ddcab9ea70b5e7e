//! Applies the version detection of `state/version_detection.rs` to a session: probes the peer, and switches to SPDY/3 or 3.1.

use spdy_clock::Instant;

use crate::session::endpoint::Session;
use crate::state::version_detection::DetectionState;
use crate::state::window::INITIAL_WINDOW;

impl Session {
    /// True if a session window limits our DATA.
    pub(crate) fn obeys_session_window(&self) -> bool {
        self.session_window || self.version_detection.is_pending()
    }

    /// True if consumed bytes of the session are returned to the peer by WINDOW_UPDATE.
    pub(crate) fn grants_session_window(&self) -> bool {
        // after the first WINDOW_UPDATE the usual threshold applies, as in any session of 3.1
        let opened =
            self.version_detection.granted || self.receive_window.available() <= INITIAL_WINDOW / 2;
        self.session_window || (self.version_detection.is_pending() && opened)
    }

    /// Probes the peer's version if DATA waits for a session window that the peer may not have.
    pub(crate) fn probe_version(&mut self) {
        let waits = self.outbound.data_bytes > 0 && self.send.credit() == 0;
        if self.version_detection.state == DetectionState::Unknown && waits {
            self.version_detection.state = DetectionState::ProbeQueued;
            self.pings.request_behind_data(self.now);
        }
    }

    /// To be called when the transport has accepted all output of [`poll_transmit`](Self::poll_transmit), at `now`. With
    /// [`detect_session_window`](crate::config::Config::detect_session_window) a driver must call it: otherwise the session waits
    /// forever for a peer that does not answer PING.
    pub fn handle_transmitted(&mut self, now: Instant) {
        self.advance(now);
        if self.version_detection.state == DetectionState::ProbeQueued && !self.pings.is_unwritten()
        {
            self.version_detection.state = DetectionState::ProbeSent(now);
        }
    }

    /// The peer uses 3.1: both session windows apply, counted from the first byte.
    pub(crate) fn set_version_31(&mut self) {
        self.version_detection.state = DetectionState::Decided;
        self.session_window = true;
        self.open_session_window();
    }

    /// The peer uses 3, or did not answer the probe. A later WINDOW_UPDATE for stream 0 still shows 3.1.
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
