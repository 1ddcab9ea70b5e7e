//! What goes on the wire next, and the writing of it.
//!
//! Nothing is encoded before the driver polls for it. The order (choice, SPDY/3.1 §2.3.3 leaves it open):
//!
//! 1. the greeting: SETTINGS, and in 3.1 the first WINDOW_UPDATE of the session
//! 2. PING echoes, then our own PING
//! 3. WINDOW_UPDATE: what the peer waits for
//! 4. RST_STREAM; it overtakes the DATA of its stream, which is dropped
//! 5. header blocks (and bare FINs, and RST_STREAM that was queued behind output), first come first served: ids rise on the wire because
//!    `open` queued them so, and a block is compressed here, at the moment of writing, so that
//!    the order in the compressor is the order on the wire (SPDY/3.1 §2.6.10.1)
//! 6. GOAWAY of an orderly shutdown
//! 7. DATA, by priority (`scheduler.rs`)
//!
//! A stream's own frames keep their order, since each stream has one queue of items and stands in
//! at most one queue here.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use spdy_clock::Instant;
use spdy_frame::frame::{
    Data, Frame, Headers, Ping, RstStream, Setting, SettingId, Settings, SynReply, SynStream,
    WindowUpdate,
};
use spdy_frame::head::{DataHead, FLAG_FIN};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::kind::Kind;
use spdy_frame::status::RstStatus;
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;

use crate::config::SettingsTiming;
use crate::event::Event;
use crate::observe::Direction;
use crate::scheduler::Scheduler;
use crate::session::Session;
use crate::stream::{Item, QueueState, State, Stream};
use crate::window::{INITIAL_WINDOW, MAX_WINDOW};

/// What waits to be written, by kind.
#[derive(Debug)]
pub(crate) struct Outbound {
    /// The greeting was queued, or never will be.
    initial_settings_done: bool,
    initial_settings: Option<Settings>,
    /// The session's window is to be opened as far as it goes, whatever was consumed by then.
    opens_window: bool,
    /// Streams that are owed a WINDOW_UPDATE.
    pub(crate) window_updates: VecDeque<StreamId>,
    pub(crate) resets: VecDeque<(StreamId, RstStatus)>,
    /// Streams whose first item needs no credit.
    heads: VecDeque<StreamId>,
    scheduler: Scheduler,
    /// Streams that wait for more credit than a few bytes, and until when.
    held: Vec<StreamId>,
    pub(crate) delay_until: Option<Instant>,
    /// DATA queued on all streams, bytes.
    pub(crate) data_bytes: usize,
    /// Where header blocks are compressed.
    scratch: BytesMut,
}

impl Outbound {
    pub(crate) fn new(starvation_guard: u32) -> Self {
        Self {
            initial_settings_done: false,
            initial_settings: None,
            opens_window: false,
            window_updates: VecDeque::new(),
            resets: VecDeque::new(),
            heads: VecDeque::new(),
            scheduler: Scheduler::new(starvation_guard),
            held: Vec::new(),
            delay_until: None,
            data_bytes: 0,
            scratch: BytesMut::new(),
        }
    }

    /// How many places in queues are taken.
    #[cfg(test)]
    pub(crate) fn queued_streams(&self) -> usize {
        self.heads.len() + self.scheduler.len() + self.held.len()
    }

    /// Whether DATA waits for the transport, or for the session's window. That of streams without credit of their own
    /// stands in no queue: each of them has its own time.
    pub(crate) fn data_waits(&self) -> bool {
        let behind_a_head = !self.heads.is_empty() && self.data_bytes > 0;
        behind_a_head || !self.scheduler.is_empty() || !self.held.is_empty()
    }

    /// Takes a stream out of the queue that it stands in: one whose streams come and go while nothing
    /// can be written would grow for ever.
    pub(crate) fn forget(&mut self, stream: &Stream) {
        match stream.queue_state {
            QueueState::Unqueued => {}
            QueueState::Head => self.heads.retain(|&id| id != stream.id),
            QueueState::Data => self.scheduler.remove(stream.priority, stream.id),
            QueueState::Delayed => self.held.retain(|&id| id != stream.id),
        }
    }

