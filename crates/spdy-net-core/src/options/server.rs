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
pub struct ServerOptions {
    /// Timeouts, and the least rate of a client.
    pub timeouts: ServerTimeouts,
    /// The largest request head taken, bytes. (HTTP/1.1: at least 8 KiB.)
    pub max_head_bytes: usize,
    /// Exchanges open at once on one connection (SPDY, HTTP/2, HTTP/3, there at most 4096).
    pub max_streams: u32,
    /// The largest DATA frame sent, bytes of body: 1 to 2^24 - 1 (SPDY; HTTP/2, where clients must allow what is over 16,384).
    pub data_frame_bytes: usize,
    /// A SPDY session that is silent for so long gets a PING, and ends when it stays silent; `None` never. Over QUIC a
    /// PING goes out so often, and a client that answers none is given up after `idle_timeout`.
    pub keepalive: Option<Duration>,
    /// Options of SPDY.
    pub spdy: SpdyServerOptions,
    /// What is chosen of QUIC, for HTTP/3. All connections of an endpoint share it.
    pub quic: QuicOptions,
    /// Whether handlers find a [`Pusher`](crate::handler::Pusher) over HTTP/2. (Over SPDY there always is one.)
    pub http2_push: bool,
    /// Counts how often clients met these limits.
    pub hits: LimitHits,
    /// This one connection's client came over TLS, which ended in front: as `Caller` has it. Default `false`.
    pub is_tls: bool,
    /// The place of this one connection, which it may have to give up for another when it has nothing to do.
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

/// Timeouts of served connections, and the least rate of a client.
#[derive(Clone, Debug)]
pub struct ServerTimeouts {
    /// From accepting a connection to knowing what it speaks, TLS handshake included.
    pub handshake_timeout: Duration,
    /// How long a connection may have no exchange open. Over QUIC also how long a client may send no packet.
    pub idle_timeout: Duration,
    /// How long a client may take nothing of what is there for it, be it by not reading from the
    /// connection or by keeping its window closed. Over HTTP/2 also how long an end in order may take once no
    /// exchange is open.
    pub write_timeout: Duration,
    /// How long a client may send nothing of a body that is waited for.
    pub read_timeout: Duration,
    /// From the first byte of an HTTP/1.1 request's head to its last; of HTTP/3's from the stream's.
    pub head_timeout: Duration,
    /// The least that a client must send of a body that is waited for, and take of what waits for it,
    /// bytes a second: over `read_timeout`, or `write_timeout`, of waiting. 0 for no such limit.
    pub min_rate: u32,
}

impl Default for ServerTimeouts {
    fn default() -> Self {
        Self {
            handshake_timeout: Duration::from_secs(10),
            // nginx waits so long for another request on a session.
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
pub struct SpdyServerOptions {
    /// How header blocks are compressed.
    pub compression: Compression,
    /// Which header values are compressed apart from all others.
    pub secrets: Secrets,
    /// Window of the header compression, as a power of two from 11 to 15; `None` for its default.
    pub compression_window_bits: Option<u8>,
    /// `false`: neither obey nor enforce windows (peers without flow control).
    pub flow_control: bool,
    /// Where sessions are counted.
    pub metrics: Option<Metrics>,
    /// How pushes are written.
    pub push_form: PushForm,
    /// How long a control frame may stay unfinished.
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
            frame_timeout: Duration::from_secs(30),
        }
    }
}
