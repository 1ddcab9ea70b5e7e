//! What the owner of a session commands: open, answer, send, consume, reset, ping.

use bytes::Bytes;
use spdy_clock::Instant;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::priority::Priority;
use spdy_frame::status::RstStatus;
use spdy_frame::stream_id::StreamId;

use crate::config::Role;
use crate::error::OpenError;
use crate::limit::Limit;
use crate::session::endpoint::{Session, StreamOptions};
use crate::state::stream::{DiscardedInput, Item, QueueState, ReplyState, State, Stream};
use crate::state::window::{ReceiveWindow, SendWindow};

impl Session {
    /// Opens a stream: its SYN_STREAM is queued, ids rise in the order of these calls.
    ///
    /// A server pushes so: `unidirectional`, and `associated_to` the request it belongs to, which
    /// must still be answered: its SYN_STREAM then stands before the parent's FIN.
    ///
    /// # Errors
    ///
    /// When the peer's MAX_CONCURRENT_STREAMS is reached, the session is ending, or the stream
    /// that a push belongs to is gone.
    ///
    /// # Panics
    ///
    /// Here and with every other block: not now, but when it is written, if it does not fit into a
    /// frame of the version. [`HeaderBlock::check`] finds that before.
    pub fn open(
        &mut self,
        headers: &HeaderBlock,
        open: StreamOptions,
    ) -> Result<StreamId, OpenError> {
        if self.is_closing() {
            return Err(OpenError::Closing);
        }
        let parent = open.associated_to;
        if self.config.role == Role::Server && !parent.is_zero() {
            let answers = |stream: &Stream| stream.state.sends();
            if self.streams.is_ours(parent) || !self.streams.get(parent).is_some_and(answers) {
                return Err(OpenError::ParentGone { parent });
            }
        }
        if !self.has_room() {
            self.is_open_blocked = true;
            return Err(OpenError::Full {
                limit: self.max_open_streams(),
            });
        }
        let id = StreamId::new(self.next_id);
        self.next_id += 2;
        let (state, answer) = if open.unidirectional {
            (State::HalfClosedRemote, ReplyState::NotExpected)
        } else {
            (State::Open, ReplyState::Awaited)
        };
        let mut stream = self.new_stream(id, open, state, answer);
        stream.written = false;
        stream.end_queued = open.fin;
        stream.items.push_back(Item::SynStream {
            headers: headers.clone(),
            fin: open.fin,
        });
        self.streams.insert(stream);
        self.schedule(id);
        self.update_waits();
        Ok(id)
    }

    /// A stream with nothing in it.
    pub(crate) fn new_stream(
        &mut self,
        id: StreamId,
        open: StreamOptions,
        state: State,
        answer: ReplyState,
    ) -> Stream {
        Stream {
            id,
            associated_to: open.associated_to,
            priority: open.priority,
            syn_priority: open.priority,
            unidirectional: open.unidirectional,
            state,
            answer,
            written: true,
            headers_seen: 0,
            header_bytes: 0,
            send: SendWindow::new(self.peer_initial_window),
            items: self.streams.queue(),
            queued_bytes: 0,
            end_queued: false,
            reset_after_fin: None,
            full: false,
            queue_state: QueueState::Unqueued,
            force_small_data: false,
            starved: None,
            receive_window: ReceiveWindow::of_stream(self.config.stream_window()),
            unread: 0,
            counted: true,
            grant_queued: false,
            discarded: None,
        }
    }

    /// Whether one more stream of ours may be open.
    pub(crate) fn has_room(&self) -> bool {
        self.streams.ours_active() < self.max_open_streams() as usize
    }

    /// SYN_REPLY; `false` if there is no stream that waits for one.
    pub fn reply(&mut self, id: StreamId, headers: &HeaderBlock, fin: bool) -> bool {
        let Some(stream) = self.streams.get_mut(id) else {
            return false;
        };
        if stream.answer != ReplyState::NotSent || !stream.state.sends() {
            return false;
        }
        stream.answer = ReplyState::Sent;
        stream.end_queued = fin;
        stream.items.push_back(Item::SynReply {
            headers: headers.clone(),
            fin,
        });
        self.schedule(id);
        self.update_waits();
        true
    }

