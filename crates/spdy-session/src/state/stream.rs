//! One stream: its two halves, its answer, its windows, and what waits to be sent on it
//! (SPDY/3.1 §2.3).
//!
//! ```text
//!           +--------- FIN sent ---------> half closed (local) ---- FIN got ----+
//!   open ---+                                                                   +--> closed
//!           +--------- FIN got ----------> half closed (remote) --- FIN sent ---+
//!           +------------------------- RST_STREAM, either way ------------------+
//! ```
//!
//! A unidirectional stream starts half closed. Beside the halves stands the *answer*: the one
//! SYN_REPLY that goes from recipient to opener, before all else that the recipient sends.

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
    /// We have sent FIN, or never may send.
    HalfClosedLocal,
    /// The peer has sent FIN, or never may send.
    HalfClosedRemote,
    Closed,
}

/// A frame that can carry FIN, in either direction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Step {
    Sent { fin: bool },
    Received { fin: bool },
}

/// Whether SYN_REPLY was seen, and which side sends it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ReplyState {
    /// The peer's, and it has not come.
    Awaited,
    /// The peer's, and it has come.
    Received,
    /// Ours, and the owner has not given it.
    NotSent,
    /// Ours, and it is queued or sent.
    Sent,
    /// There is none: we opened the stream, one way.
    NotExpected,
    /// There is none: the peer opened the stream, one way.
    NotAllowed,
}

/// A frame on a stream that came from the peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Arrival {
    Reply,
    Headers,
    Data,
}

/// What the peer did wrong on a stream that is there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum StreamViolation {
    /// DATA or HEADERS where SYN_REPLY must come first.
    BeforeReply,
    /// A second SYN_REPLY.
    SecondReply,
    /// SYN_REPLY by the side that opened the stream.
    ReplyByOpener,
    /// Anything after FIN.
    AfterFin,
}

impl StreamViolation {
    /// The status of our RST_STREAM. SPDY/2 has no codes of its own for the last two.
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
    /// The state after `step`: one line for each step that a stream can take.
    ///
    /// # Errors
    ///
    /// What the peer did wrong. What *we* do wrong is a bug, and panics.
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

    /// Whether the peer may still send.
    pub(crate) fn receives(self) -> bool {
        matches!(self, Self::Open | Self::HalfClosedLocal)
    }

    /// Whether we may still send.
    pub(crate) fn sends(self) -> bool {
        matches!(self, Self::Open | Self::HalfClosedRemote)
    }
}

/// What waits to be sent on a stream, in order.
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
    /// The last of all items.
    Reset {
        status: RstStatus,
    },
}

/// In which queue of `outbound` a stream stands: in one at most.
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

/// Input of a stream without a reader.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiscardedInput {
    /// DATA, bytes.
    pub(crate) bytes: u64,
    /// Since when we have had no more output on it; before our FIN, since when it is discarded.
    pub(crate) since: Instant,
}

/// One stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: StreamId,
    pub(crate) associated_to: StreamId,
    /// What its DATA goes by.
    pub(crate) priority: Priority,
    /// The priority in its SYN_STREAM.
    pub(crate) syn_priority: Priority,
    pub(crate) unidirectional: bool,
    pub(crate) state: State,
    pub(crate) answer: ReplyState,
    /// Our SYN_STREAM is on the wire; always so for the peer's streams.
    pub(crate) written: bool,
    /// HEADERS frames that came.
    pub(crate) headers_seen: u32,
    /// Plain bytes of the header blocks that came.
    pub(crate) header_bytes: usize,

    pub(crate) send: SendWindow,
    pub(crate) items: VecDeque<Item>,
    /// Bytes of DATA in `items`.
    pub(crate) queued_bytes: usize,
    /// The last item was queued: one with FIN, or RST_STREAM.
    pub(crate) end_queued: bool,
    /// RST_STREAM to send behind our FIN, if the peer's half is still open then.
    pub(crate) reset_after_fin: Option<RstStatus>,
    /// `send_capacity` is 0 until the queue has gone down.
    pub(crate) full: bool,
    pub(crate) queue_state: QueueState,
    /// It has waited for credit long enough: small DATA may go.
    pub(crate) force_small_data: bool,
    /// Since when its DATA has waited for credit of its own, and how much has left since.
    pub(crate) starved: Option<(Instant, usize)>,

    pub(crate) receive_window: ReceiveWindow,
    /// Bytes handed to the owner and not consumed.
    pub(crate) unread: usize,
    /// It counts among the open streams of its side: until it is let go, which is after the frame that ended it.
    pub(crate) counted: bool,
    /// A WINDOW_UPDATE is queued.
    pub(crate) grant_queued: bool,
    /// Present if the input has no reader.
    pub(crate) discarded: Option<DiscardedInput>,
}

impl Stream {
    /// True if credit for the peer's half is worth a WINDOW_UPDATE.
    ///
    /// Not after its FIN (SPDY/3.1 §2.6.8: it would be ignored), unless it has used its window up to the last byte:
    /// Jetty then holds back the WINDOW_UPDATE of that stream too, and would get only 64 KiB of our response.
    pub(crate) fn needs_grants(&self) -> bool {
        self.state.receives() || (self.state.sends() && self.receive_window.available() <= 0)
    }

    /// Takes the step of a frame that came, if it may come now.
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

    /// Applies a frame that was written.
    pub(crate) fn apply_sent(&mut self, fin: bool) {
        self.state = match self.state.after(Step::Sent { fin }) {
            Ok(state) => state,
            Err(violation) => unreachable!("{violation:?} caused locally on {self:?}"),
        };
    }

    /// Whether the owner may queue more for it (SYN_REPLY is checked elsewhere).
    pub(crate) fn accepts_output(&self) -> bool {
        self.state.sends() && !self.end_queued && self.answer != ReplyState::NotSent
    }

    /// Whether its first item is one that needs no credit; `None` without items.
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
