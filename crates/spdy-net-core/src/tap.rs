//! Observes a client's connections, for people (`-v`) and for measurements.
//!
//! The events depend on the protocol: SPDY reports frames and header blocks, HTTP/2 frames and header lists, HTTP/1.1 heads and the
//! lengths of bodies.

use std::fmt;

use spdy_clock::Instant;
pub use spdy_session::observe::{Direction, ObservedFrame as SpdySeen};

use crate::protocol::Protocol;

/// An observed event.
#[derive(Debug)]
pub enum TapEvent<'a> {
    /// A connection is open and is about to be used.
    Opened {
        /// The protocol of the connection.
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
    /// A whole HTTP/1.1 head, including the blank line; truncated to [`MAX_SHOWN_HEAD`].
    Http1Head(&'a [u8]),
    /// This many bytes after a head: the body, and chunk sizes if there are any.
    Http1Body(usize),
}

/// Maximum length of an HTTP/1.1 head for a tap, bytes.
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

/// Observes a client's connections; each has a number.
///
/// Called synchronously: it must be fast, and must not call the connection.
pub trait Tap: Send + Sync {
    /// Called for the event `seen` on connection `connection` at `at`.
    fn seen(&self, connection: u64, at: Instant, direction: Direction, seen: &TapEvent<'_>);
}

/// A tap on one connection.
#[derive(Clone)]
pub struct ConnectionTap {
    /// The observer.
    pub tap: std::sync::Arc<dyn Tap>,
    /// The number of the connection.
    pub connection: u64,
    /// The clock of the events.
    pub runtime: spdy::runtime::SharedRuntime,
}

impl ConnectionTap {
    /// Reports the event `seen` in `direction`, at the current time.
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