    /// From now on the stream's DATA goes among that of `priority`: for an owner that knows better than a peer
    /// that ranks nothing, until it does ([`restore_priorities`](Self::restore_priorities)).
    pub fn prioritise(&mut self, id: StreamId, priority: Priority) {
        let Some(stream) = self.streams.get_mut(id) else {
            return;
        };
        let queued = stream.queue_state == QueueState::Data;
        if queued {
            self.outbound.forget(stream);
            stream.queue_state = QueueState::Unqueued;
        }
        stream.priority = priority;
        if queued {
            self.schedule(id);
        }
    }

    /// From now on every stream's DATA has the priority of its SYN_STREAM again, instead of that of
    /// [`prioritise`](Self::prioritise).
    pub fn restore_priorities(&mut self) {
        for id in self.streams.ids() {
            if let Some(stream) = self.streams.get(id)
                && stream.priority != stream.syn_priority
            {
                self.prioritise(id, stream.syn_priority);
            }
        }
    }

    /// HEADERS, after all that was queued before; `false` if the stream can no longer send, or
    /// still owes its SYN_REPLY.
    ///
    /// Some peers hang on HEADERS (moby/spdystream, OkHttp's server, nginx) and some overlook a
    /// FIN on it (node-spdy, OkHttp): end with DATA.
    pub fn headers(&mut self, id: StreamId, headers: &HeaderBlock, fin: bool) -> bool {
        let Some(stream) = self.streams.get_mut(id) else {
            return false;
        };
        if !stream.accepts_output() {
            return false;
        }
        stream.end_queued = fin;
        stream.items.push_back(Item::Headers {
            headers: headers.clone(),
            fin,
        });
        self.schedule(id);
        self.update_waits();
        true
    }

    /// Bytes that `send_data` would queue now; 0 also for a stream that is gone.
    ///
    /// Once it was 0 because the queue is full, it stays so until half of the queue has left, which
    /// [`Event::Writable`](crate::event::Event::Writable) reports.
    #[must_use]
    pub fn send_capacity(&self, id: StreamId) -> usize {
        match self.streams.get(id) {
            Some(stream) if stream.accepts_output() && !stream.full => self
                .config
                .send_buffer_bytes
                .saturating_sub(stream.queued_bytes),
            _ => 0,
        }
    }

    /// Queues DATA, without copying it; `false` if the stream can no longer send, or still owes
    /// its SYN_REPLY.
    ///
    /// More than [`send_capacity`](Self::send_capacity) is queued too: memory is then the owner's
    /// concern. Empty DATA without `fin` is nothing, and nothing is sent for it.
    pub fn send_data(&mut self, id: StreamId, data: Bytes, fin: bool) -> bool {
        let buffer = self.config.send_buffer_bytes;
        let Some(stream) = self.streams.get_mut(id) else {
            return false;
        };
        if !stream.accepts_output() {
            return false;
        }
        if data.is_empty() && !fin {
            return true;
        }
        stream.end_queued = fin;
        stream.queued_bytes += data.len();
        self.outbound.data_bytes += data.len();
        stream.full |= stream.queued_bytes >= buffer;
        match stream.items.back_mut() {
            // FIN rides on the last DATA frame if that has not left yet
            Some(Item::Data { fin: last, .. }) if data.is_empty() => *last = fin,
            _ => stream.items.push_back(Item::Data { bytes: data, fin }),
        }
        self.schedule(id);
        self.update_waits();
        true
    }

    /// The owner has consumed `bytes` of a stream's DATA: the credit returns to the peer.
    ///
    /// For a stream that was reset no call is needed, and a call has no effect: its credit was returned at once. A
    /// stream that ended by FIN counts until all of it is consumed.
    pub fn consume(&mut self, id: StreamId, bytes: usize) {
        let Some(stream) = self.streams.get_mut(id) else {
            return;
        };
        let bytes = bytes.min(stream.unread);
        stream.unread -= bytes;
        if self.stream_windows && stream.needs_grants() {
            stream.receive_window.consume(bytes);
            self.outbound.queue_grant(stream);
        }
        self.unread -= bytes;
        self.receive_window.consume(bytes);
        if stream.state == State::Closed && stream.unread == 0 {
            self.retire(id);
        }
    }

