//! Limits and options of served connections.

use std::time::Duration;

use spdy::Metrics;
use spdy::server::PushForm;
use spdy_frame::compress::Compression;
use spdy_frame::secrets::Secrets;

use crate::connection_slot::ConnectionSlot;
use crate::limit::LimitHits;
use crate::options::QuicOptions;

/// Limits and choices of served connections.
#[derive(Clone, Debug)]
pub struct ServerOptions {
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
    /// How long a SPDY control frame may stay unfinished.
    pub frame_timeout: Duration,
    /// The largest request head taken, bytes. (HTTP/1.1: at least 8 KiB.)
    pub max_head_bytes: usize,
    /// Exchanges open at once on one connection (SPDY, HTTP/2, HTTP/3, there at most 4096).
    pub max_streams: u32,
    /// How SPDY's header blocks are compressed.
    pub compression: Compression,
    /// Which header values are kept apart from all others in them.
    pub secrets: Secrets,
    /// How far back their compression looks, as a power of two from 11 to 15; `None` for its default.
    pub compression_window_bits: Option<u8>,
    /// The largest DATA frame sent, bytes of body: 1 to 2^24 - 1 (SPDY; HTTP/2, where clients must allow what is over 16,384).
    pub data_frame_bytes: usize,
    /// `false`: neither obey nor enforce SPDY's windows (peers without flow control).
    pub flow_control: bool,
    /// A SPDY session that is silent for so long gets a PING, and ends when it stays silent; `None` never. Over QUIC a
    /// PING goes out so often, and who answers none is given up after `idle_timeout`.
    pub keepalive: Option<Duration>,
    /// Where SPDY sessions are counted.
    pub metrics: Option<Metrics>,
    /// What is chosen of QUIC, for HTTP/3. All connections of an endpoint share it.
    pub quic: QuicOptions,
    /// How SPDY's pushes are written.
    pub push_form: PushForm,
    /// Whether handlers find a [`Pusher`](crate::handler::Pusher) over HTTP/2. (Over SPDY there always is one.)
    pub http2_push: bool,
    /// Whether HTTP/1.1 honours a [`LiteralHead`](crate::shims::hyper::literal_head::LiteralHead): it then also decides over the
    /// connection, and is written as it is, whatever it says.
    pub literal_heads: bool,
    /// How often clients met these limits is counted here.
    pub hits: LimitHits,
    /// This one connection's client came over TLS, which ended in front: as `Caller` has it. Default `false`.
    pub is_tls: bool,
    /// The place of this one connection, which it may have to give up for another when it has nothing to do.
    pub slot: ConnectionSlot,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            handshake_timeout: Duration::from_secs(10),
            // nginx waits so long for another request on a session.
            idle_timeout: Duration::from_secs(180),
            write_timeout: Duration::from_secs(60),
            read_timeout: Duration::from_secs(60),
            head_timeout: Duration::from_secs(30),
            min_rate: 240,
            frame_timeout: Duration::from_secs(30),
            max_head_bytes: 64 * 1024,
            max_streams: 100,
            compression: Compression::CrimeSafe,
            secrets: Secrets::default(),
            compression_window_bits: None,
            data_frame_bytes: 16 * 1024,
            flow_control: true,
            keepalive: None,
            metrics: None,
            quic: QuicOptions::default(),
            push_form: PushForm::default(),
            http2_push: false,
            literal_heads: false,
            hits: LimitHits::default(),
            is_tls: false,
            slot: ConnectionSlot::default(),
        }
    }
}
