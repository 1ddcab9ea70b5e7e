//! What can become of a request but an answer.

use std::fmt;

/// The kinds of error that a report tells apart.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum FaultKind {
    /// No connection, or no agreement on TLS or protocol.
    Connect,
    /// No whole answer within the time allowed.
    Timeout,
    /// The server reset the stream.
    Reset,
    /// The connection ended with the request open.
    ConnectionLost,
    /// The answer breaks the rules of the protocol, or its body is not as long as it said.
    Malformed,
}

impl FaultKind {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Timeout => "timeout",
            Self::Reset => "reset",
            Self::ConnectionLost => "connection lost",
            Self::Malformed => "malformed",
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One of them, with a description.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    pub(crate) reason: String,
}

impl Fault {
    pub(crate) fn new(kind: FaultKind, reason: impl fmt::Display) -> Self {
        Self {
            kind,
            reason: reason.to_string(),
        }
    }

    pub(crate) fn lost(reason: impl fmt::Display) -> Self {
        Self::new(FaultKind::ConnectionLost, reason)
    }
}
