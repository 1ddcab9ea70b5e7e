//! One endpoint of a session: its fields, and the functions that a driver calls (SPDY/3.1 §2.1).
//!
//! ```
//! use bytes::{Bytes, BytesMut};
//! use spdy_clock::Instant;
//! use spdy_frame::header_block::HeaderBlock;
//! use spdy_frame::version::Version;
//! use spdy_session::config::{Config, Role};
//! use spdy_session::event::Event;
//! use spdy_session::session::{StreamOptions, Session};
//!
//! let now = Instant::ZERO;
//! let mut client = Session::new(Config::new(Role::Client, Version::V31), now);
//! let mut server = Session::new(Config::new(Role::Server, Version::V31), now);
//!
//! let mut headers = HeaderBlock::new();
//! headers.push("streamtype", "data");
//! let id = client.open(&headers, StreamOptions::default())?;
//!
//! let mut wire = BytesMut::new();
//! while client.poll_transmit(now, &mut wire) {}
//! server.handle_input(now, &wire);
//! assert!(matches!(server.poll_event(), Some(Event::Opened { id: opened, .. }) if opened == id));
//! server.reply(id, &HeaderBlock::new(), false);
//! server.send_data(id, Bytes::from_static(b"hello"), true);
//! # Ok::<(), spdy_session::error::OpenError>(())
//! ```
//!
//! The other methods of [`Session`] are in the other files of this folder.

use std::collections::VecDeque;
use std::fmt;

use bytes::BytesMut;
use spdy_clock::Instant;
use spdy_frame::compress::{Deflater, Inflater};
use spdy_frame::decoder::Decoder;
use spdy_frame::frame::Frame;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::priority::Priority;
use spdy_frame::stream_id::StreamId;

use crate::config::{Config, Role};
use crate::counters::{FrameCounts, ResetCounts};
use crate::event::Event;
use crate::limit::{Hits, Limit};
use crate::observe::{Direction, ObservedFrame};
use crate::state::backpressure::Backpressure;
use crate::state::closing::Closing;
use crate::state::deadlines::Deadlines;
use crate::state::flood_budget::FloodBudget;
use crate::state::output_queues::OutputQueues;
use crate::state::pings::Pings;
use crate::state::streams::Streams;
use crate::state::version_detection::VersionDetection;
use crate::state::window::{INITIAL_WINDOW, ReceiveWindow, SendWindow};

/// The options of SYN_STREAM besides its headers.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamOptions {
    /// Priority of the answer; for a unidirectional stream, of the stream itself.
    pub priority: Priority,
    /// The associated stream: for a push, the request. 0 for none.
    pub associated_to: StreamId,
    /// The peer sends nothing on it.
    pub unidirectional: bool,
    /// We send nothing more on it.
    pub fin: bool,
}

/// Counters, for metrics and the lab.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Sent header blocks before compression, bytes.
    pub sent_block_plain_bytes: u64,
    /// Sent header blocks as compressed on the wire, bytes.
    pub sent_block_wire_bytes: u64,
    /// Received header blocks after inflation, bytes.
    pub received_block_plain_bytes: u64,
    /// Received header blocks as compressed on the wire, bytes.
    pub received_block_wire_bytes: u64,
    /// Sent frames.
    pub frames_sent: FrameCounts,
    /// Received complete frames.
    pub frames_received: FrameCounts,
    /// Streams that we opened, counted when SYN_STREAM is written.
    pub streams_opened: u64,
    /// Streams of the peer that were passed to the owner.
    pub streams_accepted: u64,
    /// Streams of the peer that got REFUSED_STREAM.
    pub streams_refused: u64,
    /// Sent RST_STREAM frames.
    pub resets_sent: ResetCounts,
    /// Received RST_STREAM frames for open streams.
    pub resets_received: ResetCounts,
    /// Sent DATA payload, bytes.
    pub sent_data_bytes: u64,
    /// Received DATA payload, including discarded DATA, bytes.
    pub received_data_bytes: u64,
    /// The limits that the peer reached.
    pub limits: Hits,
}

impl Stats {
    /// Adds the counts of another session.
    pub fn add(&mut self, other: &Self) {
        // Destructures every field, so that the compiler reports a new counter that is not added here.
        let Self {
            sent_block_plain_bytes,
            sent_block_wire_bytes,
            received_block_plain_bytes,
            received_block_wire_bytes,
            frames_sent,
            frames_received,
            streams_opened,
            streams_accepted,
            streams_refused,
            resets_sent,
            resets_received,
            sent_data_bytes,
            received_data_bytes,
            limits,
        } = other;
        self.sent_block_plain_bytes += sent_block_plain_bytes;
        self.sent_block_wire_bytes += sent_block_wire_bytes;
        self.received_block_plain_bytes += received_block_plain_bytes;
        self.received_block_wire_bytes += received_block_wire_bytes;
        self.frames_sent.add(frames_sent);
        self.frames_received.add(frames_received);
        self.streams_opened += streams_opened;
        self.streams_accepted += streams_accepted;
        self.streams_refused += streams_refused;
        self.resets_sent.add(resets_sent);
        self.resets_received.add(resets_received);
        self.sent_data_bytes += sent_data_bytes;
        self.received_data_bytes += received_data_bytes;
        self.limits.add(limits);
    }
}

