//! Outcomes of a request other than a response.

use std::fmt;

/// The kinds of errors in a report.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum FaultKind {
    /// No connection, or no common TLS version or protocol.
    Connect,
    /// No complete response within the timeout.
    Timeout,
    /// The server reset the stream.
    Reset,
    /// The connection ended before the response.
    ConnectionLost,
    /// The response violates the protocol, or its body has another length than stated.
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

/// An error with a description.
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
