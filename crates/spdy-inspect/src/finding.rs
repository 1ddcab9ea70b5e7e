//! What looks wrong in a session, each in a sentence.

use std::fmt;

use spdy_clock::Instant;
use spdy_frame::status::{GoAwayStatus, RstStatus};

use crate::direction::Direction;

/// What looks wrong.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Finding {
    /// A sender with data had no credit.
    Stall {
        /// The stream; `None` for the session's window.
        stream: Option<u32>,
        /// Way of the data.
        direction: Direction,
        /// When the credit was used up.
        from: Instant,
        /// When there was some again; `None` if never.
        to: Option<Instant>,
    },
    /// More was sent than the window allows.
    Overrun {
        /// The stream; `None` for the session's window.
        stream: Option<u32>,
        /// Way of the data.
        direction: Direction,
        /// Bytes beyond the credit, at first.
        bytes: u64,
        /// When.
        at: Instant,
    },
    /// A receiver that never sent WINDOW_UPDATE, though it got more than a window.
    NoWindowUpdates {
        /// Way of the data.
        direction: Direction,
        /// Bytes of DATA that it got.
        bytes: u64,
    },
    /// RST_STREAM.
    Reset {
        /// The stream.
        stream: u32,
        /// Way of the frame.
        direction: Direction,
        /// Why.
        status: RstStatus,
        /// When.
        at: Instant,
    },
    /// GOAWAY with a status that is not OK, or that leaves streams behind.
    GoAway {
        /// Way of the frame.
        direction: Direction,
        /// The last stream that its sender took.
        last_good: u32,
        /// Why; SPDY/2 does not say.
        status: Option<GoAwayStatus>,
        /// Later streams that the sender did not process.
        unprocessed_streams: u64,
        /// When.
        at: Instant,
    },
    /// A frame on a stream that was never opened.
    UnknownStream {
        /// The stream.
        stream: u32,
        /// Way of the frame.
        direction: Direction,
        /// When.
        at: Instant,
    },
    /// A stream that was asked for in full and never answered, though the connection ended.
    NeverReplied {
        /// The stream.
        stream: u32,
    },
    /// Headers that cannot be read.
    Headers {
        /// The stream.
        stream: u32,
        /// Way of the frame.
        direction: Direction,
        /// Why they are invalid.
        reason: String,
    },
    /// Bytes that are no frame; the direction is not read on.
    Fault {
        /// When.
        at: Instant,
        /// Way of the bytes.
        direction: Direction,
        /// Where, in the session's bytes of this direction.
        offset: u64,
        /// Why it is invalid.
        reason: String,
    },
    /// Bytes that are not in the capture.
    Gap {
        /// When.
        at: Instant,
        /// Way of the bytes.
        direction: Direction,
        /// Where, in the session's bytes of this direction.
        offset: u64,
        /// How many.
        len: u64,
        /// All of them in the payload of one DATA frame.
        harmless: bool,
    },
    /// The direction ends inside a frame.
    CutInFrame {
        /// Way of the bytes.
        direction: Direction,
        /// Where, in the session's bytes of this direction.
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
