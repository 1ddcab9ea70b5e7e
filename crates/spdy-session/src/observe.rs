//! Observes the frames of a session, for people (`-v`) and for measurements.

use std::fmt;

use spdy_clock::Instant;
use spdy_frame::frame::Frame;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::version::Version;

/// The direction of a frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direction {
    /// From us to the peer.
    Sent,
    /// From the peer to us.
    Received,
}

/// One observed frame.
#[derive(Debug)]
#[non_exhaustive]
pub struct ObservedFrame<'a> {
    /// When it was written into the driver's buffer, or read.
    pub at: Instant,
    /// The version of the session.
    pub version: Version,
    /// The direction of the frame.
    pub direction: Direction,
    /// The frame; a header block in it is compressed. Received DATA is reported in the pieces in which it arrived.
    pub frame: &'a Frame,
    /// The inflated block of SYN_STREAM, SYN_REPLY, HEADERS; none if it is malformed.
    pub headers: Option<&'a HeaderBlock>,
    /// Inflated length of that block, bytes; 0 for other frames. The compressed length is that of the block in `frame`.
    pub plain_bytes: usize,
}

/// Observes every frame.
pub trait Observe: Send + Sync {
    /// Called for each frame, in the order of the wire, from within the session machine: do not block here.
    fn seen(&self, seen: &ObservedFrame<'_>);
}

/// So that options with an observer have `Debug`.
impl fmt::Debug for dyn Observe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observe")
    }
}
