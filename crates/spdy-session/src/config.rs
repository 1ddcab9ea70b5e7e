//! Every limit and choice of a session, with its name and its default.
//!
//! The defaults work with the peers in use today; where a peer breaks under another value, the field documents it.

use std::sync::Arc;
use std::time::Duration;

use spdy_frame::compress::{Compression, DeflateOptions};
use spdy_frame::decoder::Limits;
use spdy_frame::head::MAX_PAYLOAD;
use spdy_frame::header_block::BlockLimits;
use spdy_frame::secrets::Secrets;
use spdy_frame::version::Version;

use crate::observe::Observe;
use crate::state::window::{INITIAL_WINDOW, MAX_WINDOW};

/// Default session window of a client, in stream windows. Most servers allow about this many open streams.
const STREAMS_WITH_ROOM: u32 = 100;
/// Default limit of unread bytes for a client session without flow control.
const UNREAD_WITHOUT_WINDOWS: u32 = 10 * 1024 * 1024;

/// Role of this endpoint: the client opened the transport (SPDY/3.1 §2.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// Opened the transport; its streams and pings have odd ids.
    Client,
    /// Accepted the transport; its streams and pings have even ids.
    Server,
}

/// How a client handles streams that the server opens (SPDY/3.1 §3.3).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PushPolicy {
    /// SETTINGS announces a limit of 0, and a pushed stream gets REFUSED_STREAM.
    Refuse,
    /// Accepts pushes that are associated with an open stream of ours.
    Accept,
    /// Like `Accept`, but also accepts streams without an associated stream. HTTP does not use them; raw protocols over
    /// moby/spdystream do.
    AcceptUnassociated,
}

/// When our SETTINGS (and the first WINDOW_UPDATE of SPDY/3.1) are sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SettingsTiming {
    /// Before all other frames.
    Immediate,
    /// After the peer's first frame: a Kubernetes client loses all bytes that it receives in the same read as the `101 Switching
    /// Protocols`.
    AfterPeer,
    /// Never: moby/spdystream and Kubernetes neither send nor read SETTINGS. The peer then assumes windows of 65,536 bytes,
    /// regardless of the configuration.
    Never,
}

/// How many useless frames a peer may send in [`FloodLimits::window`] before the session ends.
///
/// SPDY has no ENHANCE_YOUR_CALM: a peer that exceeds a limit gets GOAWAY(PROTOCOL_ERROR).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct FloodLimits {
    /// Length of the window in which each class is counted. Default 10 s.
    pub window: Duration,
    /// Frames that carry nothing: empty DATA without FIN, HEADERS without pairs, NOOP, empty
    /// frames of unknown type, every GOAWAY after the first (CVE-2019-9518). Default 1000.
    pub empty_frames: u32,
    /// SETTINGS frames: each may change every window (CVE-2019-9515). Default 100.
    pub settings_frames: u32,
    /// PING frames that are not the answer to ours (CVE-2019-9512). Default 10,000, one per millisecond: a client that measures a
    /// short path with sequential PINGs stays below the limit.
    pub ping_frames: u32,
    /// Streams refused because a limit was reached. Default 1000.
    pub refused_streams: u32,
    /// Streams of the peer that ended by RST_STREAM before our answer was complete, sent by the peer or provoked by it. The limit
    /// applies only if they are also more than half of the streams that the peer opened in the window (CVE-2023-44487,
    /// CVE-2025-8671). Default 100.
    pub aborted_streams: u32,
    /// Frames for unknown streams, each of which we answered by RST_STREAM (CVE-2019-9514). Default 1000.
    pub stray_frames: u32,
    /// Header blocks that were malformed or exceeded one of [`block_limits`](Config::block_limits): each cost an inflation without
    /// a result (CVE-2026-55833). Default 100.
    pub refused_blocks: u32,
    /// Inflated bytes of all header blocks, including rejected ones: a kilobyte on the wire can inflate to a megabyte. Default 2
    /// GiB, a fifth of what one core can inflate in 10 s. At 1 KiB per request that is 200,000 requests a second.
    pub inflated_bytes: u64,
}

impl Default for FloodLimits {
    fn default() -> Self {
        Self {
            window: Duration::from_secs(10),
            empty_frames: 1000,
            settings_frames: 100,
            ping_frames: 10_000,
            refused_streams: 1000,
            aborted_streams: 100,
            stray_frames: 1000,
            refused_blocks: 100,
            inflated_bytes: 2 << 30,
        }
    }
}

