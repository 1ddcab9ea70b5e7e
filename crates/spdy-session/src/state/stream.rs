//! One stream: its two halves, its answer, its windows, and its queued output (SPDY/3.1 §2.3).
//!
//! ```text
//!           +--------- FIN sent ---------> half closed (local) ---- FIN got ----+
//!   open ---+                                                                   +--> closed
//!           +--------- FIN got ----------> half closed (remote) --- FIN sent ---+
//!           +------------------------- RST_STREAM, either way ------------------+
//! ```
//!
//! A unidirectional stream starts half closed. The state of the *answer* is separate from the halves: the one SYN_REPLY that the
//! recipient sends before all its other frames.

use std::collections::VecDeque;

use bytes::Bytes;
use spdy_clock::Instant;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::priority::Priority;
use spdy_frame::status::RstStatus;
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;

use crate::state::window::{ReceiveWindow, SendWindow};

/// Which halves are open.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum State {
    Open,
    /// We have sent FIN, or may never send.
    HalfClosedLocal,
    /// The peer has sent FIN, or may never send.
    HalfClosedRemote,
    Closed,
}

/// A frame that can carry FIN, in either direction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Step {
    Sent { fin: bool },
    Received { fin: bool },
}

/// State of SYN_REPLY, and which side sends it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ReplyState {
    /// The peer's; not received yet.
    Awaited,
    /// The peer's; received.
    Received,
    /// Ours; the owner has not queued it yet.
    NotSent,
    /// Ours; queued or sent.
    Sent,
    /// No SYN_REPLY: we opened a unidirectional stream.
    NotExpected,
    /// No SYN_REPLY: the peer opened a unidirectional stream.
    NotAllowed,
}

/// A received frame of a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Arrival {
    Reply,
    Headers,
    Data,
}

/// A protocol error of the peer on an existing stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum StreamViolation {
    /// DATA or HEADERS before SYN_REPLY.
    BeforeReply,
    /// A second SYN_REPLY.
    SecondReply,
    /// SYN_REPLY from the side that opened the stream.
    ReplyByOpener,
    /// Any frame after FIN.
    AfterFin,
}

impl StreamViolation {
    /// The status of our RST_STREAM. SPDY/2 has no separate codes for the last two.
    pub(crate) fn status(self, version: Version) -> RstStatus {
        match (self, version) {
            (Self::BeforeReply | Self::ReplyByOpener, _)
            | (Self::SecondReply | Self::AfterFin, Version::V2) => RstStatus::PROTOCOL_ERROR,
            (Self::SecondReply, _) => RstStatus::STREAM_IN_USE,
            (Self::AfterFin, _) => RstStatus::STREAM_ALREADY_CLOSED,
        }
    }
}

impl State {
    /// The state after `step`: one line for each possible transition.
    ///
    /// # Errors
    ///
    /// If the peer violated the protocol. A violation by us is a bug, and panics.
    pub(crate) fn after(self, step: Step) -> Result<Self, StreamViolation> {
        use State::{Closed, HalfClosedLocal, HalfClosedRemote, Open};
        use Step::{Received, Sent};
        Ok(match (self, step) {
            (Open, Sent { fin: true }) => HalfClosedLocal,
            (Open, Received { fin: true }) => HalfClosedRemote,
            (HalfClosedLocal, Received { fin: true }) => Closed,
            (HalfClosedRemote, Sent { fin: true }) => Closed,
            (Open, Sent { fin: false } | Received { fin: false }) => Open,
            (HalfClosedLocal, Received { fin: false }) => HalfClosedLocal,
            (HalfClosedRemote, Sent { fin: false }) => HalfClosedRemote,
            (HalfClosedRemote | Closed, Received { .. }) => return Err(StreamViolation::AfterFin),
            (HalfClosedLocal | Closed, Sent { .. }) => {
                unreachable!("invalid step {step:?} in state {self:?}")
            }
        })
    }

    /// True if the peer may still send.
    pub(crate) fn receives(self) -> bool {
        matches!(self, Self::Open | Self::HalfClosedLocal)
    }

    /// True if we may still send.
    pub(crate) fn sends(self) -> bool {
        matches!(self, Self::Open | Self::HalfClosedRemote)
    }
}

/// A queued item of a stream. Items are sent in order.
#[derive(Debug)]
pub(crate) enum Item {
    SynStream {
        headers: HeaderBlock,
        fin: bool,
    },
    SynReply {
        headers: HeaderBlock,
        fin: bool,
    },
    Headers {
        headers: HeaderBlock,
        fin: bool,
    },
    Data {
        bytes: Bytes,
        fin: bool,
    },
    /// Always the last item.
    Reset {
        status: RstStatus,
    },
}

/// The queue of `OutputQueues` that contains the stream: at most one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum QueueState {
    Unqueued,
    /// Its first item needs no credit: a header block, a bare FIN, or RST_STREAM.
    Head,
    /// Its first item is DATA and it has credit.
    Data,
    /// It has so little credit that it waits for more.
    Delayed,
}

/// Received DATA of a stream without a reader.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiscardedInput {
    /// Number of bytes.
    pub(crate) bytes: u64,
    /// When we finished our output on the stream; before our FIN, when discarding began.
    pub(crate) since: Instant,
}

