//! Events of an inspection, in the order of the capture.

use std::fmt;
use std::net::SocketAddr;

use spdy_clock::Instant;
use spdy_frame::frame::Frame;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::version::Version;

use crate::direction::Direction;
use crate::timeline::Summary;

/// An event of a connection.
#[derive(Clone, Debug)]
pub struct Event {
    /// Since the first packet of the capture; zero for raw streams.
    pub at: Instant,
    /// Number of the connection, from 1, in the order of first events.
    pub connection: u64,
    /// The kind of the event.
    pub what: EventKind,
}

/// The kind of an event.
#[derive(Clone, Debug)]
pub enum EventKind {
    /// A SPDY session begins.
    SessionStart(SessionInfo),
    /// A frame of the session is complete.
    Frame(Box<FrameRecord>),
    /// Bytes cannot be decoded, for the reason in this sentence.
    Unreadable(String),
    /// A TLS connection that cannot be decrypted, so its content is unknown.
    EncryptedTls {
        /// The server name that the client requested.
        server_name: Option<String>,
        /// Protocols that the client offered by ALPN.
        offered: Vec<String>,
        /// Why it cannot be decrypted.
        reason: String,
    },
    /// Exec, attach or port-forward of Kubernetes over a plain WebSocket: streams without SPDY. There are no further events for it.
    Channels {
        /// Method and path, if the request was captured.
        target: Option<String>,
        /// Its sub-protocol, such as `v5.channel.k8s.io`.
        protocol: String,
    },
    /// The session or the capture has ended.
    SessionEnd(Box<Summary>),
}

/// The connection that carries SPDY, and how that was detected.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SessionInfo {
    /// The client's address; `None` for raw streams.
    pub client: Option<SocketAddr>,
    /// The server's address; `None` for raw streams.
    pub server: Option<SocketAddr>,
    /// The version; `None` while SPDY/3 and 3.1 cannot be distinguished.
    pub version: Option<Version>,
    /// How SPDY was detected.
    pub found: DetectionMethod,
    /// True if TLS was decrypted for it.
    pub tls: bool,
}

/// How SPDY was detected on a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DetectionMethod {
    /// By ALPN.
    Alpn,
    /// By an HTTP/1.1 Upgrade with the response 101.
    Upgrade,
    /// By the sub-protocol of a WebSocket around it.
    WebSocket,
    /// By the first bytes, which are a SPDY frame head.
    FirstBytes,
    /// By the caller.
    Forced,
}

impl fmt::Display for DetectionMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Alpn => "ALPN",
            Self::Upgrade => "HTTP/1.1 Upgrade",
            Self::WebSocket => "WebSocket",
            Self::FirstBytes => "its first bytes",
            Self::Forced => "command",
        })
    }
}

/// A complete frame.
#[derive(Clone, Debug)]
pub struct FrameRecord {
    /// Its direction.
    pub direction: Direction,
    /// The version of decoding. SPDY/3 and 3.1 have the same frames, so this field does not distinguish them.
    pub version: Version,
    /// Offset of its head in the session's bytes of this direction.
    pub offset: u64,
    /// The frame. The payload of DATA is its first bytes only: see
    /// [`Limits::payload_shown_bytes`](crate::limits::Limits).
    pub frame: Frame,
    /// Length of its payload by its head.
    pub len_bytes: usize,
    /// Bytes of its payload that are not in the capture (DATA only).
    pub missing_bytes: usize,
    /// Its headers, for SYN_STREAM, SYN_REPLY and HEADERS; or why they cannot be decoded.
    pub headers: Option<Result<HeaderBlock, String>>,
    /// Plain length of its header block, bytes.
    pub plain_bytes: usize,
}
