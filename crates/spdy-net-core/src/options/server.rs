//! Limits and options of served connections.

use std::time::Duration;

use spdy::Metrics;
use spdy::server::PushForm;
use spdy_frame::compress::Compression;
use spdy_frame::secrets::Secrets;

use crate::connection_slot::ConnectionSlot;
use crate::limit::LimitHits;
use crate::options::QuicOptions;

/// Limits and options of served connections.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Timeouts, and the minimum rate of a client.
    pub timeouts: ServerTimeouts,
    /// Maximum size of a request head, bytes. (HTTP/1.1: at least 8 KiB.)
    pub max_head_bytes: usize,
    /// Limit of concurrent exchanges on one connection (SPDY, HTTP/2, HTTP/3; at most 4096 for HTTP/3).
    pub max_streams: u32,
    /// Maximum payload of a sent DATA frame, bytes: 1 to 2^24 - 1 (SPDY; HTTP/2, where clients must allow more than 16,384).
    pub data_frame_bytes: usize,
    /// Time without input after which a SPDY session gets a PING; it ends if there is still no input. `None`: never. Over QUIC it
    /// is the interval of PINGs, and the connection ends after `idle_timeout` without an answer.
    pub keepalive: Option<Duration>,
    /// Options of SPDY.
    pub spdy: SpdyServerOptions,
    /// Options of QUIC, for HTTP/3. All connections of an endpoint share them.
    pub quic: QuicOptions,
    /// Whether handlers get a [`Pusher`](crate::handler::Pusher) over HTTP/2. (Over SPDY they always do.)
    pub http2_push: bool,
    /// Counts how often clients reached these limits.
    pub hits: LimitHits,
    /// True if the client used TLS, which a proxy terminated, as stated by `Caller`. Default `false`.
    pub is_tls: bool,
    /// The slot of this connection, which it may have to release for another when it is idle.
    pub slot: ConnectionSlot,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            timeouts: ServerTimeouts::default(),
            max_head_bytes: 64 * 1024,
            max_streams: 100,
            data_frame_bytes: 16 * 1024,
            keepalive: None,
            spdy: SpdyServerOptions::default(),
            quic: QuicOptions::default(),
            http2_push: false,
            hits: LimitHits::default(),
            is_tls: false,
            slot: ConnectionSlot::default(),
        }
    }
}

/// Timeouts of served connections, and the minimum rate of a client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerTimeouts {
    /// From accepting a connection to knowing its protocol, TLS handshake included.
    pub handshake_timeout: Duration,
    /// Maximum time without an open exchange. Over QUIC also the maximum time without a packet from the client.
    pub idle_timeout: Duration,
    /// Maximum time in which a client accepts no waiting bytes, because it does not read from the connection or keeps its window
    /// closed. Over HTTP/2 also the maximum duration of an orderly shutdown once no exchange is open.
    pub write_timeout: Duration,
    /// Maximum time in which a client sends no bytes of a body that is being read.
    pub read_timeout: Duration,
    /// From the first byte of an HTTP/1.1 request's head to its last; in HTTP/3 from the first byte of the stream.
    pub head_timeout: Duration,
    /// Minimum rate at which a client must send a body that is being read, and accept waiting bytes, bytes a second: over
    /// `read_timeout`, or `write_timeout`, of waiting. 0 for no limit.
    pub min_rate: u32,
}

impl Default for ServerTimeouts {
    fn default() -> Self {
        Self {
            handshake_timeout: Duration::from_secs(10),
            // nginx has the same timeout for a further request on a session.
            idle_timeout: Duration::from_secs(180),
            write_timeout: Duration::from_secs(60),
            read_timeout: Duration::from_secs(60),
            head_timeout: Duration::from_secs(30),
            min_rate: 240,
        }
    }
}

/// Options of served SPDY sessions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SpdyServerOptions {
    /// How header blocks are compressed.
    pub compression: Compression,
    /// Header values that are compressed separately from all others.
    pub secrets: Secrets,
    /// Window of the header compression, as a power of two from 11 to 15; `None` for its default.
    pub compression_window_bits: Option<u8>,
    /// `false`: neither obey nor enforce windows (peers without flow control).
    pub flow_control: bool,
    /// The metrics in which sessions are counted.
    pub metrics: Option<Metrics>,
    /// How pushes are encoded.
    pub push_form: PushForm,
    /// Whether trailers of responses are sent. Some clients fail on them, so a handler should drop those that a client does not expect.
    /// Default `false`.
    pub send_trailers: bool,
    /// Timeout for an incomplete control frame.
    pub frame_timeout: Duration,
}

impl Default for SpdyServerOptions {
    fn default() -> Self {
        Self {
            compression: Compression::CrimeSafe,
            secrets: Secrets::default(),
            compression_window_bits: None,
            flow_control: true,
            metrics: None,
            push_form: PushForm::default(),
            send_trailers: false,
            frame_timeout: Duration::from_secs(30),
        }
    }
}
