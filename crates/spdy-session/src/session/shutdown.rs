//! How a session ends: by draining, by a fault, or with its transport (SPDY/3.1 §2.6.6).
//!
//! ```text
//!   open --- shutdown, or GOAWAY got ---> draining --- last stream ended --> ended: GOAWAY, flush
//!     |                                      |
//!     +------------- a fault ----------------+----> ended: streams lost, GOAWAY(status), flush
//!     +------- end of the transport ---------+----> ended: streams lost, nothing to flush
//! ```
//!
//! GOAWAY goes out twice at most: when draining begins, and when a fault ends the session. The
//! driver handles the lingering on the socket afterwards (it reads and discards for a short time,
//! so that a TCP reset does not destroy the GOAWAY in the peer's buffer).

use spdy_frame::frame::GoAway;
use spdy_frame::status::{GoAwayStatus, RstStatus};
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;

use crate::config::Role;
use crate::error::SessionError;
use crate::event::{Event, ResetCause};
use crate::session::endpoint::Session;
use crate::state::stream::{ReplyState, State, Stream};

impl Session {
    /// A stream whose halves are both closed now: it no longer counts, and goes when it is read.
    pub(crate) fn closed(&mut self, id: StreamId) {
        self.streams.stop_counting(id);
        if self
            .streams
            .get(id)
            .is_some_and(|stream| stream.unread == 0)
        {
            self.retire(id);
        }
    }

    /// Lets a stream go that has ended and was read; the session's window no longer has its growth.
    pub(crate) fn retire(&mut self, id: StreamId) {
        let grown = self.streams.retire(id);
        self.receive_window.shrink(grown);
    }

    /// Removes a stream early: its queued DATA is dropped, and its unread DATA is returned to the
    /// session's window, since its consumption can no longer be reported.
    pub(crate) fn take_stream(&mut self, id: StreamId) -> Option<Stream> {
        let stream = self.streams.remove(id)?;
        if stream.counted {
            self.streams.remember(id);
        }
        self.outbound.forget(&stream);
        self.outbound.data_bytes -= stream.queued_bytes;
        self.unread -= stream.unread;
        self.receive_window.consume(stream.unread);
        self.receive_window.shrink(stream.receive_window.grown());
        Some(stream)
    }

    /// A request ended early: so do the pushes that belong to it (SPDY/3.1 §3.3.1). The client may
    /// not have counted on it, so each is reset on the wire too.
    pub(crate) fn cancel_pushes_of(&mut self, parent: StreamId) {
        if self.config.role != Role::Server || self.streams.ours_active() == 0 {
            return;
        }
        for id in self.streams.ids() {
            let push = self.streams.is_open(id)
                && self
                    .streams
                    .get(id)
                    .is_some_and(|stream| stream.associated_to == parent)
                && self.streams.is_ours(id);
            if push && let Some(stream) = self.take_stream(id) {
                if stream.written {
                    self.outbound.resets.push_back((id, RstStatus::CANCEL));
                }
                let cause = ResetCause::ByUs(RstStatus::CANCEL);
                self.events.push_back(Event::Reset { id, cause });
            }
        }
    }

    /// We want no more streams.
    pub(crate) fn begin_drain(&mut self) {
        if self.closing.ended || self.closing.draining.is_some() {
            return;
        }
        self.closing.draining = Some(self.now);
        if self.config.early_goaway {
            self.closing.due = Some(GoAwayStatus::OK);
        }
    }

    /// GOAWAY came.
    ///
    /// # Errors
    ///
    /// When it was one of too many.
    pub(crate) fn on_goaway(&mut self, goaway: GoAway) -> Result<(), SessionError> {
        let last_good = match self.closing.received {
            Some(before) => {
                self.budget.empty_frame(self.now)?;
                // it must not rise: what was given up by the first GOAWAY may run elsewhere by now
                before.min(goaway.last_good)
            }
            None => goaway.last_good,
        };
        self.closing.received = Some(last_good);
        self.events.push_back(Event::GoAway {
            last_good,
            status: goaway.status,
        });
        let ours: Vec<_> = self.streams.ours_ids().collect();
        for id in ours {
            let lost = self.streams.get(id).is_some_and(|stream| {
                // a stream that was never written was not processed either, whatever last-good is:
                // a drain in two steps starts with 2^31 - 1; and an answered stream was processed,
                // so that a POST must not go out again (choice: the stream goes on)
                let above = id > last_good && stream.answer != ReplyState::Received;
                stream.state != State::Closed && (above || !stream.written)
            });
            if lost && self.take_stream(id).is_some() {
                self.events.push_back(Event::Reset {
                    id,
                    cause: ResetCause::NotProcessed,
                });
            }
        }
        Ok(())
    }

    /// Ends the session in order when it drains and no stream remains.
    pub(crate) fn end_if_drained(&mut self) {
        // a client of the older drafts may still send requests after its GOAWAY: the session ends by its close or by
        // the idle timeout
        let may_send_requests =
            self.config.role == Role::Server && self.config.version != Version::V31;
        let drains = self.closing.draining.is_some()
            || (self.closing.received.is_some() && !may_send_requests);
        if drains && !self.closing.ended && self.streams.active() == 0 {
            self.end();
        }
    }

    /// Ends the session in order.
    pub(crate) fn end(&mut self) {
        self.closing.ended = true;
        self.outbound.keep_resets_alone();
        self.closing.due = (!self.closing.sent).then_some(GoAwayStatus::OK);
        self.events.push_back(Event::Closed { error: None });
    }

    /// Ends the session with a fault: every stream is lost, and GOAWAY states the reason.
    pub(crate) fn fail(&mut self, error: SessionError) {
        if self.closing.ended {
            return;
        }
        if let Some(limit) = error.limit() {
            self.stats.limits.count(limit);
        }
        self.closing.due = Some(error.status());
        self.lose_streams(error);
    }

    /// Ends the session with its transport: no peer is left to notify.
    pub(crate) fn handle_transport_lost(&mut self) {
        self.closing.due = None;
        if self.closing.ended {
            self.outbound.clear();
            return;
        }
        match self.streams.active() {
            0 => {
                self.outbound.clear();
                self.closing.ended = true;
                self.events.push_back(Event::Closed { error: None });
            }
            open_streams => self.lose_streams(SessionError::Truncated { open_streams }),
        }
    }

    fn lose_streams(&mut self, error: SessionError) {
        self.closing.ended = true;
        for id in self.streams.ids() {
            let open = self.streams.is_open(id);
            self.take_stream(id);
            if open {
                let cause = ResetCause::SessionLost(error.clone());
                self.events.push_back(Event::Reset { id, cause });
            }
        }
        self.outbound.clear();
        self.events.push_back(Event::Closed { error: Some(error) });
    }

    /// The GOAWAY to write now.
    pub(crate) fn take_goaway(&mut self) -> Option<GoAway> {
        let status = self.closing.due.take()?;
        self.closing.sent = true;
        let status = (self.config.version != Version::V2).then_some(status);
        Some(GoAway {
            last_good: self.last_accepted,
            status,
        })
    }

    /// Whether an ended session has something left to write.
    pub(crate) fn has_pending_output(&self) -> bool {
        self.closing.due.is_some() || !self.outbound.resets.is_empty()
    }
}
