//! Events of an inspection, in the order of the capture.

use std::fmt;
use std::net::SocketAddr;

use spdy_clock::Instant;
use spdy_frame::frame::Frame;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::version::Version;

use crate::direction::Direction;
use crate::timeline::Summary;

/// Something that was seen on a connection.
#[derive(Clone, Debug)]
pub struct Event {
    /// Since the first packet of the capture; zero for raw streams.
    pub at: Instant,
    /// Number of the connection, from 1, in the order of first events.
    pub connection: u64,
    /// What it was.
    pub what: EventKind,
}

/// What was seen.
#[derive(Clone, Debug)]
pub enum EventKind {
    /// A SPDY session begins.
    SessionStart(SessionInfo),
    /// A frame of it is complete.
    Frame(Box<FrameRecord>),
    /// Something that keeps bytes from being read, in a sentence.
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
    /// Exec, attach or port-forward of Kubernetes by a plain WebSocket: streams without SPDY. There are no further
    /// events about it.
    Channels {
        /// Method and path, if the request was captured.
        target: Option<String>,
        /// Its sub-protocol, such as `v5.channel.k8s.io`.
        protocol: String,
    },
    /// The session is over, or the capture is.
    SessionEnd(Box<Summary>),
}

/// The connection that carries SPDY, and how that was detected.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SessionInfo {
    /// The client's address; `None` for raw streams.
    pub client: Option<SocketAddr>,
    /// The server's address; `None` for raw streams.
    pub server: Option<SocketAddr>,
    /// The version; `None` while SPDY/3 and 3.1 cannot be told apart.
    pub version: Option<Version>,
    /// What told that this is SPDY.
    pub found: DetectionMethod,
    /// Whether TLS was opened for it.
    pub tls: bool,
}

/// What told that a connection is SPDY.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DetectionMethod {
    /// ALPN names it.
    Alpn,
    /// An HTTP/1.1 Upgrade was answered 101.
    Upgrade,
    /// The sub-protocol of a WebSocket around it names it.
    WebSocket,
    /// The first bytes are a SPDY head.
    FirstBytes,
    /// The caller said so.
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

/// A frame, whole.
#[derive(Clone, Debug)]
pub struct FrameRecord {
    /// Which way it went.
    pub direction: Direction,
    /// The version that it was decoded as. SPDY/3 and 3.1 have the same frames, so this field does not distinguish them.
    pub version: Version,
    /// Where its head is in the session's bytes of this direction.
    pub offset: u64,
    /// The frame. The payload of DATA is its first bytes only: see
    /// [`Limits::payload_shown_bytes`](crate::limits::Limits).
    pub frame: Frame,
    /// Payload bytes that its head announced.
    pub len_bytes: usize,
    /// Bytes of its payload that are not in the capture (DATA only).
    pub missing_bytes: usize,
    /// Its headers, of SYN_STREAM, SYN_REPLY and HEADERS; or why they cannot be read.
    pub headers: Option<Result<HeaderBlock, String>>,
    /// Plain length of its header block, bytes.
    pub plain_bytes: usize,
}
