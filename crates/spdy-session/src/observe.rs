//! A window on the frames of a session, for people (`-v`) and for measurements. (Contract)

use spdy_clock::Instant;
use spdy_frame::frame::Frame;
use spdy_frame::header_block::HeaderBlock;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direction { Sent, Received }

/// One frame as it passed.
#[derive(Debug)]
pub struct Seen<'a> {
    pub at: Instant,
    pub direction: Direction,
    pub frame: &'a Frame,
    /// The inflated block of SYN_STREAM, SYN_REPLY, HEADERS.
    pub headers: Option<&'a HeaderBlock>,
    /// Plain and compressed length of that block, bytes.
    pub plain_bytes: usize,
}

/// Sees every frame.
pub trait Observe: Send + Sync {
    fn seen(&self, seen: &Seen<'_>);
}
