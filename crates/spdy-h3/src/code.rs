//! The error codes of streams and connections (RFC 9114 §8.1, RFC 9204 §6).

use std::fmt;

use quinn::VarInt;

/// An error code, as on the wire.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) struct Code(u64);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal,)*) => {
        impl Code {
            $($(#[$doc])* pub(crate) const $name: Self = Self($value);)*

            fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($name)),)*
                    // Only peers send these.
                    0x101 => Some("GENERAL_PROTOCOL_ERROR"),
                    0x10f => Some("CONNECT_ERROR"),
                    0x110 => Some("VERSION_FALLBACK"),
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// No error.
    NO_ERROR = 0x100,
    /// An internal error of this side.
    INTERNAL_ERROR = 0x102,
    /// A stream of a type that is not allowed.
    STREAM_CREATION_ERROR = 0x103,
    /// A stream that must stay open was closed.
    CLOSED_CRITICAL_STREAM = 0x104,
    /// A frame that is not allowed at this position.
    FRAME_UNEXPECTED = 0x105,
    /// A malformed frame.
    FRAME_ERROR = 0x106,
    /// The peer causes too much load.
    EXCESSIVE_LOAD = 0x107,
    /// An invalid ID.
    ID_ERROR = 0x108,
    /// Invalid settings.
    SETTINGS_ERROR = 0x109,
    /// A control stream that does not begin with SETTINGS.
    MISSING_SETTINGS = 0x10a,
    /// A request that was not processed.
    REQUEST_REJECTED = 0x10b,
    /// A request or its response that is no longer needed.
    REQUEST_CANCELLED = 0x10c,
    /// An incomplete request.
    REQUEST_INCOMPLETE = 0x10d,
    /// A message that is malformed.
    MESSAGE_ERROR = 0x10e,
    /// A header block that cannot be decoded.
    QPACK_DECOMPRESSION_FAILED = 0x200,
    /// An invalid instruction for a dynamic table.
    QPACK_ENCODER_STREAM_ERROR = 0x201,
    /// An acknowledgment of something that was never sent.
    QPACK_DECODER_STREAM_ERROR = 0x202,
}

impl Code {
    /// A code received from the peer.
    pub(crate) fn of(code: VarInt) -> Self {
        Self(code.into_inner())
    }

    /// The code as quinn's type.
    pub(crate) fn wire(self) -> VarInt {
        VarInt::from_u64(self.0).unwrap_or(VarInt::MAX)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) if name.starts_with("QPACK") => f.write_str(name),
            Some(name) => write!(f, "H3_{name}"),
            None => write!(f, "error {:#x}", self.0),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
