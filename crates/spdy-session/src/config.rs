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

/// A client's session has room for the windows of this many streams: as many as most servers allow to be open.
const STREAMS_WITH_ROOM: u32 = 100;
/// Unread bytes that a client holds where no window is in force.
const UNREAD_WITHOUT_WINDOWS: u32 = 10 * 1024 * 1024;

/// Which end of the connection this is: the client opened the transport (SPDY/3.1 §2.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// Opened the transport; its streams and pings have odd ids.
    Client,
    /// Accepted the transport; its streams and pings have even ids.
    Server,
}

/// What becomes of streams that a server opens towards a client (SPDY/3.1 §3.3).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PushPolicy {
    /// SETTINGS promises room for none, and one that comes gets REFUSED_STREAM.
    Refuse,
    /// Pushes that belong to an open stream of ours are events.
    Accept,
    /// As `Accept`, and streams that belong to none too: no HTTP, but raw protocols over
    /// moby/spdystream open such streams from the server.
    AcceptUnassociated,
}

/// When our SETTINGS (and the first WINDOW_UPDATE of SPDY/3.1) go out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SettingsTiming {
    /// First of all frames.
    Immediate,
    /// After the peer's first frame: a Kubernetes client loses all that is in the same read as
    /// the `101 Switching Protocols` before it.
    AfterPeer,
    /// Not at all: moby/spdystream and Kubernetes send none and read none. The peer then assumes windows of 65,536 bytes, whatever is
    /// configured.
    Never,
}

/// How much nonsense a peer may send in [`FloodLimits::window`] before the session ends.
///
/// SPDY has no ENHANCE_YOUR_CALM: one past a limit is GOAWAY(PROTOCOL_ERROR).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FloodLimits {
    /// Over how long each class is counted. Default 10 s.
    pub window: Duration,
    /// Frames that carry nothing: empty DATA without FIN, HEADERS without pairs, NOOP, empty
    /// frames of unknown type, every GOAWAY after the first (CVE-2019-9518). Default 1000.
    pub empty_frames: u32,
    /// SETTINGS frames: each may move every window (CVE-2019-9515). Default 100.
    pub settings_frames: u32,
    /// PING frames that are not the answer to ours (CVE-2019-9512). Default 10,000, one per
    /// millisecond: a client that measures a short path with one PING after the other stays below.
    pub ping_frames: u32,
    /// Streams refused for want of room. Default 1000.
    pub refused_streams: u32,
    /// Streams of the peer that ended by RST_STREAM, its own or one that it made us send, before
    /// our answer was complete; too many only if they are also over half of the streams it
    /// opened in the window (CVE-2023-44487, CVE-2025-8671). Default 100.
    pub aborted_streams: u32,
    /// Frames for streams that are not there, each of which made us send RST_STREAM
    /// (CVE-2019-9514). Default 1000.
    pub stray_frames: u32,
    /// Header blocks that were malformed, or over a limit of
    /// [`block_limits`](Config::block_limits): each was inflated for nothing (CVE-2026-55833).
    /// Default 100.
    pub refused_blocks: u32,
    /// Bytes that header blocks were inflated to, whatever became of them: a kilobyte on the wire is
    /// up to a megabyte of work. Default 2 GiB, which is a fifth of what a core inflates in the
    /// time, and at 1 KiB a request 200,000 requests a second.
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