/// Limits and choices. [`Config::new`] sets the defaults.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Role of this endpoint.
    pub role: Role,
    /// The negotiated version. It is fixed, except with `detect_session_window`.
    pub version: Version,
    /// How our header blocks are compressed. Default `Compression::CrimeSafe`.
    pub compression: Compression,
    /// Window size for compressing our header blocks, as a power of two: 11 to 15, for 2 to 32 KiB. The compressor grows up
    /// to that much, and 16 KiB of tables. Default `None`:
    /// [`DeflateOptions::window_bits`](spdy_frame::compress::DeflateOptions::window_bits).
    pub compression_window_bits: Option<u8>,
    /// Header values that `Compression::CrimeSafe` isolates from all others, in addition to those that a block marks. Default: all
    /// except those of a [list of names](spdy_frame::public_headers::is_public).
    pub secrets: Secrets,
    /// Limit of concurrent streams of the peer, sent in SETTINGS; one more gets REFUSED_STREAM. Default 100. A client that refuses
    /// pushes sends 0 instead.
    pub max_concurrent_streams: u32,
    /// Receive window of a new stream, bytes, up to 2^31 - 1 (SPDY/3 and later). SETTINGS announces it if it is not 65,536, up to
    /// `settings_window_bytes`. Default 1 MiB for a client, which sustains 80 Mbit/s at 100 ms. Default 65,536 for a server:
    /// Undertow's client uses a larger value for its own receive window as well, and then sends no WINDOW_UPDATE.
    ///
    /// A value under 65,536 is sent to the peer, but 65,536 is enforced: without an acknowledgement we do not know when the peer
    /// has applied it.
    pub initial_window_bytes: u32,
    /// Receive window of the session, bytes (SPDY/3.1), from 65,536 to 2^31 - 1. The peer may exceed it by the amount by which
    /// SETTINGS raises the stream windows, because some peers raise both. Without flow control (SPDY/2, or `flow_control` off),
    /// this is the limit of unconsumed DATA: above it [`Session::accepts_input`](crate::session::Session::accepts_input) is
    /// `false`.
    ///
    /// `None`, the default for a client: the sum of 100 stream windows ([`session_window_size`](Self::session_window_size)), so
    /// that unread responses do not block other streams; 10 MiB without flow control. Default 1 MiB for a server.
    pub session_window_bytes: Option<u32>,
    /// Maximum size of a stream's receive window after growth, bytes. The window doubles whenever the owner consumes a whole window
    /// within a second. Otherwise a peer with a long round trip would be limited to `initial_window_bytes` per round trip. Default
    /// 1 MiB.
    pub grown_window_bytes: u32,
    /// Maximum growth of the receive windows of all streams together, bytes; 0 disables growth. The session window grows by the
    /// same amount, and shrinks when the streams end. Default 4 MiB for a server, 0 for a client, whose windows start large.
    pub window_growth_bytes: u32,
    /// Largest DATA payload written at once, 1 to 2^24 - 1 bytes. Default 16,384.
    pub data_frame_bytes: usize,
    /// Unsent DATA that a stream may queue before `send_capacity` is 0, bytes, at least 1. Default 65,536.
    pub send_buffer_bytes: usize,
    /// Limit of streams that we open before the peer's SETTINGS arrives. Default 100, like Chromium.
    pub assumed_peer_streams: u32,
    /// `false`: neither obey nor enforce windows, and send no WINDOW_UPDATE (moby/spdystream and Kubernetes have no flow control).
    /// Default `true`.
    pub flow_control: bool,
    /// In SPDY/3, detect whether the peer speaks 3.1. For connections without a negotiated version: both write the same version number.
    /// Until the version is known, the rules of 3.1 apply (`session/detect_version.rs`). Default `false`.
    pub detect_session_window: bool,
    /// What a client does with pushes. Default [`PushPolicy::Refuse`]. A server ignores it.
    pub push: PushPolicy,
    /// Maximum of `initial_window_bytes` that SETTINGS announces, at least 65,536 (SPDY/3 and later). If it is less than
    /// `initial_window_bytes`, each stream that we open gets the rest by a WINDOW_UPDATE after its SYN_STREAM, as in Firefox (if
    /// the rest is at least half of `initial_window_bytes`). A pushed stream gets it when its owner
    /// [widens](crate::session::Session::widen_window) its window, so that unrequested data uses little memory.
    ///
    /// Default 65,536 for a client: Undertow's server also uses a larger value for its own receive windows and then sends no
    /// WINDOW_UPDATE, so that an upload stalls after 64 KiB. The cost is 16 bytes a request. `None`, the default for a server:
    /// SETTINGS announces the whole value.
    pub settings_window_bytes: Option<u32>,
    /// When SETTINGS is sent. Default [`SettingsTiming::Immediate`].
    pub settings_timing: SettingsTiming,
    /// Whether `shutdown` sends GOAWAY while streams are still open. Default `true` for a server, which has no other way to
    /// announce the shutdown. Default `false` for a client, which gains nothing by it: node-spdy resets the client's own requests
    /// when it reads GOAWAY.
    pub early_goaway: bool,
    /// Interval without input after which a PING is sent. Default `None`: never.
    pub keepalive_interval: Option<Duration>,
    /// With `keepalive_interval`: the session fails if no input arrives for this long after a PING. Any input counts, since
    /// Undertow never answers a PING. Time in which we do not read does not count. Default 10 s.
    pub keepalive_timeout: Duration,
    /// Replaces `keepalive_timeout` in a session without flow control while our DATA is queued, or was sent before the PING (in a
    /// session that sent 64 KiB or more). Such a peer stops reading, also PINGs, when one of its streams is not read, so silence
    /// does not prove that it is dead. Precision: `keepalive_timeout`. Default 4 h, after which the kubelet ends the session. If
    /// the peer's TCP is gone too, our TCP detects that, on Linux after about 15 min.
    pub keepalive_unread_timeout: Duration,
    /// Timeout for an incomplete control frame (slowloris). Default 30 s.
    pub frame_timeout: Option<Duration>,
    /// Timeout for queued DATA of which no byte can be sent, because the session has no credit or
    /// [`poll_transmit`](crate::session::Session::poll_transmit) is not called (slow read). If no stream makes progress, the
    /// session ends; if only one stream has no credit, that stream is reset. Fewer than `small_data_bytes` do not count as
    /// progress. The total duration is not limited, nor the idle time of a stream with nothing to send. Default 60 s. Use `None` if
    /// a reader may pause for any time (raw streams to a terminal or a forwarded port); `keepalive_interval` or `silence_timeout`
    /// then detect dead peers.
    pub write_timeout: Option<Duration>,
    /// Timeout for a session without open streams, which then ends in order. Default 180 s for a server, `None` for a client, whose
    /// pool decides.
    pub idle_timeout: Option<Duration>,
    /// Timeout for a session that neither sends nor receives anything. It ends even with open streams: for peers that vanish while
    /// streams are idle. PINGs of either side count as activity. Default `None`.
    pub silence_timeout: Option<Duration>,
    /// Timeout for a stream that its owner [discards](crate::session::Session::discard), from our FIN on; then the stream is reset.
    /// Default 60 s for a server, `None` for a client.
    pub discard_timeout: Option<Duration>,
    /// Limit of discarded DATA per stream. Above it the stream gets no credit, and RST_STREAM as soon as our FIN was sent. Default
    /// 16 MiB.
    pub discarded_bytes: u64,
    /// Limit of ended streams that their owner still works on (a cancelled request is work until its handler has stopped). Above
    /// it, new streams are refused. The crate `spdy` enforces it, not the session machine. Default 100.
    pub ended_streams_in_work: u32,
    /// Timeout for open streams after `shutdown`; then the session ends without them. Default `None`: no limit.
    pub drain_timeout: Option<Duration>,
    /// How long `accepts_input` may be `false` because of queued control frames. Default 30 s.
    pub control_queue_timeout: Duration,
    /// Limits of a received frame.
    pub frame_limits: Limits,
    /// Limits of a received header block.
    pub block_limits: BlockLimits,
    /// HEADERS frames on one stream; one more is a stream error (in HTTP/2 this is the CONTINUATION flood). Default 16.
    pub headers_per_stream: u32,
    /// Inflated bytes of all header blocks of one stream, the first included; one more is a stream error. Default 128 KiB: two
    /// blocks of maximum size.
    pub header_bytes_per_stream: usize,
    /// Queued PING echoes; one more ends the session (CVE-2019-9512). Default 200: two bursts of 100, the maximum that other
    /// implementations answer in one read.
    pub ping_echoes: usize,
    /// Queued RST_STREAM frames before we stop reading; twice as many end the session. Default 1000.
    pub control_queue_frames: usize,
    /// Unpolled events before we stop reading. Default 10,000.
    pub event_queue: usize,
    /// The other flood limits.
    pub floods: FloodLimits,
    /// Credit below which DATA is not split at the end of a window: it waits `small_data_delay` for more credit (CVE-2019-9517).
    /// Default 1024; 0 never waits.
    pub small_data_bytes: usize,
    /// How long small DATA waits. Default 50 ms: too short to delay a peer that opens its window only after it has received
    /// everything (OkHttp below 8 KiB).
    pub small_data_delay: Duration,
    /// One DATA frame in every `starvation_guard` is sent on a less urgent stream even if more urgent streams have DATA, so that no
    /// stream starves. Default 16; 0 is strict priority, like nginx.
    pub starvation_guard: u32,
    /// Observes every frame in both directions.
    pub observer: Option<Arc<dyn Observe>>,
}

