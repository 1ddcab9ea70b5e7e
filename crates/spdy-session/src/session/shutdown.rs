//! The end of a session: by draining, by an error, or with its transport (SPDY/3.1 §2.6.6).
//!
//! ```text
//!   open --- shutdown, or GOAWAY got ---> draining --- last stream ended --> ended: GOAWAY, flush
//!     |                                      |
//!     +------------- a fault ----------------+----> ended: streams lost, GOAWAY(status), flush
//!     +------- end of the transport ---------+----> ended: streams lost, nothing to flush
//! ```
//!
//! GOAWAY is sent at most twice: when draining begins, and when an error ends the session. The driver then lingers on the socket
//! (it reads and discards for a short time, so that a TCP reset does not destroy the GOAWAY in the peer's buffer).

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
    /// Handles a stream whose halves are both closed now: it is no longer counted, and is removed when its DATA is consumed.
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

    /// Removes a stream that has ended and was consumed, and takes its growth back from the session window.
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

    /// Resets the pushes of a request that ended early (SPDY/3.1 §3.3.1). The client may not do that by itself, so each push is
    /// also reset on the wire.
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

    /// Starts draining: no new streams are accepted.
    pub(crate) fn begin_drain(&mut self) {
        if self.closing.ended || self.closing.draining.is_some() {
            return;
        }
        self.closing.draining = Some(self.now);
        if self.config.early_goaway {
            self.closing.due = Some(GoAwayStatus::OK);
        }
    }

    /// Handles a received GOAWAY.
    ///
    /// # Errors
    ///
    /// If the peer sent too many GOAWAY frames.
    pub(crate) fn on_goaway(&mut self, goaway: GoAway) -> Result<(), SessionError> {
        let last_good = match self.closing.received {
            Some(before) => {
                self.budget.empty_frame(self.now)?;
                // last-good must not increase: streams above the first last-good may already have been retried elsewhere
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
                // a stream that was never written was not processed, whatever last-good is: a drain in two steps starts
                // with 2^31 - 1; an answered stream was processed, so a POST must not be retried (choice: the stream continues)
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

    /// Ends the session in order if it is draining and no stream is open.
    pub(crate) fn end_if_drained(&mut self) {
        // a client of the older drafts may still send requests after its GOAWAY: the session then ends when the client closes it or
        // by the idle timeout
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

    /// Ends the session with an error: every stream is lost, and GOAWAY states the reason.
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

    /// Ends the session because its transport ended: no peer is left to notify.
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

    /// True if an ended session still has output to write.
    pub(crate) fn has_pending_output(&self) -> bool {
        self.closing.due.is_some() || !self.outbound.resets.is_empty()
    }
}