/// Limits and choices; [`Config::new`] has the defaults.
#[derive(Clone)]
pub struct Config {
    /// Which end this is.
    pub role: Role,
    /// As negotiated. It never changes, but for `detect_session_window`.
    pub version: Version,
    /// How our header blocks are written. Default `Compression::Masked`.
    pub compression: Compression,
    /// How far back repetitions in our header blocks reach: 11 to 15, for 2 to 32 KiB, which is what the
    /// compressor comes to hold, and 16 KiB of tables beside it. Default `None`:
    /// [`DeflateOptions::window_bits`](spdy_frame::compress::DeflateOptions::window_bits).
    pub compression_window_bits: Option<u8>,
    /// Which of our header values `Compression::Masked` keeps apart from all others, beside those that a block marks.
    /// Default: all but those of a [list of names](spdy_frame::public_headers::is_public).
    pub secrets: Secrets,
    /// Streams that the peer may have open at once (sent in SETTINGS; one more gets
    /// REFUSED_STREAM). Default 100. A client that refuses pushes sends 0 in its place.
    pub max_concurrent_streams: u32,
    /// Receive window of a new stream, bytes, up to 2^31 - 1 (SPDY/3 and later; sent in SETTINGS
    /// when not 65,536, as far as `settings_window_bytes` lets it). Default 1 MiB for a client, which
    /// holds 80 Mbit/s at 100 ms; 65,536 for a server: Undertow's client takes a greater value for its own window as well, and
    /// grants no more.
    ///
    /// The peer gets a value under 65,536, but 65,536 is enforced: no acknowledgement shows from when the peer knows it.
    pub initial_window_bytes: u32,
    /// Receive window of the session, bytes (SPDY/3.1); 65,536 at least, up to 2^31 - 1. By as much as
    /// SETTINGS raises the streams' it may be exceeded: some peers move it with them. Where no
    /// window is in force (SPDY/2, or `flow_control` off), DATA that the owner has not consumed
    /// makes [`Session::accepts_input`](crate::session::Session::accepts_input) `false` from here on.
    ///
    /// `None`, the default for a client: room for the windows of 100 streams
    /// ([`session_window_size`](Self::session_window_size)), so that responses that are not read hold up
    /// no others; and 10 MiB where no window is in force. Default 1 MiB for a server.
    pub session_window_bytes: Option<u32>,
    /// The most that the receive window of one stream grows to, bytes. It doubles whenever its owner has consumed as much as it
    /// holds within a second: else a peer far away could send no more than `initial_window_bytes` in a round trip.
    /// Default 1 MiB.
    pub grown_window_bytes: u32,
    /// The bytes that the receive windows of all streams may grow by together; 0 for no growth. The session's window grows with
    /// theirs, and shrinks when they end. Default 4 MiB for a server, 0 for a client, whose windows start large.
    pub window_growth_bytes: u32,
    /// Largest DATA payload written at once, 1 to 2^24 - 1 bytes. Default 16,384.
    pub data_frame_bytes: usize,
    /// Bytes of DATA a stream may hold unsent before `send_capacity` is 0, at least 1. Default 65,536.
    pub send_buffer_bytes: usize,
    /// Streams that we assume we may open before SETTINGS arrives. Default 100, as Chromium.
    pub assumed_peer_streams: u32,
    /// `false`: neither obey nor enforce windows, and send no WINDOW_UPDATE (moby/spdystream and
    /// Kubernetes have none). Default `true`.
    pub flow_control: bool,
    /// In SPDY/3, detect whether the peer speaks 3.1. For connections without a negotiated version: both write the same version number.
    /// Until the version is known, the rules of 3.1 apply (`session/detect_version.rs`). Default `false`.
    pub detect_session_window: bool,
    /// What a client does with pushes. Default [`PushPolicy::Refuse`]. A server ignores it.
    pub push: PushPolicy,
    /// The most that SETTINGS states of `initial_window_bytes`, at least 65,536 (SPDY/3 and later). If that is less, each stream of our
    /// own gets the rest by a WINDOW_UPDATE behind its SYN_STREAM, as in Firefox (once it is worth one: half of `initial_window_bytes`).
    /// A pushed stream gets it when its owner [widens](crate::session::Session::widen_window) it: unrequested data takes little memory.
    ///
    /// Default 65,536 for a client: Undertow's server also uses a greater value for its own receive windows, grants nothing, and an
    /// upload to it stops at 64 KiB for ever. The cost is 16 bytes a request. `None`, the default for a server: SETTINGS states the whole
    /// value.
    pub settings_window_bytes: Option<u32>,
    /// When SETTINGS goes out. Default [`SettingsTiming::Immediate`].
    pub settings_timing: SettingsTiming,
    /// Whether `shutdown` sends GOAWAY while streams are still open. Default `true` for a server, which has no other way to announce it;
    /// `false` for a client, since nothing is gained and node-spdy resets the client's own requests when it reads GOAWAY.
    pub early_goaway: bool,
    /// Send PING after so long without input; `None` (the default) never.
    pub keepalive_interval: Option<Duration>,
    /// With `keepalive_interval`: the session is dead if no input at all arrives for so long after a PING. Any input counts, since
    /// Undertow never answers a PING. The time in which we do not read does not count. Default 10 s.
    pub keepalive_timeout: Duration,
    /// The same without flow control, while DATA of ours waits, or lies before the PING on its way (in a session that
    /// sent 64 KiB or more): such a peer stops reading, PINGs included, when one of its streams is not read, and what
    /// does not read may live. Exact to `keepalive_timeout`. Default 4 h, in which the kubelet would end the session;
    /// a peer whose TCP is gone too is found out by ours, on Linux in some 15 min.
    pub keepalive_unread_timeout: Duration,
    /// An unfinished control frame may stay so for this long (slowloris). Default 30 s.
    pub frame_timeout: Option<Duration>,
    /// DATA may wait for this long without one byte of it leaving, for want of the session's credit or of
    /// [`poll_transmit`](crate::session::Session::poll_transmit) being asked (slow read). It is the
    /// session's end where nothing leaves at all; a stream whose own window stays closed is reset
    /// alone. Fewer than `small_data_bytes` are no progress. How long all of it takes does not matter, nor
    /// that a stream is quiet which has nothing to send. Default 60 s. Where a reader may rest for as long as
    /// it likes (raw streams to a terminal or a forwarded port) it is `None`, and `keepalive_interval` or
    /// `silence_timeout` find out who is gone.
    pub write_timeout: Option<Duration>,
    /// A session without open streams ends in order after this long. Default 180 s for a server,
    /// `None` for a client, whose pool decides.
    pub idle_timeout: Option<Duration>,
    /// A session on which nothing came and nothing left for this long ends, with whatever is open: for
    /// peers that vanish while streams wait in silence. PINGs of either side count. Default `None`.
    pub silence_timeout: Option<Duration>,
    /// A stream that its owner [discards](crate::session::Session::discard) may go on for this long
    /// after our FIN; then it is reset. Default 60 s for a server, `None` for a client.
    pub discard_timeout: Option<Duration>,
    /// DATA of one stream that is discarded; past it no more is wanted: the stream gets no credit,
    /// and RST_STREAM as soon as our FIN has left. Default 16 MiB.
    pub discarded_bytes: u64,
    /// Streams that have ended while their owner still works on them (a cancelled request is work
    /// until its handler has stopped); with one more, the next stream is refused. The machine does
    /// not see it: the crate `spdy` does. Default 100.
    pub ended_streams_in_work: u32,
    /// After `shutdown`, streams may go on for this long; then the session ends without them.
    /// Default `None`: as long as they want.
    pub drain_timeout: Option<Duration>,
    /// `accepts_input` may be `false` because of queued control frames for this long. Default 30 s.
    pub control_queue_timeout: Duration,
    /// What is taken from the peer in one frame.
    pub frame_limits: Limits,
    /// What is taken from the peer in one header block.
    pub block_limits: BlockLimits,
    /// HEADERS frames on one stream; one more is a stream error (the flood that HTTP/2 has as
    /// CONTINUATION). Default 16.
    pub headers_per_stream: u32,
    /// Plain bytes of all header blocks of one stream together, the first included; one more is a
    /// stream error. Default 128 KiB: two blocks of the greatest length.
    pub header_bytes_per_stream: usize,
    /// PING echoes that wait to be written; one more ends the session (CVE-2019-9512). Default 200:
    /// two bursts of 100, the most that other implementations answer in one read.
    pub ping_echoes: usize,
    /// RST_STREAM frames that wait to be written before we stop reading; twice as many end the
    /// session. Default 1000.
    pub control_queue_frames: usize,
    /// Events that the owner has not polled before we stop reading. Default 10,000.
    pub event_queue: usize,
    /// The other floods.
    pub floods: FloodLimits,
    /// DATA of fewer bytes than this is not cut off just because a window ends there: it waits
    /// `small_data_delay` for more credit (CVE-2019-9517). Default 1024; 0 never waits.
    pub small_data_bytes: usize,
    /// How long small DATA waits. Default 50 ms: far under the time in which a peer that means to
    /// open its window only when it has everything (OkHttp below 8 KiB) would notice.
    pub small_data_delay: Duration,
    /// One DATA frame in so many goes to the less urgent streams, though more urgent ones have
    /// something to send, so that none starves. Default 16; 0 is strict priority, as nginx.
    pub starvation_guard: u32,
    /// Sees every frame in both directions.
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