/// One endpoint of a SPDY session: no socket, no clock, no task.
///
/// A driver repeats three steps. It passes input in (`handle_*`, or a command such as [`ping`](Self::ping)). It drains
/// [`poll_transmit`](Self::poll_transmit) and [`poll_event`](Self::poll_event), in this order or until both are empty, since
/// writing can produce events. It waits until [`poll_timeout`](Self::poll_timeout) at the latest.
///
/// `now` must never decrease; commands without it use the latest time that was passed in.
pub struct Session {
    pub(crate) config: Config,
    pub(crate) now: Instant,
    pub(crate) decoder: Decoder,
    pub(crate) inflater: Inflater,
    pub(crate) deflater: Deflater,
    /// The incomplete frame at the end of the input, for callers of `handle_input`.
    input: BytesMut,
    /// The next piece of DATA continues a frame that was already counted.
    pub(crate) within_data: bool,
    pub(crate) events: VecDeque<Event>,
    pub(crate) streams: Streams,
    pub(crate) outbound: OutputQueues,
    pub(crate) pings: Pings,
    pub(crate) budget: FloodBudget,
    pub(crate) closing: Closing,
    pub(crate) deadlines: Deadlines,
    pub(crate) stats: Stats,

    /// True if streams have windows.
    pub(crate) stream_windows: bool,
    /// True if the session has a window.
    pub(crate) session_window: bool,
    /// Detects if the session has a window, when no version was negotiated.
    pub(crate) version_detection: VersionDetection,
    /// The session's send window. Counted even if it does not limit us: SPDY/3 may turn out to be 3.1.
    pub(crate) send: SendWindow,
    /// The session's receive window. Counted even if it is not enforced.
    pub(crate) receive_window: ReceiveWindow,
    /// Initial send window of a new stream of either side, from the peer's SETTINGS.
    pub(crate) peer_initial_window: i64,
    /// Bytes passed to the owner and not consumed yet, over all streams.
    pub(crate) unread: usize,
    /// Time in which the peer could send nothing because of unconsumed bytes.
    pub(crate) backpressure: Backpressure,
    /// The peer's MAX_CONCURRENT_STREAMS, once received.
    pub(crate) peer_max_streams: Option<u32>,
    /// True if `open` failed because of the peer's limit.
    pub(crate) is_open_blocked: bool,
    /// The next ID of a stream that we open.
    pub(crate) next_id: u32,
    /// The highest ID that the peer used.
    pub(crate) last_peer_id: StreamId,
    /// The highest ID of the peer that was passed to the owner: the last-good ID of our GOAWAY.
    pub(crate) last_accepted: StreamId,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("role", &self.config.role)
            .field("version", &self.config.version)
            .field("closing", &self.closing)
            .field("streams", &self.streams)
            .field("send", &self.send)
            .field("receive", &self.receive_window)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Creates a session on a transport that was established at `now`.
    #[must_use]
    pub fn new(mut config: Config, now: Instant) -> Self {
        config.clamp();
        let client = config.role == Role::Client;
        let receive = ReceiveWindow::of_session(i64::from(config.session_window_size()));
        let mut session = Self {
            now,
            decoder: Decoder::new(config.version, config.frame_limits.clone()),
            inflater: Inflater::new(config.version, config.block_limits.clone()),
            deflater: Deflater::new(config.version, config.deflate_options()),
            input: BytesMut::new(),
            within_data: false,
            events: VecDeque::new(),
            streams: Streams::new(client),
            outbound: OutputQueues::new(config.starvation_guard),
            pings: Pings::new(config.role, config.ping_echoes),
            budget: FloodBudget::new(config.floods),
            closing: Closing::default(),
            deadlines: Deadlines::new(now),
            stats: Stats::default(),
            stream_windows: config.stream_windows(),
            session_window: config.session_window(),
            version_detection: VersionDetection::new(&config),
            send: SendWindow::new(INITIAL_WINDOW),
            receive_window: receive,
            peer_initial_window: INITIAL_WINDOW,
            unread: 0,
            backpressure: Backpressure::default(),
            peer_max_streams: None,
            is_open_blocked: false,
            next_id: if client { 1 } else { 2 },
            last_peer_id: StreamId::ZERO,
            last_accepted: StreamId::ZERO,
            config,
        };
        session.queue_initial_settings();
        session
    }

    /// Handles bytes that arrived at `now`. How the bytes are split makes no difference.
    ///
    /// A protocol error of the peer is not an `Err`: the session queues GOAWAY and emits [`Event::Closed`].
    pub fn handle_input(&mut self, now: Instant, bytes: &[u8]) {
        let mut inbound = std::mem::take(&mut self.input);
        inbound.extend_from_slice(bytes);
        self.handle_input_buffer(now, &mut inbound);
        self.input = inbound;
    }