    /// Queues a WINDOW_UPDATE, if the stream is owed one that is worth it.
    pub(crate) fn queue_grant(&mut self, stream: &mut Stream) {
        if stream.receive_window.is_update_due() && !stream.grant_queued {
            stream.grant_queued = true;
            self.window_updates.push_back(stream.id);
        }
    }

    /// Drops all but RST_STREAM: the session ends in order.
    pub(crate) fn keep_resets_alone(&mut self) {
        self.initial_settings = None;
        self.opens_window = false;
        self.window_updates.clear();
        self.heads.clear();
        self.scheduler.clear();
        self.held.clear();
        self.delay_until = None;
        self.data_bytes = 0;
    }

    /// Drops everything: the session ends with a fault.
    pub(crate) fn clear(&mut self) {
        self.keep_resets_alone();
        self.resets.clear();
    }
}

impl Session {
    /// Queues SETTINGS and the first WINDOW_UPDATE, if now is the time for it.
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
        // ascending ids, no PERSIST: Chromium ends the session over descending ones, and we neither request storage nor store (SPDY/3.1
        // §2.6.4; stored values are a tracking cookie)
        let mut entries = Vec::with_capacity(2);
        let streams = self.config.peer_streams();
        if streams != u32::MAX {
            entries.push(Setting::new(SettingId::MAX_CONCURRENT_STREAMS, streams));
        }
        let window = self.config.stream_window();
        if self.config.version == Version::V2 {
            // no effect by the text, but node-spdy runs flow control in SPDY/2 too, and stops after 64 KiB without it
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

    /// Opens the session's window as far as it goes, ahead of everything but SETTINGS.
    pub(crate) fn open_session_window(&mut self) {
        self.outbound.opens_window = true;
    }

    /// Puts a stream into the queue that its first item belongs to, if it is in none.
    pub(crate) fn schedule(&mut self, id: StreamId) {
        let windows = self.stream_windows;
        let Some(stream) = self.streams.get_mut(id) else {
            return;
        };
        if stream.queue_state != QueueState::Unqueued {
            return;
        }
        match stream.first_is_head() {
            Some(true) => {
                stream.queue_state = QueueState::Head;
                self.outbound.heads.push_back(id);
            }
            // without credit it waits outside of all queues for WINDOW_UPDATE
            Some(false) if windows && stream.send.credit() == 0 => self.mark_starved(id),
            Some(false) => {
                stream.queue_state = QueueState::Data;
                self.outbound.scheduler.push(stream.priority, id);
            }
            None => {}
        }
    }

    /// A stream waits for credit of its own: not for ever.
    fn mark_starved(&mut self, id: StreamId) {
        let now = self.now;
        if let (Some(stream), Some(patience)) =
            (self.streams.get_mut(id), self.config.write_timeout)
        {
            let (since, _) = *stream.starved.get_or_insert((now, 0));
            self.deadlines.look_at_streams(since + patience);
        }
    }

    /// Credit came for a stream: it may send again.
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

    /// Lets the streams go that waited for more credit: it came for the session, or, with
    /// `hurry`, they have waited long enough and send what they may.
    pub(crate) fn release_delayed(&mut self, hurry: bool) {
        self.outbound.delay_until = None;
        for id in std::mem::take(&mut self.outbound.held) {
            if let Some(stream) = self.streams.get_mut(id) {
                stream.queue_state = QueueState::Unqueued;
                stream.force_small_data |= hurry;
                self.schedule(id);
            }
        }
    }

    /// Appends the next frame to `out`; `false` when there is none.
    pub(crate) fn write_next(&mut self, out: &mut BytesMut) -> bool {
        if let Some(settings) = self.outbound.initial_settings.take() {
            return self.put(&Frame::Settings(settings), out);
        }
        // The delta is computed now, so that it does not show how the frame before it was cut.
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

    /// Encodes a frame without a header block.
    fn put(&mut self, frame: &Frame, out: &mut BytesMut) -> bool {
        frame.encode(self.config.version, out);
        self.stats.frames_sent.count(frame.kind());
        self.observe(Direction::Sent, frame, None, 0);
        true
    }

    /// The next WINDOW_UPDATE: the session's, whose want stops every stream, first.
    fn next_grant(&mut self) -> Option<WindowUpdate> {
        if self.closing.has_ended() {
            return None;
        }
        // before a greeting that waits for the peer's first frame, this waits as well
        let may_speak = self.outbound.initial_settings_done
            || self.config.settings_timing == SettingsTiming::Never;
        if self.grants_session_window() && may_speak && self.receive_window.is_session_update_due()
        {
            let (stream_id, delta) = (StreamId::ZERO, self.receive_window.grant());
            self.version_detection.record_credit();
            self.update_backpressure();
            return Some(WindowUpdate { stream_id, delta });
        }
        while let Some(id) = self.outbound.window_updates.pop_front() {
            // no grant for a stream that is gone, or has had its FIN since
            let Some(stream) = self.streams.get_mut(id) else {
                continue;
            };
            stream.grant_queued = false;
            if !stream.wants_grants() {
                continue;
            }
            if stream.discarded.is_none() && stream.receive_window.keeps_up(self.now) {
                self.grow_window(id);
            }
            if let Some(stream) = self.streams.get_mut(id) {
                return Some(WindowUpdate {
                    stream_id: id,
                    delta: stream.receive_window.grant(),
                });
            }
        }
        None
    }

    /// Doubles the window of a stream whose owner keeps up with the peer, as far as the limits allow. The session's grows with
    /// it, so that no other stream has less room.
    fn grow_window(&mut self, id: StreamId) {
        let (most, in_all) = (
            i64::from(self.config.grown_window_bytes).min(MAX_WINDOW),
            i64::from(self.config.window_growth_bytes),
        );
        let left = (in_all - self.streams.window_growth()).max(0);
        if let Some(stream) = self.streams.get_mut(id) {
            let of_session = self.receive_window.room_to_grow(MAX_WINDOW);
            let bytes = stream
                .receive_window
                .room_to_grow(most)
                .min(left)
                .min(of_session);
            stream.receive_window.grow(bytes);
            self.receive_window.grow(bytes);
        }
    }

    /// Writes the first item of a stream, one that needs no credit.
    fn write_head(&mut self, id: StreamId, out: &mut BytesMut) -> bool {
        let Some(stream) = self.streams.get_mut(id) else {
            return false;
        };
        stream.queue_state = QueueState::Unqueued;
        let Some(item) = stream.items.pop_front() else {
            return false;
        };
        let (associated_to, priority) = (stream.associated_to, stream.syn_priority);
        let unidirectional = stream.unidirectional;
        let fin = match item {
            Item::SynStream { headers, fin } => {
                stream.written = true;
                if self.config.settings_window_bytes.is_some() && !unidirectional {
                    self.widen_window(id);
                }
                self.stats.streams_opened += 1;
                self.put_block(&headers, out, |block| {
                    Frame::SynStream(SynStream {
                        stream_id: id,
                        associated_to,
                        priority,
                        fin,
                        unidirectional,
                        block,
                    })
                });
                fin
            }
            Item::SynReply { headers, fin } => {
                self.put_block(&headers, out, |block| {
                    Frame::SynReply(SynReply {
                        stream_id: id,
                        fin,
                        block,
                    })
                });
                fin
            }
            Item::Headers { headers, fin } => {
                self.put_block(&headers, out, |block| {
                    Frame::Headers(Headers {
                        stream_id: id,
                        fin,
                        block,
                    })
                });
                fin
            }
            Item::Data { bytes, fin } => {
                self.put(
                    &Frame::Data(Data {
                        stream_id: id,
                        payload: bytes,
                        fin,
                    }),
                    out,
                );
                fin
            }
            Item::Reset { status } => {
                self.reset(id, status);
                return self.write_reset(out);
            }
        };
        self.after_sent(id, fin);
        true
    }

    /// Writes the next RST_STREAM; `false` if none waits.
    fn write_reset(&mut self, out: &mut BytesMut) -> bool {
        let Some((stream_id, status)) = self.outbound.resets.pop_front() else {
            return false;
        };
        self.stats.resets_sent.count(status);
        self.put(&Frame::RstStream(RstStream { stream_id, status }), out)
    }

    /// Compresses a block and encodes its frame.
    fn put_block(
        &mut self,
        headers: &HeaderBlock,
        out: &mut BytesMut,
        frame: impl FnOnce(Bytes) -> Frame,
    ) {
        let plain = self.deflater.deflate(headers, &mut self.outbound.scratch);
        // shared for the time of this call, after which the scratch buffer is whole again
        let block = self.outbound.scratch.split().freeze();
        self.stats.sent_block_plain_bytes += plain as u64;
        self.stats.sent_block_wire_bytes += block.len() as u64;
        let frame = frame(block);
        self.stats.frames_sent.count(frame.kind());
        frame.encode(self.config.version, out);
        self.observe(Direction::Sent, &frame, Some(headers), plain);
    }

    /// Writes a DATA frame of the stream whose turn it is.
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
                self.mark_starved(id); // the window was lowered below zero since
                continue;
            }
            let wanted = stream.queued_bytes.min(frame_bytes);
            if credit < wanted.min(small) && !stream.force_small_data {
                stream.queue_state = QueueState::Delayed;
                self.outbound.held.push(id);
                let until = self.now + self.config.small_data_delay;
                self.outbound.delay_until.get_or_insert(until);
                continue;
            }
            stream.force_small_data = false;
            self.put_data(id, wanted.min(credit), out);
            return true;
        }
        false
    }

    /// Writes one DATA frame of up to `limit` bytes, out of as many queued pieces as fit.
    fn put_data(&mut self, id: StreamId, limit: usize, out: &mut BytesMut) {
        let Some(stream) = self.streams.get_mut(id) else {
            return;
        };
        let (len, fin) = measure(stream, limit);
        let priority = stream.priority;
        let flags = if fin { FLAG_FIN } else { 0 };
        DataHead {
            stream_id: id,
            flags,
            len,
        }
        .encode(out);
        let payload_at = out.len();
        let mut left = len;
        while left > 0 {
            let Some(Item::Data { bytes, .. }) = stream.items.front_mut() else {
                unreachable!("{left} bytes of DATA measured and not there on {id}")
            };
            if bytes.len() > left {
                out.extend_from_slice(&bytes.split_to(left));
                break;
            }
            left -= bytes.len();
            out.extend_from_slice(bytes);
            stream.items.pop_front();
        }
        stream.queued_bytes -= len;
        stream.send.spend(len);
        // a byte now and then is no progress
        let still = stream.queued_bytes > 0;
        stream.starved = stream
            .starved
            .map(|(since, left)| (since, left + len))
            .filter(|(_, left)| still && *left < self.config.small_data_bytes);
        if stream.full && stream.queued_bytes <= self.config.send_buffer_bytes / 2 {
            stream.full = false;
            if !stream.end_queued {
                self.events.push_back(Event::Writable { id });
            }
        }
        self.outbound.data_bytes -= len;
        self.send.spend(len);
        self.stats.frames_sent.count(Kind::Data);
        self.stats.sent_data_bytes += len as u64;
        if self.config.observer.is_some() {
            let payload = Bytes::copy_from_slice(&out[payload_at..]);
            let frame = Frame::Data(Data {
                stream_id: id,
                payload,
                fin,
            });
            self.observe(Direction::Sent, &frame, None, 0);
        }
        self.deadlines
            .data_left(len, self.config.small_data_bytes, self.now);
        self.pings.data_left();
        self.after_sent(id, fin);
        self.outbound.scheduler.sent(priority);
    }

    /// A frame of `id` was written: moves its state, and queues what comes next on it.
    fn after_sent(&mut self, id: StreamId, fin: bool) {
        let Some(stream) = self.streams.get_mut(id) else {
            return;
        };
        stream.apply_sent(fin);
        if !stream.state.sends()
            && let Some(discarded) = &mut stream.discarded
            && let Some(patience) = self.config.discard_timeout
        {
            discarded.since = self.now;
            self.deadlines.look_at_streams(self.now + patience);
        }
        match stream.reset_after_fin {
            _ if stream.state == State::Closed => self.closed(id),
            Some(status) if !stream.state.sends() => self.reset(id, status),
            _ => self.schedule(id),
        }
    }
}

/// Length of the DATA frame that the first items make within `limit` bytes, and whether FIN is in it.
fn measure(stream: &Stream, limit: usize) -> (usize, bool) {
    let mut len = 0;
    for item in &stream.items {
        let Item::Data { bytes, fin } = item else {
            break;
        };
        if bytes.len() > limit - len {
            return (limit, false);
        }
        len += bytes.len();
        if *fin {
            return (len, true);
        }
    }
    (len, false)
}
