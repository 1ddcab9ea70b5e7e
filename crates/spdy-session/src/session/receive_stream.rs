//! Handles received frames of streams: SYN_STREAM, SYN_REPLY, HEADERS, DATA, RST_STREAM (SPDY/3.1 §2.3, §2.6). This file defines
//! the reaction to each unexpected frame.

use spdy_frame::error::BlockError;
use spdy_frame::frame::{Data, Headers, RstStream, SynReply, SynStream};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::status::RstStatus;
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;

use crate::config::{PushPolicy, Role};
use crate::error::SessionError;
use crate::event::{Event, ResetCause};
use crate::limit::Limit;
use crate::session::endpoint::{Session, StreamOptions};
use crate::session::receive::Block;
use crate::state::stream::{Arrival, ReplyState, State, StreamViolation};
use crate::state::window::INITIAL_WINDOW;

impl Session {
    pub(crate) fn on_syn_stream(
        &mut self,
        syn: &SynStream,
        block: Block,
    ) -> Result<(), SessionError> {
        let id = syn.stream_id;
        // Netty and spdy-transport reset the stream, but its ID would be one of ours (choice)
        if self.streams.is_ours(id) {
            return Err(SessionError::Parity { found: id });
        }
        if id <= self.last_peer_id {
            return self.on_used_id(id);
        }
        self.last_peer_id = id;
        self.budget.opened_stream(self.now);
        let headers = match block {
            Ok(headers) => headers,
            Err(error) => {
                self.refuse(id, self.block_status(&error));
                return self.count_aborted(id, true);
            }
        };
        if let Some(status) = self.push_fault(syn) {
            if self.config.push == PushPolicy::Refuse {
                self.stats.limits.count(Limit::ConcurrentStreams); // we announced a limit of 0
            }
            self.refuse(id, status);
            return self.budget.refused_stream(self.now);
        }
        // both halves are closed from the start, so no answer is possible (a push may be like this)
        if self.config.role == Role::Server && syn.unidirectional && syn.fin {
            self.refuse(id, RstStatus::PROTOCOL_ERROR);
            return self.count_aborted(id, true);
        }
        // after GOAWAY the spec allows ignoring it; REFUSED_STREAM is more helpful and equally safe (choice)
        let full = self.streams.theirs_active() >= self.config.peer_streams() as usize;
        if full {
            self.stats.limits.count(Limit::ConcurrentStreams);
        }
        if self.closing.refuses_streams(self.config.version) || full {
            self.refuse(id, RstStatus::REFUSED_STREAM);
            return self.budget.refused_stream(self.now);
        }
        self.accept(syn, headers);
        Ok(())
    }

    /// SYN_STREAM with an ID that is not higher than the last one.
    fn on_used_id(&mut self, id: StreamId) -> Result<(), SessionError> {
        if self.streams.is_open(id) {
            // RST_STREAM carries the ID, so the open stream ends with the new one
            return self.stream_error(id, RstStatus::PROTOCOL_ERROR);
        }
        if self.config.version == Version::V2 && self.streams.is_recently_closed(id) {
            self.outbound
                .resets
                .push_back((id, RstStatus::PROTOCOL_ERROR));
            return self.budget.stray_frame(self.now);
        }
        // SPDY/2 does not define decreasing IDs; SPDY/3 requires the end of the session (choice for used IDs)
        Err(SessionError::Order {
            found: id,
            last: self.last_peer_id,
        })
    }

    /// Why a client rejects a stream that the server opened; `None` if it accepts it. `spdy-http` checks its URL.
    fn push_fault(&self, syn: &SynStream) -> Option<RstStatus> {
        if self.config.role != Role::Client {
            return None;
        }
        let parent = syn.associated_to;
        match self.config.push {
            PushPolicy::Refuse => Some(RstStatus::REFUSED_STREAM),
            _ if self.closing.refuses_streams(self.config.version) => {
                Some(RstStatus::REFUSED_STREAM)
            }
            PushPolicy::AcceptUnassociated if parent.is_zero() => None,
            // SPDY/3 requires the end of the session here; ending the stream is enough (choice)
            PushPolicy::Accept if parent.is_zero() => Some(match self.config.version {
                Version::V2 => RstStatus::INVALID_STREAM,
                Version::V3 | Version::V31 => RstStatus::PROTOCOL_ERROR,
            }),
            PushPolicy::Accept | PushPolicy::AcceptUnassociated => {
                let is_open_parent = self.streams.is_ours(parent) && self.streams.is_open(parent);
                (!is_open_parent).then_some(RstStatus::INVALID_STREAM)
            }
        }
    }

