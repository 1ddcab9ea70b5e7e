//! Options of a client's connections.

use std::sync::Arc;
use std::time::Duration;

use spdy::Metrics;
use spdy::client::PushLimits;
use spdy_frame::compress::Compression;
use spdy_frame::secrets::Secrets;

use crate::options::QuicOptions;
use crate::tap::Tap;

/// The largest frame that a peer may always count on, bytes (RFC 9113 §4.2); servers take no other.
pub const MIN_MAX_FRAME_BYTES: u32 = 16 * 1024;
/// A connection has room for the windows of this many streams, unless it is configured otherwise.
const DEFAULT_WINDOW_STREAMS: u32 = 100;
/// The greatest window of SPDY and HTTP/2.
const MAX_WINDOW: u32 = 0x7fff_ffff;

/// How a client's connections are set up.
#[derive(Clone)]
pub struct ClientOptions {
    /// Receive window of a stream, bytes (SPDY/3 and later, HTTP/2, HTTP/3).
    pub stream_window_bytes: u32,
    /// Receive window of the whole connection, bytes (SPDY/3.1, HTTP/2, HTTP/3). `None`, the default: room for the windows of 100 streams,
    /// so that responses that are not read hold up no others.
    pub session_window_bytes: Option<u32>,
    /// HTTP/2 streams that are open at a time, at most; `None`: as many as the server allows, which may be any number.
    pub max_streams: Option<usize>,
    /// The largest response head taken, bytes.
    pub max_head_bytes: usize,
    /// The largest HTTP/2 frame taken, bytes: 16,384 to 2^24 - 1.
    pub max_frame_bytes: u32,
    /// How long what is to be sent may wait without any of it being taken, over SPDY without a kilobyte of it
    /// ([`Config::write_timeout`](spdy::Config::write_timeout)): the exchange fails, over HTTP/1.1 with its connection. `None` for ever.
    pub write_timeout: Option<Duration>,
    /// The least that a server must take of what waits for it, bytes a second over `write_timeout` of waiting; 0 for no such
    /// limit (HTTP/1.1, HTTP/2, HTTP/3).
    pub min_rate: u32,
    /// A SPDY session that is silent for so long gets a PING, and ends when it stays silent; `None` never. Over QUIC a
    /// PING goes out so often, and a server that answers none is given up after three minutes.
    pub keepalive: Option<Duration>,
    /// Options of SPDY.
    pub spdy: SpdyClientOptions,
    /// What is chosen of QUIC, for HTTP/3.
    pub quic: QuicOptions,
    /// Sees what passes.
    pub tap: Option<Arc<dyn Tap>>,
}

impl ClientOptions {
    /// The receive window of the whole connection, bytes.
    pub fn session_window_size(&self) -> u32 {
        let room = self
            .stream_window_bytes
            .saturating_mul(DEFAULT_WINDOW_STREAMS);
        self.session_window_bytes.unwrap_or(room).min(MAX_WINDOW)
    }
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            // 1 MiB holds a gigabit at 8 ms, and 80 Mbit/s at 100 ms.
            stream_window_bytes: 1024 * 1024,
            session_window_bytes: None,
            max_streams: None,
            max_head_bytes: 64 * 1024,
            max_frame_bytes: MIN_MAX_FRAME_BYTES,
            write_timeout: Some(Duration::from_secs(60)),
            min_rate: 240,
            keepalive: None,
            spdy: SpdyClientOptions::default(),
            quic: QuicOptions::default(),
            tap: None,
        }
    }
}

impl std::fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientOptions")
            .field("stream_window_bytes", &self.stream_window_bytes)
            .field("session_window_bytes", &self.session_window_bytes)
            .field("max_head_bytes", &self.max_head_bytes)
            .field("flow_control", &self.spdy.flow_control)
            .field("fold_names", &self.spdy.lowercase_names)
            .field("pushes", &self.spdy.pushes)
            .field("tap", &self.tap.is_some())
            .finish_non_exhaustive()
    }
}

/// Options of a client's SPDY sessions.
#[derive(Clone, Debug)]
pub struct SpdyClientOptions {
    /// How SPDY's header blocks are compressed.
    pub compression: Compression,
    /// Header values that are compressed separately from all others.
    pub secrets: Secrets,
    /// How far back their compression looks, as a power of two from 11 to 15; `None` for its default.
    pub compression_window_bits: Option<u8>,
    /// `false`: neither obey nor enforce SPDY's windows (peers without flow control).
    pub flow_control: bool,
    /// Announce SPDY's `stream_window_bytes` by a WINDOW_UPDATE behind each SYN_STREAM, and 65,536 in SETTINGS.
    /// Undertow applies a greater value in SETTINGS to its own windows as well, so that uploads to it hang
    /// ([`Config::settings_window_bytes`](spdy::Config::settings_window_bytes)). `false` saves 16 bytes a request,
    /// unless pushes are accepted: their window is announced by WINDOW_UPDATE in any case.
    pub window_update_per_stream: bool,
    /// Read capitals in names of SPDY's headers as small letters, instead of resetting the stream.
    pub lowercase_names: bool,
    /// Take SPDY's pushes in, to answer requests with; `None`: refuse them. (HTTP/2's are always refused.)
    pub pushes: Option<PushLimits>,
    /// Where SPDY sessions are counted.
    pub metrics: Option<Metrics>,
    /// How long a SPDY control frame may stay unfinished.
    pub frame_timeout: Duration,
}

impl Default for SpdyClientOptions {
    fn default() -> Self {
        Self {
            compression: Compression::CrimeSafe,
            secrets: Secrets::default(),
            compression_window_bits: None,
            flow_control: true,
            window_update_per_stream: true,
            lowercase_names: false,
            pushes: None,
            metrics: None,
            frame_timeout: Duration::from_secs(30),
        }
    }
}
