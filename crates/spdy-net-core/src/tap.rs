//! A window on the bytes of a client's connections, for people (`-v`) and for measurements.
//!
//! Every protocol shows what it has: SPDY its frames and header blocks, HTTP/2 its frames and header
//! lists, HTTP/1.1 its heads and the lengths of what follows them.

use std::fmt;

use spdy_clock::Instant;
pub use spdy_session::observe::{Direction, ObservedFrame as SpdySeen};

use crate::protocol::Protocol;

/// What passed.
#[derive(Debug)]
pub enum TapEvent<'a> {
    /// A connection stands and is about to be used.
    Opened {
        /// What is spoken on it.
        protocol: Protocol,
    },
    /// A SPDY frame; direction and time are inside.
    Spdy(&'a SpdySeen<'a>),
    /// An HTTP/2 frame.
    Http2Frame(Http2Frame<'a>),
    /// A header list of an HTTP/2 exchange, before compression or after it.
    Http2Headers {
        /// The stream.
        stream_id: u32,
        /// Pseudo-headers first.
        fields: &'a [(String, String)],
    },
    /// The head of an HTTP/3 frame on a stream of requests.
    Http3Frame {
        /// The stream.
        stream_id: u64,
        /// Type number.
        kind: u64,
        /// Payload length, bytes.
        len_bytes: u64,
    },
    /// A header list of an HTTP/3 exchange, before compression or after it.
    Http3Headers {
        /// The stream.
        stream_id: u64,
        /// Pseudo-headers first.
        fields: &'a [(String, String)],
    },
    /// A whole HTTP/1.1 head, blank line included; cut off past [`MAX_SHOWN_HEAD`].
    Http1Head(&'a [u8]),
    /// This many bytes after a head: the body, and chunk sizes if there are any.
    Http1Body(usize),
}

/// The most of one HTTP/1.1 head that a tap is shown, bytes.
pub const MAX_SHOWN_HEAD: usize = 64 * 1024;

/// The head of an HTTP/2 frame (RFC 9113 §4.1), and the payload of the short ones.
#[derive(Clone, Copy, Debug)]
pub struct Http2Frame<'a> {
    /// Type number.
    pub kind: u8,
    /// Flags.
    pub flags: u8,
    /// 0 for the connection.
    pub stream_id: u32,
    /// Payload length, bytes.
    pub len_bytes: usize,
    /// The first bytes of the payload: all of a SETTINGS, PING, WINDOW_UPDATE; none of DATA or HEADERS.
    pub payload: &'a [u8],
}

impl Http2Frame<'_> {
    /// The name of its type.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.kind {
            0 => "DATA",
            1 => "HEADERS",
            2 => "PRIORITY",
            3 => "RST_STREAM",
            4 => "SETTINGS",
            5 => "PUSH_PROMISE",
            6 => "PING",
            7 => "GOAWAY",
            8 => "WINDOW_UPDATE",
            9 => "CONTINUATION",
            _ => "unknown frame",
        }
    }
}

/// Sees what passes on a client's connections, each by its number.
///
/// Called on the road of the bytes: it must be quick, and must not call back into the connection.
pub trait Tap: Send + Sync {
    /// `seen` passed on connection `connection` at `at`.
    fn seen(&self, connection: u64, at: Instant, direction: Direction, seen: &TapEvent<'_>);
}

/// A tap on one connection.
#[derive(Clone)]
pub struct ConnectionTap {
    /// Sees what passes.
    pub tap: std::sync::Arc<dyn Tap>,
    /// The number of the connection.
    pub connection: u64,
    /// The time of what passes.
    pub runtime: spdy::runtime::SharedRuntime,
}

impl ConnectionTap {
    /// Shows `seen`, which passes now in `direction`.
    pub fn emit(&self, direction: Direction, seen: &TapEvent<'_>) {
        self.tap
            .seen(self.connection, self.runtime.now(), direction, seen);
    }
}

impl fmt::Debug for ConnectionTap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConnectionTap({})", self.connection)
    }
}

/// Reports the events of a SPDY session to the tap.
impl spdy_session::observe::Observe for ConnectionTap {
    fn seen(&self, seen: &SpdySeen<'_>) {
        self.tap.seen(
            self.connection,
            seen.at,
            seen.direction,
            &TapEvent::Spdy(seen),
        );
    }
}
