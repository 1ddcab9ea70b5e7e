//! Errors of the upgrade of a connection to a session.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use crate::upgrade::refusal::Refusal;

/// Why there was no switch to SPDY.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpgradeError {
    /// The server answered with another status than 101. This includes redirects: following one would send the request's
    /// credentials to the host that it names.
    #[error("the server refused the upgrade with {status}: {}", text(body))]
    Refused {
        /// The status of the response.
        status: StatusCode,
        /// The headers of the response.
        headers: Box<HeaderMap>,
        /// Its body, truncated to [`Limits::refusal_bytes`](crate::upgrade::Limits::refusal_bytes).
        body: Bytes,
    },
    /// The server switched to another protocol.
    #[error("the server switched, but not to SPDY/3.1: {reason}")]
    UnexpectedSwitch {
        /// The error in its 101.
        reason: &'static str,
    },
    /// The client's request cannot be accepted; the refusal was sent.
    #[error("the request was refused with {}: {}", .0.status(), .0.message())]
    Offer(Refusal),
    /// The request cannot be encoded as HTTP/1.1; nothing was sent.
    #[error("the request cannot be sent: {reason}")]
    Request {
        /// The rule that it violates.
        reason: &'static str,
    },
    /// The peer's head is not HTTP/1.1.
    #[error("the peer's head is not valid HTTP/1.1: {0}")]
    Head(httparse::Error),
    /// The peer's head is longer than the limit.
    #[error("the peer's head exceeds {limit} bytes")]
    HeadTooLong {
        /// [`Limits::head_bytes`](crate::upgrade::Limits::head_bytes).
        limit: usize,
    },
    /// The peer took too long.
    #[error("no switch to SPDY within {after:?}")]
    TimedOut {
        /// [`Limits::timeout`](crate::upgrade::Limits::timeout).
        after: Duration,
    },
    /// The connection ended within the peer's head.
    #[error("the connection ended after {received_bytes} bytes of the peer's head")]
    Closed {
        /// Bytes of the head that arrived.
        received_bytes: usize,
    },
    /// The transport failed.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
}

/// The beginning of a body, on one line.
fn text(body: &Bytes) -> String {
    const SHOWN: usize = 300;
    let text = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