    /// Moves what is out of range to the next value that makes sense: a frame cannot announce more
    /// than 2^24 - 1 bytes, a buffer of nothing would never have room, and where no byte is small DATA, one
    /// is progress still, and none is not.
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

    /// DATA that may wait for its owner where no window is in force, bytes.
    pub(crate) fn unread_limit(&self) -> usize {
        self.session_window_bytes.unwrap_or(UNREAD_WITHOUT_WINDOWS) as usize
    }

    /// How header blocks are written.
    pub(crate) fn deflate_options(&self) -> DeflateOptions {
        let usual = DeflateOptions::from(self.compression);
        DeflateOptions {
            window_bits: self.compression_window_bits.unwrap_or(usual.window_bits),
            secrets: self.secrets.clone(),
            ..usual
        }
    }

    /// Streams that the peer may have open at once, push policy included.
    pub(crate) fn peer_streams(&self) -> u32 {
        match (self.role, self.push) {
            (Role::Client, PushPolicy::Refuse) => 0,
            _ => self.max_concurrent_streams,
        }
    }

    /// Whether streams have windows in this session.
    pub(crate) fn stream_windows(&self) -> bool {
        self.flow_control && self.version.has_stream_windows()
    }

    /// Whether the session has a window from its start.
    pub(crate) fn session_window(&self) -> bool {
        self.flow_control && self.version.has_session_window()
    }

    /// The receive window of a new stream, as the peer knows it.
    pub(crate) fn stream_window(&self) -> i64 {
        let most = self
            .settings_window_bytes
            .map_or(i64::MAX, |bytes| i64::from(bytes).max(INITIAL_WINDOW));
        self.wide_window().min(most)
    }

    /// The receive window of a stream of ours, and of a push that is wanted.
    pub(crate) fn wide_window(&self) -> i64 {
        match self.settings_timing {
            SettingsTiming::Never => INITIAL_WINDOW,
            SettingsTiming::Immediate | SettingsTiming::AfterPeer => {
                i64::from(self.initial_window_bytes.min(0x7fff_ffff))
            }
        }
    }
}