    /// Rejects a SYN_STREAM by RST_STREAM, without storing the stream.
    fn refuse(&mut self, id: StreamId, status: RstStatus) {
        self.stats.streams_refused += u64::from(status == RstStatus::REFUSED_STREAM);
        self.outbound.resets.push_back((id, status));
        self.streams.remember(id);
    }

    fn accept(&mut self, syn: &SynStream, headers: HeaderBlock) {
        let id = syn.stream_id;
        // pushes of node-spdy and moby lack the flag; our half is closed anyway
        let push = self.config.role == Role::Client && !syn.associated_to.is_zero();
        let unidirectional = syn.unidirectional || push;
        let header_bytes = headers.plain_len(self.config.version);
        self.last_accepted = id;
        self.stats.streams_accepted += 1;
        self.events.push_back(Event::Opened {
            id,
            associated_to: syn.associated_to,
            priority: syn.priority,
            unidirectional,
            headers,
            fin: syn.fin,
        });
        let (state, answer) = match (unidirectional, syn.fin) {
            (false, false) => (State::Open, ReplyState::NotSent),
            (false, true) => (State::HalfClosedRemote, ReplyState::NotSent),
            (true, false) => (State::HalfClosedLocal, ReplyState::NotAllowed),
            (true, true) => return self.streams.remember(id),
        };
        let open = StreamOptions {
            priority: syn.priority,
            associated_to: syn.associated_to,
            unidirectional,
            fin: syn.fin,
        };
        let mut stream = self.new_stream(id, open, state, answer);
        stream.header_bytes = header_bytes;
        self.streams.insert(stream);
    }

    pub(crate) fn on_syn_reply(
        &mut self,
        reply: &SynReply,
        block: Block,
    ) -> Result<(), SessionError> {
        let (id, fin) = (reply.stream_id, reply.fin);
        // moby's client answers a push, though no answer is expected
        if self
            .streams
            .get(id)
            .is_some_and(|stream| stream.answer == ReplyState::NotExpected)
        {
            return Ok(());
        }
        if !self.apply_received(id, Arrival::Reply, fin)? {
            return Ok(());
        }
        match block {
            Ok(headers) => {
                let bytes = headers.plain_len(self.config.version);
                if let Some(stream) = self.streams.get_mut(id) {
                    stream.header_bytes += bytes;
                }
                self.events.push_back(Event::Reply { id, headers, fin });
            }
            Err(error) => return self.stream_error(id, self.block_status(&error)),
        }
        self.after_received(id);
        Ok(())
    }

    pub(crate) fn on_headers(
        &mut self,
        headers: &Headers,
        block: Block,
    ) -> Result<(), SessionError> {
        let (id, fin) = (headers.stream_id, headers.fin);
        if !fin && block.as_ref().is_ok_and(HeaderBlock::is_empty) {
            self.budget.empty_frame(self.now)?;
        }
        if !self.apply_received(id, Arrival::Headers, fin)? {
            return Ok(());
        }
        let bytes = block
            .as_ref()
            .map_or(0, |headers| headers.plain_len(self.config.version));
        let limit = self.config.header_bytes_per_stream;
        if let Some(stream) = self.streams.get_mut(id) {
            stream.headers_seen += 1;
            stream.header_bytes += bytes;
            if stream.headers_seen > self.config.headers_per_stream {
                self.stats.limits.count(Limit::HeadersPerStream);
                return self.stream_error(id, RstStatus::PROTOCOL_ERROR);
            }
            if stream.header_bytes > limit {
                self.stats.limits.count(Limit::HeaderBytesPerStream);
                let found = stream.header_bytes;
                let status = self.block_status(&BlockError::TooLong { limit, found });
                return self.stream_error(id, status);
            }
        }
        match block {
            Ok(headers) => self.events.push_back(Event::Headers { id, headers, fin }),
            Err(error) => return self.stream_error(id, self.block_status(&error)),
        }
        self.after_received(id);
        Ok(())
    }

