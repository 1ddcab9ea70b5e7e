//! Suspicious observations in a session, each with a sentence.

use std::fmt;

use spdy_clock::Instant;
use spdy_frame::status::{GoAwayStatus, RstStatus};

use crate::direction::Direction;

/// A suspicious observation.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Finding {
    /// A sender had data but no credit.
    Stall {
        /// The stream; `None` for the session's window.
        stream: Option<u32>,
        /// Direction of the data.
        direction: Direction,
        /// When the credit was used up.
        from: Instant,
        /// When there was credit again; `None` if never.
        to: Option<Instant>,
    },
    /// A sender exceeded the window.
    Overrun {
        /// The stream; `None` for the session's window.
        stream: Option<u32>,
        /// Direction of the data.
        direction: Direction,
        /// Bytes beyond the credit, the first time.
        bytes: u64,
        /// Time.
        at: Instant,
    },
    /// A receiver never sent WINDOW_UPDATE, although it received more than a window.
    NoWindowUpdates {
        /// Direction of the data.
        direction: Direction,
        /// Received bytes of DATA.
        bytes: u64,
    },
    /// RST_STREAM.
    Reset {
        /// The stream.
        stream: u32,
        /// Direction of the frame.
        direction: Direction,
        /// Its status.
        status: RstStatus,
        /// Time.
        at: Instant,
    },
    /// GOAWAY with a status other than OK, or with unprocessed streams.
    GoAway {
        /// Direction of the frame.
        direction: Direction,
        /// The last stream that its sender accepted.
        last_good: u32,
        /// Its status; SPDY/2 has none.
        status: Option<GoAwayStatus>,
        /// Later streams that the sender did not process.
        unprocessed_streams: u64,
        /// Time.
        at: Instant,
    },
    /// A frame of a stream that was never opened.
    UnknownStream {
        /// The stream.
        stream: u32,
        /// Direction of the frame.
        direction: Direction,
        /// Time.
        at: Instant,
    },
    /// A stream with a complete request and no reply, although the connection ended.
    NeverReplied {
        /// The stream.
        stream: u32,
    },
    /// Headers that cannot be decoded.
    Headers {
        /// The stream.
        stream: u32,
        /// Direction of the frame.
        direction: Direction,
        /// Why they are invalid.
        reason: String,
    },
    /// Bytes that are no frame; the direction is not decoded further.
    Fault {
        /// Time.
        at: Instant,
        /// Direction of the bytes.
        direction: Direction,
        /// Offset in the session's bytes of this direction.
        offset: u64,
        /// Why they are invalid.
        reason: String,
    },
    /// Bytes that are not in the capture.
    Gap {
        /// Time.
        at: Instant,
        /// Direction of the bytes.
        direction: Direction,
        /// Offset in the session's bytes of this direction.
        offset: u64,
        /// Number of bytes.
        len: u64,
        /// True if all of them are in the payload of one DATA frame.
        harmless: bool,
    },
    /// The direction ends inside a frame.
    CutInFrame {
        /// Direction of the bytes.
        direction: Direction,
        /// Offset in the session's bytes of this direction.
        offset: u64,
    },
}

fn window(stream: Option<u32>) -> String {
    stream.map_or_else(|| "session".to_owned(), |id| format!("stream {id}"))
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |at: &Instant| format!("{:.3} ms", at.as_millis_f64());
        match self {
            Self::Stall {
                stream,
                direction,
                from,
                to: Some(to),
            } => write!(
                f,
                "{}: the {} had no credit for {:.3} ms, from {}",
                window(*stream),
                direction.sender(),
                to.as_millis_f64() - from.as_millis_f64(),
                ms(from)
            ),
            Self::Stall {
                stream,
                direction,
                from,
                to: None,
            } => write!(
                f,
                "{}: the {} had no credit from {} on, and the {} granted none",
                window(*stream),
                direction.sender(),
                ms(from),
                direction.receiver()
            ),
            Self::Overrun {
                stream,
                direction,
                bytes,
                at,
            } => write!(
                f,
                "{}: the {} sent {bytes} bytes beyond the window at {}",
                window(*stream),
                direction.sender(),
                ms(at)
            ),
            Self::NoWindowUpdates { direction, bytes } => write!(
                f,
                "the {} received {bytes} bytes of DATA and sent no WINDOW_UPDATE: it has no flow control, like Kubernetes (moby/spdystream)",
                direction.receiver()
            ),
            Self::Reset {
                stream,
                direction,
                status,
                at,
            } => write!(
                f,
                "stream {stream}: the {} reset it with {status} at {}",
                direction.sender(),
                ms(at)
            ),
            Self::GoAway {
                direction,
                last_good,
                status,
                unprocessed_streams,
                at,
            } => {
                let status = status.map_or_else(String::new, |status| format!(" with {status}"));
                write!(
                    f,
                    "the {} sent GOAWAY{status} at {}: last good stream {last_good}, {unprocessed_streams} later streams not processed",
                    direction.sender(),
                    ms(at)
                )
            }
            Self::UnknownStream {
                stream,
                direction,
                at,
            } => write!(
                f,
                "stream {stream}: frame from the {} at {}, but its SYN_STREAM is not in the capture",
                direction.sender(),
                ms(at)
            ),
            Self::NeverReplied { stream } => {
                write!(f, "stream {stream}: complete request without a reply")
            }
            Self::Headers {
                stream,
                direction,
                reason,
            } => write!(
                f,
                "stream {stream}: invalid headers from the {}: {reason}",
                direction.sender()
            ),
            Self::Fault {
                direction,
                offset,
                reason,
                ..
            } => write!(
                f,
                "invalid frame from the {} at byte {offset} of the session: {reason}; the rest is not decoded",
                direction.sender()
            ),
            Self::Gap {
                direction,
                offset,
                len,
                harmless,
                ..
            } => write!(
                f,
                "{len} bytes from the {} at byte {offset} of the session are not in the capture{}",
                direction.sender(),
                match harmless {
                    true => " (DATA payload: decoding continues)",
                    false => ": the rest is not decoded",
                }
            ),
            Self::CutInFrame { direction, offset } => write!(
                f,
                "the data from the {} ends inside a frame, at byte {offset} of the session",
                direction.sender()
            ),
        }
    }
}