    /// Like [`consume`](Self::consume), for DATA without a reader: an upload that was answered, or whose reader was
    /// dropped. 0 bytes are enough to report that there is no reader.
    ///
    /// Many peers expect their request to be read to its end, so the stream continues. The limits are
    /// [`discarded_bytes`](crate::config::Config::discarded_bytes) and
    /// [`discard_timeout`](crate::config::Config::discard_timeout) after our FIN.
    pub fn discard(&mut self, id: StreamId, bytes: usize) {
        let (now, limit) = (self.now, self.config.discarded_bytes);
        let Some(stream) = self.streams.get_mut(id) else {
            return;
        };
        let discarded = stream.discarded.get_or_insert(DiscardedInput {
            bytes: 0,
            since: now,
        });
        let before = discarded.bytes;
        discarded.bytes += bytes as u64;
        let (over, was_within) = (discarded.bytes > limit, before <= limit);
        let sends = stream.state.sends();
        if !sends && let Some(timeout) = self.config.discard_timeout {
            self.deadlines.look_at_streams(now + timeout);
        }
        if !over {
            return self.consume(id, bytes);
        }
        if was_within {
            self.stats.limits.count(Limit::DiscardedBytes);
        }
        if sends && self.stream_windows {
            // the response continues; the upload stalls without credit
            stream.reset_after_fin.get_or_insert(RstStatus::CANCEL);
            let bytes = bytes.min(stream.unread);
            stream.unread -= bytes;
            self.unread -= bytes;
            self.receive_window.consume(bytes);
        } else if let Err(error) = self.stream_error(id, RstStatus::CANCEL) {
            self.fail(error);
        }
    }

    /// A pushed stream is wanted: its window grows from
    /// [`settings_window_bytes`](crate::config::Config::settings_window_bytes) to that of any other.
    pub fn widen_window(&mut self, id: StreamId) {
        let window = self.config.wide_window();
        if let Some(stream) = self.streams.get_mut(id)
            && self.stream_windows
            && stream.state.receives()
        {
            stream.receive_window.widen(window);
            self.outbound.queue_grant(stream);
        }
    }

    /// RST_STREAM; unread DATA is given back to the session window, queued DATA is dropped.
    ///
    /// The stream has no further events, not even for this reset. A server's reset of a request also ends the
    /// pushes that belong to it.
    pub fn reset(&mut self, id: StreamId, status: RstStatus) {
        let Some(stream) = self.take_stream(id) else {
            return;
        };
        // an owner without room is a session without room
        let refused = status == RstStatus::REFUSED_STREAM && !self.streams.is_ours(id);
        if refused && let Err(error) = self.budget.refused_stream(self.now) {
            return self.fail(error);
        }
        // never written, or over: the peer knows of nothing that could be reset
        if stream.written && stream.state != State::Closed {
            self.outbound.resets.push_back((id, status));
        }
        self.cancel_pushes_of(id);
        self.after_change();
    }

    /// FIN behind all that is queued; and once that has left, RST_STREAM with `status` if the peer's half
    /// is still open. [`reset`](Self::reset) drops what is queued, this does not.
    ///
    /// It ends a stream for a peer that never sends FIN of its own (exec of Kubernetes: the server ends
    /// stdout and stderr so). Until the end the stream counts as open, and DATA that comes must still be
    /// [consumed](Self::consume). A stream that cannot send is reset at once.
    pub fn finish_and_reset(&mut self, id: StreamId, status: RstStatus) {
        let Some(stream) = self.streams.get_mut(id) else {
            return;
        };
        stream.reset_after_fin.get_or_insert(status);
        let sends = stream.state.sends();
        let accepts = stream.accepts_output();
        if accepts {
            self.send_data(id, Bytes::new(), true);
        } else if !sends
            || self
                .streams
                .get(id)
                .is_some_and(|stream| !stream.end_queued)
        {
            self.reset(id, status);
        }
    }

