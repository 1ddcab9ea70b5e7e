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

/// How long the echo of our PING is waited for, which 64 KiB need at 52 kbit/s. No peer is known that speaks 3 and never
/// echoes; Undertow does not, but it speaks 3.1 and grants.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// What was detected of the peer's version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VersionDetection {
    pub(crate) state: DetectionState,
    /// The session got credit.
    pub(crate) granted: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum DetectionState {
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

    /// The session got credit.
    pub(crate) fn record_credit(&mut self) {
        self.granted = true;
    }

    /// When the wait for an answer ends.
    pub(crate) fn until(self) -> Option<Instant> {
        match self.state {
            DetectionState::ProbeSent(at) => Some(at + PROBE_TIMEOUT),
            DetectionState::Decided | DetectionState::Unknown | DetectionState::ProbeQueued => None,
        }
    }
}
