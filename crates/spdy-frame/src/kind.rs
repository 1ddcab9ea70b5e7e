//! The names of frame types; they lie under everything, so that errors can speak of them.

use std::fmt;

/// The type of a frame, DATA included.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Kind {
    /// DATA, the one frame without a type number.
    Data,
    /// 1, SYN_STREAM: opens a stream.
    SynStream,
    /// 2, SYN_REPLY: answers it.
    SynReply,
    /// 3, RST_STREAM: ends it at once.
    RstStream,
    /// 4, SETTINGS.
    Settings,
    /// 5, NOOP (SPDY/2 only).
    Noop,
    /// 6, PING.
    Ping,
    /// 7, GOAWAY.
    GoAway,
    /// 8, HEADERS.
    Headers,
    /// 9, WINDOW_UPDATE.
    WindowUpdate,
    /// 10, CREDENTIAL (SPDY/3 only, never deployed).
    Credential,
    /// A type number that no version defines.
    Unknown(u16),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Data => "DATA",
            Self::SynStream => "SYN_STREAM",
            Self::SynReply => "SYN_REPLY",
            Self::RstStream => "RST_STREAM",
            Self::Settings => "SETTINGS",
            Self::Noop => "NOOP",
            Self::Ping => "PING",
            Self::GoAway => "GOAWAY",
            Self::Headers => "HEADERS",
            Self::WindowUpdate => "WINDOW_UPDATE",
            Self::Credential => "CREDENTIAL",
            Self::Unknown(number) => return write!(f, "type {number}"),
        })
    }
}
