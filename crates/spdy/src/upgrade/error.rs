//! Why a connection did not become a session.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use crate::upgrade::refusal::Refusal;

/// Why there was no switch to SPDY.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpgradeError {
    /// The server answered, and not with 101. Redirects are refusals too: following one would hand the
    /// request's credentials to the host that it names.
    #[error("the server refused the upgrade with {status}: {}", text(body))]
    Refused {
        /// The server's word.
        status: StatusCode,
        /// The headers of its answer.
        headers: Box<HeaderMap>,
        /// Its body, as far as [`Limits::refusal_bytes`](crate::upgrade::Limits::refusal_bytes) goes.
        body: Bytes,
    },
    /// The server switched to another protocol.
    #[error("the server switched, but not to SPDY/3.1: {reason}")]
    UnexpectedSwitch {
        /// What is wrong with its 101.
        reason: &'static str,
    },
    /// The client's request is none that can be accepted; it was answered so.
    #[error("the request was refused with {}: {}", .0.status(), .0.message())]
    Offer(Refusal),
    /// The request cannot be written as HTTP/1.1; nothing was sent.
    #[error("the request cannot be sent: {reason}")]
    Request {
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// The peer's head is not HTTP/1.1.
    #[error("the peer's head is not valid HTTP/1.1: {0}")]
    Head(httparse::Error),
    /// The peer's head is longer than we take.
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
