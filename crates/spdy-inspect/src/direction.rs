//! Directions of a connection.

use std::fmt;

/// A direction of a connection.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Direction {
    /// From the client.
    ToServer,
    /// From the server.
    ToClient,
}

impl Direction {
    /// Both directions.
    pub const BOTH: [Self; 2] = [Self::ToServer, Self::ToClient];

    /// The other direction.
    #[must_use]
    pub const fn back(self) -> Self {
        match self {
            Self::ToServer => Self::ToClient,
            Self::ToClient => Self::ToServer,
        }
    }

    /// The sender in this direction.
    #[must_use]
    pub const fn sender(self) -> &'static str {
        match self {
            Self::ToServer => "client",
            Self::ToClient => "server",
        }
    }

    /// The receiver in this direction.
    #[must_use]
    pub const fn receiver(self) -> &'static str {
        self.back().sender()
    }

    /// 0 to the server, 1 to the client: the index of this direction in a pair.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.sender(), self.receiver())
    }
}
