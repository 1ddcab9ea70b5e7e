//! The three versions of SPDY, and what differs between them on the wire.

use std::fmt;

/// A version of SPDY, as negotiated. SPDY/3.1 writes 3 on the wire: only negotiation distinguishes it from
/// SPDY/3.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Version {
    /// SPDY/2.
    V2,
    /// SPDY/3: flow control for each stream.
    V3,
    /// SPDY/3.1: flow control for the session too.
    V31,
}

impl Version {
    /// Every version, the newest first.
    pub const ALL: [Self; 3] = [Self::V31, Self::V3, Self::V2];

    /// The number in the head of every control frame.
    #[must_use]
    pub const fn wire(self) -> u16 {
        match self {
            Self::V2 => 2,
            Self::V3 | Self::V31 => 3,
        }
    }

    /// The name in ALPN and NPN.
    #[must_use]
    pub const fn alpn(self) -> &'static str {
        match self {
            Self::V2 => "spdy/2",
            Self::V3 => "spdy/3",
            Self::V31 => "spdy/3.1",
        }
    }

    /// Whether streams have flow-control windows (SPDY/3 and later).
    #[must_use]
    pub const fn has_stream_windows(self) -> bool {
        !matches!(self, Self::V2)
    }

    /// Whether the session has a flow-control window (SPDY/3.1).
    #[must_use]
    pub const fn has_session_window(self) -> bool {
        matches!(self, Self::V31)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V2 => "SPDY/2",
            Self::V3 => "SPDY/3",
            Self::V31 => "SPDY/3.1",
        })
    }
}
