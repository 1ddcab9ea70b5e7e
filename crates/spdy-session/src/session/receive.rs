//! Handles received frames: the dispatch, and the frames of the session itself (SPDY/3.1 §2.6). Frames of streams are in
//! `session/receive_stream.rs`.
//!
//! A protocol error has one of two consequences (SPDY/3.1 §2.4). A stream error is handled where it is detected. A session error is
//! an `Err` that is returned to [`Session::handle_frame`].

use bytes::Bytes;
use spdy_frame::error::BlockError;
use spdy_frame::frame::{Frame, Setting, SettingId, Settings, WindowUpdate};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::status::RstStatus;
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;

use crate::config::Role;
use crate::error::{Flood, SessionError};
use crate::event::{Event, ResetCause};
use crate::limit::Limit;
use crate::observe::Direction;
use crate::session::endpoint::Session;
use crate::state::pings::PingOutcome;
use crate::state::window::MAX_WINDOW;

/// The headers of an inflated block, or why they are invalid.
pub(crate) type Block = Result<HeaderBlock, BlockError>;

impl Session {
    /// Handles a received frame, or a piece of DATA.
    pub(crate) fn handle_frame(&mut self, frame: Frame) {
        let piece = matches!(frame, Frame::Data(_));
        if !(piece && self.within_data) {
            self.stats.frames_received.count(frame.kind());
        }
        self.within_data = piece && !self.decoder.is_between_frames();
        if let Err(error) = self.dispatch(frame) {
            return self.fail(error);
        }
        self.queue_initial_settings();
        let limit = self.config.control_queue_frames.saturating_mul(2);
        if self.outbound.resets.len() > limit {
            let limit = limit as u64;
            self.fail(SessionError::Flood {
                flood: Flood::ControlQueue,
                limit,
            });
        }
        if self.decoder.is_between_frames() {
            // a stream that opened and ended within one read counts as activity
            self.after_change();
        }
    }

    fn dispatch(&mut self, frame: Frame) -> Result<(), SessionError> {
        // every block is inflated, even if its stream is rejected (SPDY/3.1 §2.6.10.1)
        let block = match &frame {
            Frame::SynStream(syn) => self.inflate(&frame, &syn.block)?,
            Frame::SynReply(reply) => self.inflate(&frame, &reply.block)?,
            Frame::Headers(headers) => self.inflate(&frame, &headers.block)?,
            _ => {
                self.observe(Direction::Received, &frame, None, 0);
                Ok(HeaderBlock::new())
            }
        };
        match frame {
            Frame::Data(data) => self.on_data(data),
            Frame::CompressedData {
                stream_id,
                len_bytes,
            } => self.on_compressed_data(stream_id, len_bytes),
            Frame::SynStream(syn) => self.on_syn_stream(&syn, block),
            Frame::SynReply(reply) => self.on_syn_reply(&reply, block),
            Frame::Headers(headers) => self.on_headers(&headers, block),
            Frame::RstStream(rst) => self.on_rst_stream(rst),
            Frame::Settings(settings) => self.on_settings(&settings),
            Frame::Ping(ping) => self.on_ping(ping.id),
            Frame::GoAway(goaway) => self.on_goaway(goaway),
            Frame::WindowUpdate(update) => self.on_window_update(update),
            Frame::Noop => self.budget.empty_frame(self.now),
            // an unknown type, or CREDENTIAL, which no peer uses: skipped, but limited in number
            Frame::Skipped { len_bytes: 0, .. } => self.budget.empty_frame(self.now),
            Frame::Skipped { .. } => Ok(()),
        }
    }

    fn inflate(&mut self, frame: &Frame, block: &Bytes) -> Result<Block, SessionError> {
        let inflated = self.inflater.inflate(block)?;
        self.stats.received_block_plain_bytes += inflated.plain_bytes as u64;
        self.stats.received_block_wire_bytes += block.len() as u64;
        let headers = inflated.headers.as_ref().ok();
        self.observe(Direction::Received, frame, headers, inflated.plain_bytes);
        self.budget.inflated(inflated.plain_bytes, self.now)?;
        if let Err(error) = &inflated.headers {
            if let Some(limit) = Limit::of_block(error) {
                self.stats.limits.count(limit);
            }
            self.budget.refused_block(self.now)?;
        }
        Ok(inflated.headers)
    }

