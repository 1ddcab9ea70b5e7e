//! SPDY/3 or 3.1? On the wire they have the same number, and no version was negotiated (SPDY/3.1 §2.2.1).
//!
//! They differ in the session's window alone, so the rules of 3.1 apply until the peer has shown which one it speaks:
//!
//! ```text
//!               what we do while we do not know               what shows it
//! its DATA      once half of 65,536 bytes have come, the      3.1: WINDOW_UPDATE for stream 0
//!               session's window opens to all of its size,    3:   more DATA than 3.1 would let it send
//!               or an upload of 3.1 stops, and is held so;
//!               none is enforced
//! our DATA      65,536 bytes; then PING, and we wait          3.1: WINDOW_UPDATE for stream 0
//!                                                             3:   the echo without one, or ten seconds
//! ```
//!
//! The echo is that of a PING sent after the 65,536 bytes: an earlier one proves nothing about them. The seconds count from when the
//! transport took it.
//!
//! Who reads and echoes has read all that came before; a receiver of 3.1 that has, and has used it, grants at half of its
//! window. One that reads and does not use it for longer is taken for 3, and may be overrun, until it grants. The guess
//! the other way round would stop each client of SPDY/3 for ever. One round trip is what a client of 3 pays, once.
//!
//! A strict peer of 3 may end the session over credit for stream 0 (Netty 3.6 does); it gets none before it has sent 32
//! KiB. Jetty and node-spdy pass it over. For others the version is configured.

use std::time::Duration;

use spdy_clock::Instant;
use spdy_frame::version::Version;

use crate::config::Config;
use crate::session::Session;
use crate::window::INITIAL_WINDOW;

/// How long the echo of our PING is waited for, which 64 KiB need at 52 kbit/s. No peer is known that speaks 3 and never
/// echoes; Undertow does not, but it speaks 3.1 and grants.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// What is known of the peer's version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VersionDetection {
    known: DetectionState,
    /// The session got credit.
    granted: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum DetectionState {
    /// All.
    Decided,
    /// That it is 3 or 3.1.
    Unknown,
    /// The same; we have sent what 3.1 allows, and a PING behind it.
    ProbeQueued,
    /// The same, and the transport took the PING, at this time.
    ProbeSent(Instant),
}

impl VersionDetection {
    pub(crate) fn new(config: &Config) -> Self {
        let may_turn = config.detect_session_window && config.version == Version::V3;
        let known = match may_turn && config.stream_windows() {
            true => DetectionState::Unknown,
            false => DetectionState::Decided,
        };
        Self {
            known,
            granted: false,
        }
    }

    pub(crate) fn is_pending(self) -> bool {
        self.known != DetectionState::Decided
    }

    /// The session got credit.
    pub(crate) fn record_credit(&mut self) {
        self.granted = true;
    }

    /// When the wait for an answer is over.
    pub(crate) fn until(self) -> Option<Instant> {
        match self.known {
            DetectionState::ProbeSent(at) => Some(at + PROBE_TIMEOUT),
            DetectionState::Decided | DetectionState::Unknown | DetectionState::ProbeQueued => None,
        }
    }
}

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

    /// Probes the peer's version, if DATA waits for a window that it may not have.
    pub(crate) fn probe_version(&mut self) {
        let waits = self.outbound.data_bytes > 0 && self.send.credit() == 0;
        if self.version_detection.known == DetectionState::Unknown && waits {
            self.version_detection.known = DetectionState::ProbeQueued;
            self.pings.request_behind_data(self.now);
        }
    }

    /// At `now` the transport had taken all output of [`poll_transmit`](Self::poll_transmit). With
    /// [`detect_session_window`](Config::detect_session_window) a driver must call this, as otherwise the session waits for ever for a
    /// peer that answers no PING.
    pub fn handle_transmitted(&mut self, now: Instant) {
        self.advance(now);
        if self.version_detection.known == DetectionState::ProbeQueued && !self.pings.is_unwritten()
        {
            self.version_detection.known = DetectionState::ProbeSent(now);
        }
    }

    /// It speaks 3.1: both windows have counted from the first byte on.
    pub(crate) fn set_version_31(&mut self) {
        self.version_detection.known = DetectionState::Decided;
        self.session_window = true;
        self.open_session_window();
    }

    /// It speaks 3, or did not answer the probe. WINDOW_UPDATE for stream 0 still shows 3.1.
    pub(crate) fn set_version_3(&mut self) {
        self.version_detection.known = DetectionState::Decided;
        self.release_delayed(false);
    }

    /// An echo came.
    pub(crate) fn handle_probe_echo(&mut self) {
        if matches!(
            self.version_detection.known,
            DetectionState::ProbeQueued | DetectionState::ProbeSent(_)
        ) {
            self.set_version_3();
        }
    }
}
