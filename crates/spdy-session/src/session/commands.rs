//! Commands of the owner of a session: open, reply, send, consume, reset, ping.

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
    /// Opens a stream: queues its SYN_STREAM. IDs increase in the order of these calls.
    ///
    /// A server opens a push with `unidirectional`, and with `associated_to` set to the request. The response to that request must
    /// still be incomplete, so that the push's SYN_STREAM is sent before the request's FIN.
    ///
    /// # Errors
    ///
    /// If the peer's MAX_CONCURRENT_STREAMS is reached, the session is ending, or the associated stream is gone.
    ///
    /// # Panics
    ///
    /// If a header block does not fit into a frame of the version. This and all other functions that queue a block panic when the
    /// block is written, not when it is queued; check it first with [`HeaderBlock::check`].
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

    /// Creates a stream without any queued frames.
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

    /// True if the peer's limit allows us to open one more stream.
    pub(crate) fn has_room(&self) -> bool {
        self.streams.ours_active() < self.max_open_streams() as usize
    }

    /// Queues SYN_REPLY. Returns `false` if no stream `id` waits for one.
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

    /// Schedules the stream's DATA at `priority` from now on. For an owner that infers priorities for a peer that sets none, until
    /// the peer sets one ([`restore_priorities`](Self::restore_priorities)).
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

    /// Schedules every stream's DATA at the priority of its SYN_STREAM again, and undoes all calls of
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

    /// Queues HEADERS behind all other output of the stream. Returns `false` if the stream can no longer send, or its SYN_REPLY was
    /// not queued yet.
    ///
    /// Some peers hang on HEADERS (moby/spdystream, OkHttp's server, nginx) and some ignore FIN on it (node-spdy, OkHttp): end
    /// streams with DATA.
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

    /// Bytes that `send_data` would queue now; 0 also for an unknown stream.
    ///
    /// After it was 0 because the queue was full, it stays 0 until half of the queue has been sent.
    /// [`Event::Writable`](crate::event::Event::Writable) reports that.
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

    /// Queues DATA without copying it. Returns `false` if the stream can no longer send, or its SYN_REPLY was not queued yet.
    ///
    /// Bytes above [`send_capacity`](Self::send_capacity) are queued too: limiting memory is then up to the owner. Empty DATA
    /// without `fin` is ignored.
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
            // FIN is set on the last queued DATA frame if that was not sent yet
            Some(Item::Data { fin: last, .. }) if data.is_empty() => *last = fin,
            _ => stream.items.push_back(Item::Data { bytes: data, fin }),
        }
        self.schedule(id);
        self.update_waits();
        true
    }

    /// Reports that the owner has consumed `bytes` of a stream's DATA, so that the credit returns to the peer.
    ///
    /// A stream that was reset needs no call, and a call has no effect: its credit was returned at once. A stream that ended by FIN
    /// is retained until all of its DATA is consumed.
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

    /// Accepts a pushed stream: its window grows from [`settings_window_bytes`](crate::config::Config::settings_window_bytes) to
    /// the size of any other stream's window.
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

    /// Queues RST_STREAM. The credit of unread DATA returns to the session window, and queued DATA is dropped.
    ///
    /// The stream has no further events, not even for this reset. A server's reset of a request also ends the
    /// pushes that belong to it.
    pub fn reset(&mut self, id: StreamId, status: RstStatus) {
        let Some(stream) = self.take_stream(id) else {
            return;
        };
        // an owner that refuses a stream has reached a limit, as if the session itself had refused it
        let refused = status == RstStatus::REFUSED_STREAM && !self.streams.is_ours(id);
        if refused && let Err(error) = self.budget.refused_stream(self.now) {
            return self.fail(error);
        }
        // never written, or already closed: the peer has no stream that could be reset
        if stream.written && stream.state != State::Closed {
            self.outbound.resets.push_back((id, status));
        }
        self.cancel_pushes_of(id);
        self.after_change();
    }

    /// Queues FIN behind all other output of the stream. After FIN was sent, RST_STREAM with `status` follows if the peer's half is
    /// still open. Unlike [`reset`](Self::reset), it does not drop queued DATA.
    ///
    /// Ends a stream whose peer never sends FIN (Kubernetes exec: the server ends stdout and stderr this way). Until the end the
    /// stream counts as open, and received DATA must still be [consumed](Self::consume). A stream that cannot send is reset at
    /// once.
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

    /// Queues RST_STREAM with `status` behind all other output of the stream. Unlike [`reset`](Self::reset), it does not drop
    /// queued output: a response that fails halfway keeps its head.
    ///
    /// Until RST_STREAM is written the stream counts as open, and received DATA must still be [consumed](Self::consume). A stream
    /// that cannot send is reset at once, and a stream with a queued FIN ends with that FIN instead.
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

    /// Sends a PING. At most one is in flight: a second call during that time gets the same
    /// [`Event::Pong`](crate::event::Event::Pong).
    pub fn ping(&mut self, now: Instant) {
        self.advance(now);
        if !self.closing.has_ended() {
            self.pings.request(now);
        }
    }

    /// Accepts no new streams, and closes the session when all open streams have ended.
    pub fn shutdown(&mut self, now: Instant) {
        self.advance(now);
        self.begin_drain();
        self.after_change();
    }

    /// Ends the session at once with GOAWAY(INTERNAL_ERROR).
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

    /// Otherwise the DATA queue grows if a peer closes the session window, sends requests and resets them.
    #[test]
    fn streams_that_are_reset_leave_nothing_behind() {
        let mut config = Config::new(Role::Client, Version::V31);
        config.small_data_bytes = 1 << 20;
        let mut session = Session::new(config, Instant::ZERO);
        let mut wire = bytes::BytesMut::new();
        // The same number of streams in each priority queue, and a window that is too small for all of them.
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
