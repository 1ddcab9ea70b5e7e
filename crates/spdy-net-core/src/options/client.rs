//! Options of a client's connections.

use std::sync::Arc;
use std::time::Duration;

use spdy::Metrics;
use spdy::client::PushLimits;
use spdy_frame::compress::Compression;
use spdy_frame::secrets::Secrets;

use crate::options::{QlogFiles, QuicOptions};
use crate::tap::Tap;

/// The largest frame that every peer must accept, bytes (RFC 9113 §4.2); a lower limit is not allowed.
pub const MIN_MAX_FRAME_BYTES: u32 = 16 * 1024;
/// Default session window, in stream windows.
const DEFAULT_WINDOW_STREAMS: u32 = 100;
/// The greatest window of SPDY and HTTP/2.
const MAX_WINDOW: u32 = 0x7fff_ffff;

/// Options of a client's connections.
#[derive(Clone)]
#[non_exhaustive]
pub struct ClientOptions {
    /// Receive window of a stream, bytes (SPDY/3 and later, HTTP/2, HTTP/3). Default 1 MiB.
    pub stream_window_bytes: u32,
    /// Receive window of the whole connection, bytes (SPDY/3.1, HTTP/2, HTTP/3). `None`, the default: the sum of 100 stream
    /// windows, so that unread responses do not block others.
    pub session_window_bytes: Option<u32>,
    /// Limit of concurrent HTTP/2 streams; `None`, the default: that of the server, which may be any number.
    pub max_streams: Option<usize>,
    /// Maximum size of a response head, bytes. Default 64 KiB.
    pub max_head_bytes: usize,
    /// Maximum size of an HTTP/2 frame, bytes: 16,384, the default, to 2^24 - 1.
    pub max_frame_bytes: u32,
    /// Write each frame alone, so that it is one TLS record, as Chromium does (SPDY, HTTP/2). `false`, the default: all frames that are
    /// ready are written together.
    pub frame_per_write: bool,
    /// Timeout for output of which the server accepts nothing, over SPDY less than a kilobyte
    /// ([`Config::write_timeout`](spdy::Config::write_timeout)): the exchange fails, over HTTP/1.1 with its connection. `None`: no
    /// timeout. Default 60 s.
    pub write_timeout: Option<Duration>,
    /// Minimum rate at which a server must accept waiting output, bytes a second of waiting, over `write_timeout`; 0 for no limit
    /// (HTTP/1.1, HTTP/2, HTTP/3). Default 240.
    pub min_rate: u32,
    /// Time without input after which a SPDY session gets a PING; it ends if there is still no input. `None`, the default: never.
    /// Over QUIC it is the interval of PINGs, and the connection ends after three minutes without an answer.
    pub keepalive: Option<Duration>,
    /// Options of SPDY.
    pub spdy: SpdyClientOptions,
    /// Options of QUIC, for HTTP/3.
    pub quic: QuicOptions,
    /// Writes a qlog of each QUIC connection, if the feature `qlog` of `spdy-h3` is enabled. Default `None`.
    pub qlog: Option<QlogFiles>,
    /// Observes frames, heads and bytes. Default `None`.
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
            // 1 MiB sustains 1 Gbit/s at 8 ms, and 80 Mbit/s at 100 ms.
            stream_window_bytes: 1024 * 1024,
            session_window_bytes: None,
            max_streams: None,
            max_head_bytes: 64 * 1024,
            max_frame_bytes: MIN_MAX_FRAME_BYTES,
            frame_per_write: false,
            write_timeout: Some(Duration::from_secs(60)),
            min_rate: 240,
            keepalive: None,
            spdy: SpdyClientOptions::default(),
            quic: QuicOptions::default(),
            qlog: None,
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
#[non_exhaustive]
pub struct SpdyClientOptions {
    /// How SPDY's header blocks are compressed. Default [`Compression::CrimeSafe`].
    pub compression: Compression,
    /// Header values that are compressed separately from all others. Default [`Secrets::default`].
    pub secrets: Secrets,
    /// Window size of header compression, as a power of two from 11 to 15; `None` for the default.
    pub compression_window_bits: Option<u8>,
    /// `false`: neither obey nor enforce SPDY's windows (peers without flow control). Default `true`.
    pub flow_control: bool,
    /// Announce SPDY's `stream_window_bytes` by a WINDOW_UPDATE after each SYN_STREAM, and 65,536 in SETTINGS. Undertow applies a
    /// larger value in SETTINGS to its own windows as well, so that uploads to it stall
    /// ([`Config::settings_window_bytes`](spdy::Config::settings_window_bytes)). `false` saves 16 bytes a request, unless pushes
    /// are accepted: their window is always announced by WINDOW_UPDATE.
    /// Default `true`.
    pub window_update_per_stream: bool,
    /// Convert upper-case names of SPDY headers to lower case, instead of resetting the stream. Default `false`.
    pub lowercase_names: bool,
    /// Accept SPDY pushes as responses to requests; `None`, the default: refuse them. (HTTP/2 pushes are always refused.)
    pub pushes: Option<PushLimits>,
    /// The metrics in which SPDY sessions are counted. Default `None`.
    pub metrics: Option<Metrics>,
    /// Timeout for an incomplete SPDY control frame. Default 30 s.
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