    /// RST_STREAM with `status` behind all that is queued on the stream. [`reset`](Self::reset) drops
    /// what is queued, this does not: a response that fails while it is produced keeps its head.
    ///
    /// Until RST_STREAM is written the stream counts as open, and DATA that comes must still be
    /// [consumed](Self::consume). A stream that cannot send is reset at once, and one whose FIN is
    /// queued already ends by that.
    pub fn reset_behind_output(&mut self, id: StreamId, status: RstStatus) {
        let Some(stream) = self.streams.get_mut(id) else {
            return;
        };
        if stream.accepts_output() {
            stream.end_queued = true;
            stream.items.push_back(Item::Reset { status });
            self.schedule(id);
            self.update_waits();
        } else if !stream.end_queued {
            self.reset(id, status);
        }
    }

    /// Sends a PING. At most one is in flight: a call while one is in flight is answered by the same
    /// [`Event::Pong`](crate::event::Event::Pong).
    pub fn ping(&mut self, now: Instant) {
        self.advance(now);
        if !self.closing.has_ended() {
            self.pings.request(now);
        }
    }

    /// Stops taking streams; open ones go on to their end, then the session closes.
    pub fn shutdown(&mut self, now: Instant) {
        self.advance(now);
        self.begin_drain();
        self.after_change();
    }

    /// Ends at once with GOAWAY(INTERNAL_ERROR).
    pub fn abort(&mut self, now: Instant) {
        self.advance(now);
        self.fail(crate::error::SessionError::Aborted);
    }
}

#[cfg(test)]
mod tests {
    use spdy_frame::version::Version;

    use super::*;
    use crate::config::Config;

    #[test]
    fn when_ids_run_out_no_stream_is_opened_and_none_starts_again_from_the_first() {
        let mut session = Session::new(Config::new(Role::Client, Version::V31), Instant::ZERO);
        session.next_id = StreamId::MAX.value();
        let headers = HeaderBlock::new();
        assert_eq!(
            session.open(&headers, StreamOptions::default()),
            Ok(StreamId::MAX)
        );
        assert!(session.is_closing());
        assert_eq!(
            session.open(&headers, StreamOptions::default()),
            Err(OpenError::Closing)
        );
    }

    /// A peer that closed the session window, sent requests and reset them left its IDs in the DATA queue.
    #[test]
    fn streams_that_are_reset_leave_nothing_behind() {
        let mut config = Config::new(Role::Client, Version::V31);
        config.small_data_bytes = 1 << 20;
        let mut session = Session::new(config, Instant::ZERO);
        let mut wire = bytes::BytesMut::new();
        // As many in each queue as there are priorities, and a window that is too small for all.
        for number in 0..1000 {
            let id = session
                .open(&HeaderBlock::new(), StreamOptions::default())
                .unwrap();
            if number % 3 > 0 {
                while session.poll_transmit(Instant::ZERO, &mut wire) {}
            }
            session.send_data(id, Bytes::from(vec![0; 70_000]), true);
            if number % 3 > 1 {
                while session.poll_transmit(Instant::ZERO, &mut wire) {}
            }
            session.reset(id, RstStatus::CANCEL);
            assert_eq!(session.outbound.queued_streams(), 0, "after {number}");
        }
    }

    #[test]
    fn out_of_range_sizes_are_clamped() {
        let mut config = Config::new(Role::Client, Version::V2);
        (config.send_buffer_bytes, config.data_frame_bytes) = (0, usize::MAX);
        let mut session = Session::new(config, Instant::ZERO);
        let id = session
            .open(&HeaderBlock::new(), StreamOptions::default())
            .unwrap();
        assert_eq!(session.send_capacity(id), 1);
        session.send_data(id, Bytes::from(vec![0; 1 << 24]), false);
        let mut wire = bytes::BytesMut::new();
        while session.poll_transmit(Instant::ZERO, &mut wire) {}
        assert_eq!(session.stats().sent_data_bytes, 1 << 24);
    }
}
