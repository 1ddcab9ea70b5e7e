//! The priority of a stream: 0 is the most urgent (SPDY/3.1 §2.3.3; three bits, two in SPDY/2).

use std::fmt;

use crate::version::Version;

/// Eight levels, 0 the most urgent, 7 the least. It never changes after SYN_STREAM.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Priority(u8);

impl Priority {
    /// The most urgent level.
    pub const HIGHEST: Self = Self(0);
    /// The least urgent level.
    pub const LOWEST: Self = Self(7);
    /// How many levels there are.
    pub const LEVELS: usize = 8;

    /// The level `level`, or 7 for anything greater.
    #[must_use]
    pub const fn new(level: u8) -> Self {
        if level > 7 { Self::LOWEST } else { Self(level) }
    }

    /// 0 to 7.
    #[must_use]
    pub const fn level(self) -> u8 {
        self.0
    }

    /// The number in the priority field of a SYN_STREAM: 0 to 7, in SPDY/2 half the level, 0 to 3.
    #[must_use]
    pub const fn field(self, version: Version) -> u8 {
        match version {
            Version::V2 => self.0 / 2,
            Version::V3 | Version::V31 => self.0,
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
