//! Status codes: why a stream was reset (RST_STREAM), why a session ends (GOAWAY).

use std::fmt;

/// Status of RST_STREAM (SPDY/3.1 §2.6.3). Unknown codes are preserved: the peer's value is reported as received.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RstStatus(pub u32);

impl RstStatus {
    /// 1: the peer broke the protocol on this stream.
    pub const PROTOCOL_ERROR: Self = Self(1);
    /// 2: a frame for a stream that does not exist.
    pub const INVALID_STREAM: Self = Self(2);
    /// 3: refused before any work was done: safe to retry.
    pub const REFUSED_STREAM: Self = Self(3);
    /// 4: the version is not supported.
    pub const UNSUPPORTED_VERSION: Self = Self(4);
    /// 5: the side that opened the stream no longer needs it.
    pub const CANCEL: Self = Self(5);
    /// 6: the sender failed.
    pub const INTERNAL_ERROR: Self = Self(6);
    /// 7: more DATA than the window allowed, or a window past 2^31 - 1.
    pub const FLOW_CONTROL_ERROR: Self = Self(7);
    /// 8: a second SYN_REPLY.
    pub const STREAM_IN_USE: Self = Self(8);
    /// 9: a frame on a half that is closed.
    pub const STREAM_ALREADY_CLOSED: Self = Self(9);
    /// 11: the frame is larger than the recipient accepts.
    pub const FRAME_TOO_LARGE: Self = Self(11);
}

impl fmt::Display for RstStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            1 => "PROTOCOL_ERROR",
            2 => "INVALID_STREAM",
            3 => "REFUSED_STREAM",
            4 => "UNSUPPORTED_VERSION",
            5 => "CANCEL",
            6 => "INTERNAL_ERROR",
            7 => "FLOW_CONTROL_ERROR",
            8 => "STREAM_IN_USE",
            9 => "STREAM_ALREADY_CLOSED",
            10 => "INVALID_CREDENTIALS",
            11 => "FRAME_TOO_LARGE",
            other => return write!(f, "status {other}"),
        })
    }
}

/// Status of GOAWAY (SPDY/3.1 §2.6.6); SPDY/2 sends none.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct GoAwayStatus(pub u32);

impl GoAwayStatus {
    /// 0: an orderly end.
    pub const OK: Self = Self(0);
    /// 1: the peer broke the protocol.
    pub const PROTOCOL_ERROR: Self = Self(1);
    /// 2: the sender failed. (The first draft of SPDY/3 prints 11, which is read as 2.)
    pub const INTERNAL_ERROR: Self = Self(2);
}

impl fmt::Display for GoAwayStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            0 => "OK",
            1 => "PROTOCOL_ERROR",
            2 => "INTERNAL_ERROR",
            other => return write!(f, "status {other}"),
        })
    }
}
