//! Frame types. They are in a file of their own so that errors can name them.

use std::fmt;

use crate::version::Version;

/// The type of a frame, DATA included.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Kind {
    /// DATA, the one frame without a type number.
    Data,
    /// 1, SYN_STREAM: opens a stream.
    SynStream,
    /// 2, SYN_REPLY: answers a SYN_STREAM.
    SynReply,
    /// 3, RST_STREAM: ends a stream at once.
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

impl Kind {
    /// The type that `number` means in `version`. SPDY/2 has NOOP and no CREDENTIAL; later versions the reverse.
    #[must_use]
    pub const fn from_number(version: Version, number: u16) -> Self {
        match (number, version) {
            (1, _) => Self::SynStream,
            (2, _) => Self::SynReply,
            (3, _) => Self::RstStream,
            (4, _) => Self::Settings,
            (5, Version::V2) => Self::Noop,
            (6, _) => Self::Ping,
            (7, _) => Self::GoAway,
            (8, _) => Self::Headers,
            (9, _) => Self::WindowUpdate,
            (10, Version::V3 | Version::V31) => Self::Credential,
            _ => Self::Unknown(number),
        }
    }

    /// The number in the head of a control frame; `None` for DATA.
    #[must_use]
    pub const fn number(self) -> Option<u16> {
        Some(match self {
            Self::Data => return None,
            Self::SynStream => 1,
            Self::SynReply => 2,
            Self::RstStream => 3,
            Self::Settings => 4,
            Self::Noop => 5,
            Self::Ping => 6,
            Self::GoAway => 7,
            Self::Headers => 8,
            Self::WindowUpdate => 9,
            Self::Credential => 10,
            Self::Unknown(number) => number,
        })
    }
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
