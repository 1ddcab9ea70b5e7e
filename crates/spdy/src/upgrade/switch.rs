//! The switch of a connection: its header names, the limits of the head before it, and the connection after it.

use std::time::Duration;

use http::{HeaderMap, HeaderName};

use crate::upgrade::rewind::Rewind;

/// Value of the `Upgrade` header.
pub const PROTOCOL: &str = "SPDY/3.1";
/// The sub-protocol of the streams: offered by a client, one line each; chosen by the server.
pub const STREAM_PROTOCOL_VERSION: HeaderName =
    HeaderName::from_static("x-stream-protocol-version");
/// The sub-protocols that a server accepts, sent with 403, one line each.
pub const ACCEPTED_STREAM_PROTOCOL_VERSIONS: HeaderName =
    HeaderName::from_static("x-accepted-stream-protocol-versions");

/// Limits of the peer's messages before the switch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of a head, blank line included. Default 16 KiB.
    pub head_bytes: usize,
    /// Header lines of a head. Default 100.
    pub header_lines: usize,
    /// Bytes of a refusal's body that a client stores; the rest is not read. Default 64 KiB.
    pub refusal_bytes: usize,
    /// Timeout from the first byte to the switch, or to the end of a refusal, whose body is then truncated. Default 30 s.
    pub timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: 16 * 1024,
            header_lines: 100,
            refusal_bytes: 64 * 1024,
            timeout: Duration::from_secs(30),
        }
    }
}

/// A connection that has switched: bytes from here on are frames.
#[derive(Debug)]
pub struct Upgraded<T> {
    pub(super) io: Rewind<T>,
    pub(super) headers: HeaderMap,
    pub(super) protocol: Option<String>,
}

impl<T> Upgraded<T> {
    /// The negotiated sub-protocol; `None` if the server chose none.
    #[must_use]
    pub fn protocol(&self) -> Option<&str> {
        self.protocol.as_deref()
    }

    /// The headers of the 101 (for a server: of the request).
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The connection, for a handshake. Bytes that were received after the head are read from it first.
    #[must_use]
    pub fn into_io(self) -> Rewind<T> {
        self.io
    }
}
