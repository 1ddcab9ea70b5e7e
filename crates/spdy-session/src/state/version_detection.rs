//! Detects SPDY/3 or 3.1. Both have the same number on the wire, and no version was negotiated (SPDY/3.1 §2.2.1).
//!
//! The only difference is the session's window, so the rules of 3.1 apply until the peer's behaviour shows its version:
//!
//! ```text
//!               while the version is unknown                  what shows the version
//! peer's DATA   after half of 65,536 bytes, the session's     3.1: WINDOW_UPDATE for stream 0
//!               window is opened to its full size and kept    3:   more DATA than 3.1 would let it send
//!               there (otherwise an upload of 3.1 stops);
//!               no session window is enforced
//! our DATA      65,536 bytes; then PING, and we wait          3.1: WINDOW_UPDATE for stream 0
//!                                                             3:   the echo without WINDOW_UPDATE, or ten seconds
//! ```
//!
//! Only the echo of a PING sent after the 65,536 bytes counts: an earlier PING proves nothing about them. The ten seconds start
//! when the transport accepts the PING.
//!
//! An echo shows that the peer has read all earlier output. A receiver of 3.1 that has also consumed it sends WINDOW_UPDATE at half
//! of its window. A receiver of 3.1 that consumes it later than that is taken for 3, and may get more than its window allows until
//! it sends WINDOW_UPDATE. The opposite guess would block every client of SPDY/3 forever. The cost for a client of 3 is one round
//! trip, once.
//!
//! A strict peer of 3 may end the session because of a WINDOW_UPDATE for stream 0 (Netty 3.6 does); it gets none before it has sent
//! 32 KiB. Jetty and node-spdy ignore it. For other peers, configure the version.

use std::time::Duration;

use spdy_clock::Instant;
use spdy_frame::version::Version;

use crate::config::Config;

/// Timeout for the echo of our PING. It allows sending 64 KiB at 52 kbit/s. No known peer speaks 3 and never echoes; Undertow never
/// echoes, but it speaks 3.1 and sends WINDOW_UPDATE.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// The state of the detection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VersionDetection {
    pub(crate) state: DetectionState,
    /// True if we have sent a WINDOW_UPDATE for the session.
    pub(crate) granted: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum DetectionState {
    /// The version is known, or was negotiated.
    Decided,
    /// 3 or 3.1.
    Unknown,
    /// 3 or 3.1: we have sent as much as 3.1 allows, and queued a PING.
    ProbeQueued,
    /// 3 or 3.1: the transport accepted the PING at this time.
    ProbeSent(Instant),
}

impl VersionDetection {
    pub(crate) fn new(config: &Config) -> Self {
        let may_turn = config.detect_session_window && config.version == Version::V3;
        let state = match may_turn && config.stream_windows() {
            true => DetectionState::Unknown,
            false => DetectionState::Decided,
        };
        Self {
            state,
            granted: false,
        }
    }

    pub(crate) fn is_pending(self) -> bool {
        self.state != DetectionState::Decided
    }

    /// Records that we sent a WINDOW_UPDATE for the session.
    pub(crate) fn record_credit(&mut self) {
        self.granted = true;
    }

    /// When the timeout for the echo expires.
    pub(crate) fn until(self) -> Option<Instant> {
        match self.state {
            DetectionState::ProbeSent(at) => Some(at + PROBE_TIMEOUT),
            DetectionState::Decided | DetectionState::Unknown | DetectionState::ProbeQueued => None,
        }
    }
}