    /// Like [`handle_input`](Self::handle_input), but reads the driver's own buffer without copying: DATA payloads share it. What
    /// remains in `input` is an incomplete frame; append new bytes to it. Use one of the two functions, not both.
    pub fn handle_input_buffer(&mut self, now: Instant, input: &mut BytesMut) {
        self.advance(now);
        if !input.is_empty() {
            self.deadlines.record_received(now);
        }
        let mut progress = false;
        let was_skipping = self.decoder.is_skipping();
        while !self.closing.has_ended() {
            match self.decoder.decode(input) {
                Ok(Some(frame)) => {
                    progress = true;
                    self.handle_frame(frame);
                }
                Ok(None) => break,
                Err(error) => self.fail(error.into()),
            }
        }
        if self.closing.has_ended() {
            input.clear();
        }
        // The end of a skipped frame is progress that is not visible otherwise.
        progress |= was_skipping && !self.decoder.is_skipping();
        let partial = !input.is_empty() || !self.decoder.is_between_frames();
        self.deadlines.input_is_partial(partial, progress, now);
        self.update_waits();
    }

    /// Handles the end of input at `now`: the peer closed its side of the transport. Nothing is written after it either, as in
    /// every other SPDY implementation.
    pub fn handle_eof(&mut self, now: Instant) {
        self.advance(now);
        self.handle_transport_lost();
    }

    /// When [`handle_timeout`](Self::handle_timeout) must be called; `None` for never. Every other
    /// call may change it, so poll it again afterwards.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.next_deadline()
    }

    /// Handles the timeouts that have expired at `now`. An early call does nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        self.expire();
        self.after_change();
    }

    /// The next event, in order.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Appends the next frame to `out`; `false` when there is none to send now.
    ///
    /// Call it only as fast as the transport accepts bytes: more urgent frames can still overtake those that were not polled.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut BytesMut) -> bool {
        self.advance(now);
        self.update_backpressure(); // without windows, DATA may have been consumed since
        let wrote = self.write_next(out);
        if wrote {
            self.deadlines.record_sent(now);
        }
        self.after_change();
        wrote
    }

    /// True if the session ended and its last frame was taken by `poll_transmit`.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closing.has_ended() && !self.has_pending_output()
    }

    /// True if the machine accepts more input. `false` while its own queues are full, which is backpressure for the
    /// driver: do not read until it is `true` again.
    ///
    /// The cause is a peer that does not read our answers, or, without windows, an owner that does not consume.
    #[must_use]
    pub fn accepts_input(&self) -> bool {
        !self.closing.has_ended()
            && self.outbound.resets.len() <= self.config.control_queue_frames
            && self.events.len() <= self.config.event_queue
            && !self.is_full()
    }

    /// Number of open streams that we opened, and that the peer opened.
    #[must_use]
    pub fn active_streams(&self) -> (usize, usize) {
        (self.streams.ours_active(), self.streams.theirs_active())
    }

    /// True if `open` would always fail, because the session is ending.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.closing.takes_no_streams() || self.next_id > StreamId::MAX.value()
    }

    /// True while streams are open, and afterwards while the session keeps their memory for another burst. It frees that memory at a
    /// timeout of [`poll_timeout`](Self::poll_timeout), one second after the last stream.
    #[must_use]
    pub fn is_in_burst(&self) -> bool {
        self.streams.active() > 0 || self.has_burst_memory()
    }

    /// Limit of streams that we may have open: the value in the peer's SETTINGS, or the assumed default.
    #[must_use]
    pub fn max_open_streams(&self) -> u32 {
        self.peer_max_streams
            .unwrap_or(self.config.assumed_peer_streams)
    }

    /// The counters so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Counts a limit that the owner enforces, in this session's statistics.
    pub fn count(&mut self, limit: Limit) {
        self.stats.limits.count(limit);
    }

    /// The latest time that was passed in.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The configuration of the session.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Advances the clock, which never goes back.
    pub(crate) fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    /// To be called after any change except input: applies the consequences and updates the timeouts.
    pub(crate) fn after_change(&mut self) {
        self.end_if_done();
        self.update_waits();
    }

    /// Ends a session that has drained, and reports free stream slots. Called after every frame, not after every read: how the
    /// bytes are split must make no difference.
    pub(crate) fn end_if_done(&mut self) {
        self.end_if_drained();
        if self.is_open_blocked && !self.closing.takes_no_streams() && self.has_room() {
            self.is_open_blocked = false;
            self.events.push_back(Event::CanOpen);
        }
    }

    /// Reports a frame to the observer.
    pub(crate) fn observe(
        &self,
        direction: Direction,
        frame: &Frame,
        headers: Option<&HeaderBlock>,
        plain_bytes: usize,
    ) {
        if let Some(observer) = &self.config.observer {
            observer.seen(&ObservedFrame {
                at: self.now,
                version: self.config.version,
                direction,
                frame,
                headers,
                plain_bytes,
            });
        }
    }
}