/// One stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: StreamId,
    pub(crate) associated_to: StreamId,
    /// The current priority of its DATA.
    pub(crate) priority: Priority,
    /// The priority in its SYN_STREAM.
    pub(crate) syn_priority: Priority,
    pub(crate) unidirectional: bool,
    pub(crate) state: State,
    pub(crate) answer: ReplyState,
    /// True if our SYN_STREAM is on the wire; always true for streams of the peer.
    pub(crate) written: bool,
    /// Number of received HEADERS frames.
    pub(crate) headers_seen: u32,
    /// Inflated bytes of the received header blocks.
    pub(crate) header_bytes: usize,

    pub(crate) send: SendWindow,
    pub(crate) items: VecDeque<Item>,
    /// Bytes of DATA in `items`.
    pub(crate) queued_bytes: usize,
    /// The last item was queued: an item with FIN, or RST_STREAM.
    pub(crate) end_queued: bool,
    /// RST_STREAM to send behind our FIN, if the peer's half is still open then.
    pub(crate) reset_after_fin: Option<RstStatus>,
    /// `send_capacity` is 0 until half of the queue has been sent.
    pub(crate) full: bool,
    pub(crate) queue_state: QueueState,
    /// The stream has waited long enough for credit: small DATA may be sent.
    pub(crate) force_small_data: bool,
    /// Since when its DATA waits for credit of the stream, and the bytes sent since then.
    pub(crate) starved: Option<(Instant, usize)>,

    pub(crate) receive_window: ReceiveWindow,
    /// Bytes passed to the owner and not consumed yet.
    pub(crate) unread: usize,
    /// True while it counts as an open stream of its side. It is still counted until the frame that closed it was handled.
    pub(crate) counted: bool,
    /// A WINDOW_UPDATE is queued.
    pub(crate) grant_queued: bool,
    /// Present if the input has no reader.
    pub(crate) discarded: Option<DiscardedInput>,
}

impl Stream {
    /// True if a WINDOW_UPDATE may be sent to the peer on this stream.
    ///
    /// False after the peer's FIN (SPDY/3.1 §2.6.8: it would be ignored), unless the peer has used up its window exactly. Jetty
    /// then also suppresses its own WINDOW_UPDATE for that stream, and would get only 64 KiB of our response.
    pub(crate) fn needs_grants(&self) -> bool {
        self.state.receives() || (self.state.sends() && self.receive_window.available() <= 0)
    }

    /// Applies a received frame, if the current state allows it.
    pub(crate) fn apply_received(
        &mut self,
        arrival: Arrival,
        fin: bool,
    ) -> Result<(), StreamViolation> {
        let answer = match (arrival, self.answer) {
            (Arrival::Reply, ReplyState::Awaited) => ReplyState::Received,
            (Arrival::Reply, ReplyState::Received) if !self.state.receives() => {
                return Err(StreamViolation::AfterFin);
            }
            (Arrival::Reply, ReplyState::Received) => return Err(StreamViolation::SecondReply),
            (Arrival::Reply, ReplyState::NotExpected) => return Err(StreamViolation::AfterFin),
            (Arrival::Reply, ReplyState::NotSent | ReplyState::Sent | ReplyState::NotAllowed) => {
                return Err(StreamViolation::ReplyByOpener);
            }
            (Arrival::Headers | Arrival::Data, ReplyState::Awaited) => {
                return Err(StreamViolation::BeforeReply);
            }
            (
                Arrival::Headers | Arrival::Data,
                ReplyState::Received
                | ReplyState::NotSent
                | ReplyState::Sent
                | ReplyState::NotExpected
                | ReplyState::NotAllowed,
            ) => self.answer,
        };
        self.state = self.state.after(Step::Received { fin })?;
        self.answer = answer;
        Ok(())
    }

    /// Applies a sent frame.
    pub(crate) fn apply_sent(&mut self, fin: bool) {
        self.state = match self.state.after(Step::Sent { fin }) {
            Ok(state) => state,
            Err(violation) => unreachable!("{violation:?} caused locally on {self:?}"),
        };
    }

    /// True if the owner may queue more output (SYN_REPLY is checked elsewhere).
    pub(crate) fn accepts_output(&self) -> bool {
        self.state.sends() && !self.end_queued && self.answer != ReplyState::NotSent
    }

    /// True if the first item needs no credit; `None` without items.
    pub(crate) fn first_is_head(&self) -> Option<bool> {
        self.items.front().map(|item| match item {
            Item::SynStream { .. }
            | Item::SynReply { .. }
            | Item::Headers { .. }
            | Item::Reset { .. } => true,
            Item::Data { bytes, .. } => bytes.is_empty(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_closes_when_both_halves_have_ended_in_either_order() {
        let (sent, received) = (Step::Sent { fin: true }, Step::Received { fin: true });
        for (first, second) in [(sent, received), (received, sent)] {
            let end = State::Open
                .after(first)
                .and_then(|state| state.after(second));
            assert_eq!(end, Ok(State::Closed));
        }
    }

    #[test]
    fn input_after_fin_is_a_violation() {
        for fin in [false, true] {
            assert_eq!(
                State::HalfClosedRemote.after(Step::Received { fin }),
                Err(StreamViolation::AfterFin)
            );
            assert_eq!(
                State::Closed.after(Step::Received { fin }),
                Err(StreamViolation::AfterFin)
            );
        }
    }

    #[test]
    fn spdy_2_uses_protocol_error_for_later_codes() {
        assert_eq!(
            StreamViolation::AfterFin.status(Version::V2),
            RstStatus::PROTOCOL_ERROR
        );
        assert_eq!(
            StreamViolation::SecondReply.status(Version::V2),
            RstStatus::PROTOCOL_ERROR
        );
        assert_eq!(
            StreamViolation::AfterFin.status(Version::V3),
            RstStatus::STREAM_ALREADY_CLOSED
        );
        assert_eq!(
            StreamViolation::SecondReply.status(Version::V31),
            RstStatus::STREAM_IN_USE
        );
    }
}