    pub(crate) fn on_data(&mut self, data: Data) -> Result<(), SessionError> {
        let Data {
            stream_id: id,
            mut payload,
            fin,
        } = data;
        if payload.is_empty() && !fin {
            self.budget.empty_frame(self.now)?;
        }
        // Bytes that exceed a window end the stream or the session, but the bytes before them are delivered: the result must not
        // depend on where the transport split the frame.
        let session_room = self.session_room();
        let over_session = payload.len() > session_room;
        payload.truncate(session_room);
        self.stats.received_data_bytes += payload.len() as u64;
        self.receive_window.receive(payload.len());
        if self.version_detection.is_pending()
            && self.receive_window.available() < -self.tolerated_excess()
        {
            self.set_version_3();
        }

        let delivered = self.deliver(id, payload, fin && !over_session);
        self.update_backpressure();
        if over_session && delivered.is_ok() {
            return Err(self.session_window_error());
        }
        delivered
    }

    /// Passes DATA to the stream, or returns its credit to the session at once.
    fn deliver(
        &mut self,
        id: StreamId,
        mut payload: bytes::Bytes,
        fin: bool,
    ) -> Result<(), SessionError> {
        let len = payload.len();
        let status = match self.streams.get_mut(id) {
            Some(stream) if stream.state != State::Closed => {
                let room = usize::try_from(stream.receive_window.available()).unwrap_or(0);
                let room = if self.stream_windows {
                    room
                } else {
                    usize::MAX
                };
                let within = len <= room;
                match stream.apply_received(Arrival::Data, fin && within) {
                    Ok(()) => {
                        payload.truncate(room);
                        self.receive_window.consume(len - payload.len());
                        stream.receive_window.receive(payload.len());
                        stream.receive_window.measure_from(self.now);
                        stream.unread += payload.len();
                        self.unread += payload.len();
                        let fin = fin && within;
                        if fin || !payload.is_empty() {
                            self.events.push_back(Event::Data {
                                id,
                                data: payload,
                                fin,
                            });
                        }
                        if within {
                            self.after_received(id);
                            return Ok(());
                        }
                        self.stats.limits.count(Limit::StreamWindow);
                        RstStatus::FLOW_CONTROL_ERROR
                    }
                    // Undertow ends an upload with FIN on its last DATA, and often sends an empty DATA with FIN
                    // after it. Nothing is lost by that, so the stream continues, up to the limit on empty frames.
                    Err(StreamViolation::AfterFin) if len == 0 => {
                        return if fin {
                            self.budget.empty_frame(self.now)
                        } else {
                            Ok(()) // counted already
                        };
                    }
                    Err(violation) => {
                        self.receive_window.consume(len);
                        // SPDY/2 has no status code for it, and its spec defines no consequence (choice)
                        if violation == StreamViolation::AfterFin
                            && self.config.version == Version::V2
                        {
                            return Ok(());
                        }
                        violation.status(self.config.version)
                    }
                }
            }
            _ => {
                // DATA of unknown and closed streams also counts against the session window; otherwise the window would leak
                self.receive_window.consume(len);
                return self.stray_data(id);
            }
        };
        self.stream_error(id, status)
    }

    /// How much the peer may still send on the session, including the tolerated excess.
    fn session_room(&self) -> usize {
        if !self.session_window {
            return usize::MAX;
        }
        usize::try_from(self.receive_window.available() + self.tolerated_excess()).unwrap_or(0)
    }

    /// OkHttp and Undertow also change their *session's* send window by our INITIAL_WINDOW_SIZE, so they may exceed our session window
    /// by the amount by which we raised that value.
    fn tolerated_excess(&self) -> i64 {
        (self.config.stream_window() - INITIAL_WINDOW).max(0)
    }