    /// SETTINGS applies on receipt; there is no acknowledgement (SPDY/3.1 §2.6.4). The decoder has already limited the number of
    /// entries and kept the first of each ID.
    fn on_settings(&mut self, settings: &Settings) -> Result<(), SessionError> {
        self.budget.settings_frame(self.now)?;
        if settings.ignored > 0 {
            self.stats.limits.count(Limit::SettingsEntries);
        }
        for entry in &settings.entries {
            // a client returns the value that the *server* once sent, not its own (choice, nginx)
            let returned = entry.flags & Setting::PERSISTED != 0;
            if self.config.role == Role::Server && returned {
                continue;
            }
            match entry.id {
                SettingId::MAX_CONCURRENT_STREAMS => self.peer_max_streams = Some(entry.value),
                SettingId::INITIAL_WINDOW_SIZE if self.stream_windows => {
                    self.on_initial_window(entry.value)?;
                }
                _ => {} // hints, or unknown
            }
        }
        Ok(())
    }

    /// Changes the send window of every stream that can still send by the difference; never the session window (SPDY/3.1 §2.6.8).
    /// The cost is proportional to the number of streams, and SETTINGS frames have a budget.
    fn on_initial_window(&mut self, value: u32) -> Result<(), SessionError> {
        let window = i64::from(value);
        if window > MAX_WINDOW {
            return Err(SessionError::InitialWindow { found: value });
        }
        let delta = window - self.peer_initial_window;
        self.peer_initial_window = window;
        if delta == 0 {
            return Ok(());
        }
        for id in self.streams.ids() {
            let Some(stream) = self
                .streams
                .get_mut(id)
                .filter(|stream| stream.state.sends())
            else {
                continue;
            };
            match stream.send.adjust(delta) {
                Ok(()) => self.handle_credit(id),
                Err(_) => self.stream_error(id, RstStatus::FLOW_CONTROL_ERROR)?,
            }
        }
        Ok(())
    }

    fn on_ping(&mut self, id: u32) -> Result<(), SessionError> {
        match self.pings.receive(id, self.now) {
            PingOutcome::Echoed | PingOutcome::Ignored => self.budget.ping_frame(self.now),
            PingOutcome::Answered(rtt) => {
                self.handle_probe_echo();
                self.events.push_back(Event::Pong { rtt });
                Ok(())
            }
            PingOutcome::TooMany => {
                let limit = self.config.ping_echoes as u64;
                Err(SessionError::Flood {
                    flood: Flood::PingEchoes,
                    limit,
                })
            }
        }
    }

    fn on_window_update(&mut self, update: WindowUpdate) -> Result<(), SessionError> {
        let WindowUpdate {
            stream_id: id,
            delta,
        } = update;
        if !self.stream_windows {
            return Ok(());
        }
        if id.is_zero() {
            return self.on_session_window_update(delta);
        }
        // late updates for ended streams are common and have no effect
        let Some(stream) = self
            .streams
            .get_mut(id)
            .filter(|stream| stream.state.sends())
        else {
            return Ok(());
        };
        // a delta of 0 violates the spec; ignoring it would be possible, but would hide a peer that stalls
        if delta == 0 || stream.send.adjust(i64::from(delta)).is_err() {
            return self.stream_error(id, RstStatus::FLOW_CONTROL_ERROR);
        }
        self.handle_credit(id);
        Ok(())
    }

    /// Stream 0 is the session in SPDY/3.1. In SPDY/3 it has no meaning and is ignored, as by Jetty.
    fn on_session_window_update(&mut self, delta: u32) -> Result<(), SessionError> {
        if !self.session_window {
            if !(self.config.detect_session_window && self.config.version == Version::V3) {
                return Ok(());
            }
            self.set_version_31();
        }
        let window = self.send.level();
        if delta == 0 || self.send.adjust(i64::from(delta)).is_err() {
            return Err(SessionError::SessionGrant { delta, window });
        }
        self.release_delayed(false);
        Ok(())
    }

    /// Ends a stream because of a protocol error on it.
    ///
    /// # Errors
    ///
    /// If the peer has aborted too many streams.
    pub(crate) fn stream_error(
        &mut self,
        id: StreamId,
        status: RstStatus,
    ) -> Result<(), SessionError> {
        self.stream_error_with_cause(id, status, ResetCause::ByUs(status))
    }

    /// Like [`stream_error`](Self::stream_error), with a cause for the owner.
    pub(crate) fn stream_error_with_cause(
        &mut self,
        id: StreamId,
        status: RstStatus,
        cause: ResetCause,
    ) -> Result<(), SessionError> {
        let Some(stream) = self.take_stream(id) else {
            return Ok(());
        };
        self.outbound.resets.push_back((id, status));
        self.events.push_back(Event::Reset { id, cause });
        self.cancel_pushes_of(id);
        self.count_aborted(id, stream.state.sends())
    }

    /// Counts a stream that was reset, if the peer opened it and our answer was incomplete.
    pub(crate) fn count_aborted(
        &mut self,
        id: StreamId,
        unanswered: bool,
    ) -> Result<(), SessionError> {
        if unanswered && !self.streams.is_ours(id) {
            return self.budget.aborted_stream(self.now);
        }
        Ok(())
    }
}
