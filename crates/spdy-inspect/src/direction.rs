//! Which way bytes went.

use std::fmt;

/// A direction of a connection.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Direction {
    /// Written by the client.
    ToServer,
    /// Written by the server.
    ToClient,
}

impl Direction {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::ToServer, Self::ToClient];

    /// The other one.
    #[must_use]
    pub const fn back(self) -> Self {
        match self {
            Self::ToServer => Self::ToClient,
            Self::ToClient => Self::ToServer,
        }
    }

    /// Who writes in this direction.
    #[must_use]
    pub const fn sender(self) -> &'static str {
        match self {
            Self::ToServer => "client",
            Self::ToClient => "server",
        }
    }

    /// Who reads in this direction.
    #[must_use]
    pub const fn receiver(self) -> &'static str {
        self.back().sender()
    }

    /// 0 to the server, 1 to the client: where a pair holds what is of this direction.
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