    fn session_window_error(&self) -> SessionError {
        SessionError::SessionWindow {
            window: self.config.session_window_size(),
        }
    }

    /// Handles DATA for an unknown stream.
    fn stray_data(&mut self, id: StreamId) -> Result<(), SessionError> {
        // after our GOAWAY the peer may not have read yet that its stream was ignored
        let unseen = !self.streams.is_ours(id) && id > self.last_peer_id;
        if self.closing.is_goaway_sent() && unseen {
            return Ok(());
        }
        self.stray(id)
    }

    /// Handles DATA with the compression flag of an early draft: the payload must not be inflated.
    pub(crate) fn on_compressed_data(
        &mut self,
        id: StreamId,
        len: usize,
    ) -> Result<(), SessionError> {
        self.stats.received_data_bytes += len as u64;
        if len > self.session_room() {
            return Err(self.session_window_error());
        }
        self.receive_window.receive(len);
        self.receive_window.consume(len);
        if self.streams.is_open(id) {
            return self.stream_error(id, RstStatus::PROTOCOL_ERROR);
        }
        self.stray_data(id)
    }

    /// Handles RST_STREAM: closes the stream at once, and never answers by another RST_STREAM.
    pub(crate) fn on_rst_stream(&mut self, rst: RstStream) -> Result<(), SessionError> {
        let RstStream {
            stream_id: id,
            status,
        } = rst;
        if !self.streams.is_open(id) {
            return Ok(());
        }
        let Some(stream) = self.take_stream(id) else {
            return Ok(());
        };
        self.stats.resets_received.count(status);
        self.events.push_back(Event::Reset {
            id,
            cause: ResetCause::ByPeer(status),
        });
        self.cancel_pushes_of(id);
        self.count_aborted(id, stream.state.sends())
    }

    /// Applies a frame to stream `id`. Returns `false` if the frame needs no further handling.
    fn apply_received(
        &mut self,
        id: StreamId,
        arrival: Arrival,
        fin: bool,
    ) -> Result<bool, SessionError> {
        let step = match self.streams.get_mut(id) {
            Some(stream) if stream.state != State::Closed => stream.apply_received(arrival, fin),
            _ => {
                self.stray_block(id)?;
                return Ok(false);
            }
        };
        match step {
            Ok(()) => Ok(true),
            Err(violation) => {
                self.stream_error(id, violation.status(self.config.version))?;
                Ok(false)
            }
        }
    }

    /// To be called after a frame was delivered: closes a stream that ended with it.
    fn after_received(&mut self, id: StreamId) {
        if self
            .streams
            .get(id)
            .is_some_and(|stream| stream.state == State::Closed)
        {
            self.closed(id);
        }
    }

    /// Handles a frame for an unknown stream: the first is answered by RST_STREAM, and frames for a recently closed stream are
    /// ignored. (The spec allows an RST_STREAM for every such frame.)
    fn stray(&mut self, id: StreamId) -> Result<(), SessionError> {
        if self.streams.is_recently_closed(id) {
            return Ok(());
        }
        self.outbound
            .resets
            .push_back((id, RstStatus::INVALID_STREAM));
        self.streams.remember(id);
        self.budget.stray_frame(self.now)
    }

    /// Like [`stray`](Self::stray), for a frame with a header block. Inflating the block costs more than sending it, so it counts
    /// as a stray frame even if it is ignored.
    fn stray_block(&mut self, id: StreamId) -> Result<(), SessionError> {
        if self.streams.is_recently_closed(id) {
            return self.budget.stray_frame(self.now);
        }
        self.stray(id)
    }

    /// The status of RST_STREAM for a block that is malformed or too large.
    fn block_status(&self, error: &BlockError) -> RstStatus {
        if error.is_over_limit() && self.config.version != Version::V2 {
            RstStatus::FRAME_TOO_LARGE
        } else {
            RstStatus::PROTOCOL_ERROR
        }
    }
}
