//! SPDY/3 or 3.1? On the wire they are one number, and nobody negotiated (SPDY/3.1 §2.2.1).
//!
//! They differ in the session's window alone, so what 3.1 wants is kept to until the peer has shown what it speaks:
//!
//! ```text
//!               what we do while we do not know               what shows it
//! its DATA      once half of 65,536 bytes have come, the      3.1: WINDOW_UPDATE for stream 0
//!               session gets credit, or an upload of 3.1      3:   more DATA than 3.1 would let it send
//!               stops; no window is enforced
//! our DATA      65,536 bytes; then PING, and we wait          3.1: WINDOW_UPDATE for stream 0
//!                                                             3:   the echo without one, or a second of silence
//! ```
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

/// How long the echo of our PING is waited for: Undertow never echoes, but it speaks 3.1 and grants.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is known of the peer's version.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Undecided {
    /// All.
    No,
    /// That it is 3 or 3.1.
    Yes,
    /// The same; we have sent what 3.1 allows, and a PING at this time.
    Asked(Instant),
}

impl Undecided {
    pub(crate) fn new(config: &Config) -> Self {
        let may_turn = config.detect_session_window && config.version == Version::V3;
        match may_turn && config.stream_windows() {
            true => Self::Yes,
            false => Self::No,
        }
    }

    pub(crate) fn is_yes(self) -> bool {
        self != Self::No
    }

    /// When the wait for an answer is over.
    pub(crate) fn until(self) -> Option<Instant> {
        match self {
            Self::Asked(at) => Some(at + PATIENCE),
            Self::No | Self::Yes => None,
        }
    }
}

impl Session {
    /// Whether DATA of ours is bounded by a window of the session.
    pub(crate) fn obeys_session_window(&self) -> bool {
        self.session_window || self.undecided.is_yes()
    }

    /// Whether the session is to get credit, if it is owed any.
    pub(crate) fn grants_session_window(&self) -> bool {
        let half_came = self.receive.available() <= INITIAL_WINDOW / 2;
        self.session_window || (self.undecided.is_yes() && half_came)
    }

    /// Asks the peer, in its way, if DATA waits for a window that it may not have.
    pub(crate) fn ask_what_it_speaks(&mut self) {
        let waits = self.outbound.data_bytes > 0 && self.send.credit() == 0;
        if self.undecided == Undecided::Yes && waits {
            self.undecided = Undecided::Asked(self.now);
            self.pings.ask(self.now);
        }
    }

    /// It speaks 3.1: both windows have counted from the first byte on.
    pub(crate) fn speaks_31(&mut self) {
        self.undecided = Undecided::No;
        self.session_window = true;
        self.open_session_window();
    }

    /// It speaks 3, or was silent when asked. WINDOW_UPDATE for stream 0 still shows 3.1.
    pub(crate) fn speaks_3(&mut self) {
        self.undecided = Undecided::No;
        self.release_held(false);
    }

    /// An echo came.
    pub(crate) fn answers_what_it_speaks(&mut self) {
        if matches!(self.undecided, Undecided::Asked(_)) {
            self.speaks_3();
        }
    }
}
