//! Decides which frame is written next.
//!
//! A frame is encoded only when the driver polls for it. The order (choice, SPDY/3.1 §2.3.3 leaves it open):
//!
//! 1. the initial SETTINGS, and in 3.1 the first WINDOW_UPDATE of the session
//! 2. PING echoes, then our own PING
//! 3. WINDOW_UPDATE: what the peer waits for
//! 4. RST_STREAM; it overtakes the DATA of its stream, which is dropped
//! 5. header blocks (and bare FINs, and RST_STREAM that was queued behind output), in the order in which they were queued. IDs
//!    therefore increase on the wire as `open` assigned them. A block is compressed when it is written, so that the order in the
//!    compressor is the order on the wire (SPDY/3.1 §2.6.10.1)
//! 6. GOAWAY of an orderly shutdown
//! 7. DATA, by priority (`state/data_scheduler.rs`)
//!
//! A stream's own frames keep their order, because each stream has one queue of items, and is in at most one queue of streams.

use bytes::BytesMut;
use spdy_frame::frame::{Frame, Ping, Setting, SettingId, Settings, WindowUpdate};
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;

use crate::config::SettingsTiming;
use crate::session::endpoint::Session;
use crate::state::stream::QueueState;
use crate::state::window::INITIAL_WINDOW;

impl Session {
    /// Queues the initial SETTINGS and WINDOW_UPDATE, if `settings_timing` allows it now.
    pub(crate) fn queue_initial_settings(&mut self) {
        let now = match self.config.settings_timing {
            SettingsTiming::Immediate => true,
            SettingsTiming::AfterPeer => self.stats.frames_received.total() > 0,
            SettingsTiming::Never => false,
        };
        if !now || self.outbound.initial_settings_done {
            return;
        }
        self.outbound.initial_settings_done = true;
        // Ascending IDs, no PERSIST: Chromium ends the session because of descending IDs, and we neither request nor offer storage
        // (SPDY/3.1 §2.6.4; stored values can track users like cookies)
        let mut entries = Vec::with_capacity(2);
        let streams = self.config.peer_streams();
        if streams != u32::MAX {
            entries.push(Setting::new(SettingId::MAX_CONCURRENT_STREAMS, streams));
        }
        let window = self.config.stream_window();
        if self.config.version == Version::V2 {
            // no effect according to the spec, but node-spdy applies flow control in SPDY/2 too, and stops after 64 KiB without it
            entries.push(Setting::new(SettingId::INITIAL_WINDOW_SIZE, 0x7fff_ffff));
        } else if self.stream_windows && window != INITIAL_WINDOW {
            entries.push(Setting::new(SettingId::INITIAL_WINDOW_SIZE, window as u32));
        }
        let settings = Settings {
            entries,
            ..Settings::default()
        };
        self.outbound.initial_settings = Some(settings);
        self.outbound.opens_window = self.session_window;
    }

    /// Opens the session's window to its full size, before all other output except SETTINGS.
    pub(crate) fn open_session_window(&mut self) {
        self.outbound.opens_window = true;
    }

    /// Puts a stream into the queue for its first item, or starts its timeout for credit.
    pub(crate) fn schedule(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(id)
            && !self.outbound.queue(stream, self.stream_windows)
        {
            self.mark_starved(id);
        }
    }

    /// Starts the timeout of a stream that waits for credit.
    fn mark_starved(&mut self, id: StreamId) {
        let now = self.now;
        if let (Some(stream), Some(timeout)) = (self.streams.get_mut(id), self.config.write_timeout)
        {
            let (since, _) = *stream.starved.get_or_insert((now, 0));
            self.deadlines.look_at_streams(since + timeout);
        }
    }

    /// To be called when a stream got credit: it may send again.
    pub(crate) fn handle_credit(&mut self, id: StreamId) {
        let small = self.config.small_data_bytes;
        if let Some(stream) = self.streams.get_mut(id)
            && stream.send.credit() >= small.min(stream.queued_bytes)
        {
            stream.starved = None;
            if stream.queue_state == QueueState::Delayed {
                stream.queue_state = QueueState::Unqueued;
                self.outbound.held.retain(|&held| held != id);
            }
        }
        self.schedule(id);
    }

    /// Queues all streams again that waited for more credit. Called when the session got credit, or, with `force`, when
    /// `small_data_delay` is over and they send what they can.
    pub(crate) fn release_delayed(&mut self, force: bool) {
        self.outbound.delay_until = None;
        for id in std::mem::take(&mut self.outbound.held) {
            if let Some(stream) = self.streams.get_mut(id) {
                stream.queue_state = QueueState::Unqueued;
                stream.force_small_data |= force;
                self.schedule(id);
            }
        }
    }

    /// Appends the next frame to `out`. Returns `false` if there is none.
    pub(crate) fn write_next(&mut self, out: &mut BytesMut) -> bool {
        if let Some(settings) = self.outbound.initial_settings.take() {
            return self.put(&Frame::Settings(settings), out);
        }
        // The delta is computed now, so that it does not depend on how the frame before it was split.
        if std::mem::take(&mut self.outbound.opens_window)
            && let delta @ 1.. = self.receive_window.grant()
        {
            let stream_id = StreamId::ZERO;
            return self.put(&Frame::WindowUpdate(WindowUpdate { stream_id, delta }), out);
        }
        self.probe_version();
        if !self.closing.has_ended()
            && let Some(id) = self.pings.next(self.now)
        {
            return self.put(&Frame::Ping(Ping { id }), out);
        }
        if let Some(grant) = self.next_grant() {
            return self.put(&Frame::WindowUpdate(grant), out);
        }
        if self.write_reset(out) {
            return true;
        }
        while let Some(id) = self.outbound.heads.pop_front() {
            if self.write_head(id, out) {
                return true;
            }
        }
        if let Some(goaway) = self.take_goaway() {
            return self.put(&Frame::GoAway(goaway), out);
        }
        self.write_data(out)
    }

    /// Writes a DATA frame of the next scheduled stream.
    fn write_data(&mut self, out: &mut BytesMut) -> bool {
        let (windows, session_window) = (self.stream_windows, self.obeys_session_window());
        let (frame_bytes, small) = (self.config.data_frame_bytes, self.config.small_data_bytes);
        while !session_window || self.send.credit() > 0 {
            let Some(id) = self.outbound.scheduler.pop() else {
                return false;
            };
            let Some(stream) = self.streams.get_mut(id) else {
                continue;
            };
            stream.queue_state = QueueState::Unqueued;
            let mut credit = usize::MAX;
            if windows {
                credit = credit.min(stream.send.credit());
            }
            if session_window {
                credit = credit.min(self.send.credit());
            }
            if credit == 0 {
                self.mark_starved(id); // a smaller initial window has made the window negative since
                continue;
            }
            let len = stream.queued_bytes.min(frame_bytes);
            if credit < len.min(small) && !stream.force_small_data {
                stream.queue_state = QueueState::Delayed;
                self.outbound.held.push(id);
                let until = self.now + self.config.small_data_delay;
                self.outbound.delay_until.get_or_insert(until);
                continue;
            }
            stream.force_small_data = false;
            self.put_data(id, len.min(credit), out);
            return true;
        }
        false
    }
}
