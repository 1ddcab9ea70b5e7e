//! Stream identifiers (SPDY/3.1 §2.3.2): odd from the client, even from the server, 0 for the session.

use std::fmt;

/// A 31-bit stream identifier; 0 means the session in frames that allow it.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StreamId(u32);

impl StreamId {
    /// The session itself, or "no stream".
    pub const ZERO: Self = Self(0);
    /// The highest identifier: 2^31 - 1.
    pub const MAX: Self = Self(0x7fff_ffff);

    /// The identifier in the low 31 bits of `raw`; the top bit is reserved and dropped.
    #[must_use]
    pub const fn new(raw: u32) -> Self {
        Self(raw & Self::MAX.0)
    }

    /// The number on the wire.
    #[must_use]
    pub const fn value(self) -> u32 {
        self.0
    }

    /// Whether this is 0.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