impl Config {
    /// The defaults of `role`, for a session of `version`.
    #[must_use]
    pub fn new(role: Role, version: Version) -> Self {
        let server = role == Role::Server;
        Self {
            role,
            version,
            compression: Compression::CrimeSafe,
            compression_window_bits: None,
            secrets: Secrets::default(),
            max_concurrent_streams: 100,
            initial_window_bytes: if server { 65_536 } else { 1024 * 1024 },
            session_window_bytes: server.then_some(1024 * 1024),
            grown_window_bytes: 1024 * 1024,
            window_growth_bytes: if server { 4 * 1024 * 1024 } else { 0 },
            data_frame_bytes: 16_384,
            send_buffer_bytes: 65_536,
            assumed_peer_streams: 100,
            flow_control: true,
            detect_session_window: false,
            push: PushPolicy::Refuse,
            settings_window_bytes: (!server).then_some(INITIAL_WINDOW as u32),
            settings_timing: SettingsTiming::Immediate,
            early_goaway: server,
            keepalive_interval: None,
            keepalive_timeout: Duration::from_secs(10),
            keepalive_unread_timeout: Duration::from_secs(4 * 3600),
            frame_timeout: Some(Duration::from_secs(30)),
            write_timeout: Some(Duration::from_secs(60)),
            idle_timeout: server.then_some(Duration::from_secs(180)),
            silence_timeout: None,
            discard_timeout: server.then_some(Duration::from_secs(60)),
            discarded_bytes: 16 * 1024 * 1024,
            ended_streams_in_work: 100,
            drain_timeout: None,
            control_queue_timeout: Duration::from_secs(30),
            frame_limits: Limits::default(),
            block_limits: BlockLimits::default(),
            headers_per_stream: 16,
            header_bytes_per_stream: 128 * 1024,
            ping_echoes: 200,
            control_queue_frames: 1000,
            event_queue: 10_000,
            floods: FloodLimits::default(),
            small_data_bytes: 1024,
            small_data_delay: Duration::from_millis(50),
            starvation_guard: 16,
            observer: None,
        }
    }

    /// Moves values that are out of range to the nearest valid value: a frame has at most 2^24 - 1 bytes, and a buffer of 0 bytes
    /// would never have room. `small_data_bytes` is at least 1 so that 0 bytes are never progress.
    pub(crate) fn clamp(&mut self) {
        self.data_frame_bytes = self.data_frame_bytes.clamp(1, MAX_PAYLOAD);
        self.send_buffer_bytes = self.send_buffer_bytes.max(1);
        self.small_data_bytes = self.small_data_bytes.max(1);
    }

    /// The receive window of the session, bytes: `session_window_bytes`, or room for 100 streams.
    #[must_use]
    pub fn session_window_size(&self) -> u32 {
        let room = self.initial_window_bytes.saturating_mul(STREAMS_WITH_ROOM);
        self.session_window_bytes
            .unwrap_or(room)
            .min(MAX_WINDOW as u32)
    }

    /// Limit of DATA that the owner has not consumed in a session without windows, bytes.
    pub(crate) fn unread_limit(&self) -> usize {
        self.session_window_bytes.unwrap_or(UNREAD_WITHOUT_WINDOWS) as usize
    }

    /// Options for compressing header blocks.
    pub(crate) fn deflate_options(&self) -> DeflateOptions {
        let mut options = DeflateOptions::from(self.compression);
        if let Some(window_bits) = self.compression_window_bits {
            options.window_bits = window_bits;
        }
        options.secrets = self.secrets.clone();
        options
    }

    /// Limit of concurrent streams of the peer, with the push policy applied.
    pub(crate) fn peer_streams(&self) -> u32 {
        match (self.role, self.push) {
            (Role::Client, PushPolicy::Refuse) => 0,
            _ => self.max_concurrent_streams,
        }
    }

    /// True if streams have windows in this session.
    pub(crate) fn stream_windows(&self) -> bool {
        self.flow_control && self.version.has_stream_windows()
    }

    /// True if the session has a window from its start.
    pub(crate) fn session_window(&self) -> bool {
        self.flow_control && self.version.has_session_window()
    }

    /// The receive window of a new stream as announced to the peer.
    pub(crate) fn stream_window(&self) -> i64 {
        let most = self
            .settings_window_bytes
            .map_or(i64::MAX, |bytes| i64::from(bytes).max(INITIAL_WINDOW));
        self.wide_window().min(most)
    }

    /// The receive window of a stream that we opened, or of a push that its owner accepted.
    pub(crate) fn wide_window(&self) -> i64 {
        match self.settings_timing {
            SettingsTiming::Never => INITIAL_WINDOW,
            SettingsTiming::Immediate | SettingsTiming::AfterPeer => {
                i64::from(self.initial_window_bytes.min(0x7fff_ffff))
            }
        }
    }
}
