//! One connection of a client, whatever is spoken on it.
//!
//! ```text
//!  start --> up: has_room? --send--> busy .. --> up
//!             |                                    \
//!             `-- is_closing: GOAWAY, close, or broken --> closed
//! ```
//!
//! A connection knows its own capacity and its own end. Which request goes on which connection is the
//! pool's business (`spdy-client/src/pool/`).

use std::sync::Arc;
use std::time::Duration;

use http::header::{self, HeaderMap, HeaderName};
use http::{Request, Response};
use spdy::Metrics;
use spdy::body::Body;
use spdy::client::{Push, PushLimits};
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_frame::compress::Compression;
use spdy_frame::priority::Priority;
use spdy_frame::secrets::Secrets;
use spdy_session::observe::Direction;

use crate::error::{ConnectionError, ExchangeError, Retry};
use crate::http1::Http1Client;
use crate::http2::client::Http2Client;
use crate::http2::limits::MIN_MAX_FRAME_BYTES;
use crate::http3::client::Http3Client;
use crate::network::BoxIo;
use crate::protocol::Protocol;
use crate::quic::{QuicConnection, QuicOptions};
use crate::request_head;
use crate::shims::wire_observer::HeaderBytes;
use crate::spdy_session::SpdyClient;
use crate::tap::{ConnectionTap, Tap, TapEvent};

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
    /// How long a SPDY control frame may stay unfinished.
    pub frame_timeout: Duration,
    /// How long what is to be sent may wait without any of it being taken, over SPDY without a kilobyte of it
    /// ([`Config::write_timeout`](spdy::Config::write_timeout)): the exchange fails, over HTTP/1.1 with its connection. `None` for ever.
    pub write_timeout: Option<Duration>,
    /// The least that a server must take of what waits for it, bytes a second over `write_timeout` of waiting; 0 for no such
    /// limit (HTTP/1.1, HTTP/2, HTTP/3).
    pub min_rate: u32,
    /// How SPDY's header blocks are compressed.
    pub compression: Compression,
    /// Which header values are kept apart from all others in them.
    pub secrets: Secrets,
    /// How far back their compression looks, as a power of two from 11 to 15; `None` for its default.
    pub compression_window_bits: Option<u8>,
    /// `false`: neither obey nor enforce SPDY's windows (peers without flow control).
    pub flow_control: bool,
    /// Tell SPDY's `stream_window_bytes` by a WINDOW_UPDATE behind each SYN_STREAM, and 65,536 in SETTINGS, whose
    /// greater value Undertow takes for its own windows as well, so that uploads to it hang
    /// ([`Config::settings_window_bytes`](spdy::Config::settings_window_bytes)). `false` saves 16 bytes a request,
    /// unless pushes are taken: their own window is told so in any case.
    pub window_update_per_stream: bool,
    /// Read capitals in names of SPDY's headers as small letters, instead of resetting the stream.
    pub lowercase_names: bool,
    /// Take SPDY's pushes in, to answer requests with; `None`: refuse them. (HTTP/2's are always refused.)
    pub pushes: Option<PushLimits>,
    /// A SPDY session that is silent for so long gets a PING, and ends when it stays silent; `None` never. Over QUIC a
    /// PING goes out so often, and a server that answers none is given up after three minutes.
    pub keepalive: Option<Duration>,
    /// Where SPDY sessions are counted.
    pub metrics: Option<Metrics>,
    /// What is chosen of QUIC, for HTTP/3.
    pub quic: QuicOptions,
    /// Sees what passes.
    pub tap: Option<Arc<dyn Tap>>,
}

impl ClientOptions {
    /// The receive window of the whole connection, bytes.
    pub(crate) fn session_window_size(&self) -> u32 {
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
            frame_timeout: Duration::from_secs(30),
            write_timeout: Some(Duration::from_secs(60)),
            min_rate: 240,
            compression: Compression::CrimeSafe,
            secrets: Secrets::default(),
            compression_window_bits: None,
            flow_control: true,
            window_update_per_stream: true,
            lowercase_names: false,
            keepalive: None,
            metrics: None,
            pushes: None,
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
            .field("flow_control", &self.flow_control)
            .field("fold_names", &self.lowercase_names)
            .field("pushes", &self.pushes)
            .field("tap", &self.tap.is_some())
            .finish_non_exhaustive()
    }
}

/// A client's connection. Clones are the same connection; it stays up while one of them lives.
#[derive(Clone, Debug)]
pub struct Connection {
    protocol: Protocol,
    inner: Inner,
}

#[derive(Clone, Debug)]
enum Inner {
    Http1(Http1Client),
    Http2(Http2Client),
    Spdy(SpdyClient),
    Http3(Http3Client),
}

impl Connection {
    /// Starts to speak `protocol` on `io`. `number` names the connection to the tap.
    ///
    /// # Errors
    ///
    /// The transport broke before the first byte was taken.
    ///
    /// # Panics
    ///
    /// If `protocol` is HTTP/3, which is not spoken over a byte stream.
    pub async fn start(
        io: BoxIo,
        protocol: Protocol,
        number: u64,
        options: &ClientOptions,
        runtime: &SharedRuntime,
    ) -> Result<Self, ConnectionError> {
        let tap = connection_tap(protocol, number, options, runtime);
        let inner = match protocol {
            Protocol::Http1 => Inner::Http1(Http1Client::start(io, options, tap, runtime).await?),
            Protocol::Http2 => Inner::Http2(Http2Client::start(io, options, tap, runtime).await?),
            Protocol::Spdy(version) => {
                Inner::Spdy(SpdyClient::start(io, version, options, tap, runtime))
            }
            Protocol::Http3 => panic!("HTTP/3 is not spoken over TCP; see start_http3"),
        };
        Ok(Self { protocol, inner })
    }

    /// Starts to speak HTTP/3 on `quic`. `number` names the connection to the tap.
    #[must_use]
    pub fn start_http3(
        quic: QuicConnection,
        number: u64,
        options: &ClientOptions,
        runtime: &SharedRuntime,
    ) -> Self {
        let protocol = Protocol::Http3;
        let tap = connection_tap(protocol, number, options, runtime);
        let inner = Inner::Http3(Http3Client::start(quic, options, tap, runtime));
        Self { protocol, inner }
    }

    /// What is spoken.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Exchanges that may be open here at once, as far as is known. A SPDY session and HTTP/3 keep queues of their
    /// own by priority, so there is no limit to what they may be given.
    #[must_use]
    pub fn limit(&self) -> usize {
        match &self.inner {
            Inner::Http1(_) => 1,
            Inner::Http2(client) => client.limit(),
            Inner::Spdy(_) | Inner::Http3(_) => usize::MAX,
        }
    }

    /// No new exchange will be taken.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        match &self.inner {
            Inner::Http1(client) => client.is_closing(),
            Inner::Http2(client) => client.is_closing(),
            Inner::Spdy(client) => client.is_closing(),
            Inner::Http3(client) => client.is_closing(),
        }
    }

    /// Sends `request`, whose URI is absolute. The future gives the head of the response and a body
    /// that fails if it ends short. Dropped before, it cancels the exchange.
    pub fn send(
        &self,
        mut request: Request<Body>,
        priority: Priority,
    ) -> BoxFuture<Result<Response<Body>, ExchangeError>> {
        if !matches!(self.inner, Inner::Http1(_))
            && let Err(why) = request_head::set_authority(&mut request)
        {
            let error = ExchangeError::new(Retry::Never, why.to_string());
            return Box::pin(async { Err(error) });
        }
        match &self.inner {
            Inner::Http1(client) => client.send(request),
            Inner::Http2(client) => client.send(request, priority),
            Inner::Spdy(client) => client.send(request, priority),
            Inner::Http3(client) => client.send(request, priority),
        }
    }

    /// Completes when the connection can take another exchange, `true`, or never will, `false`.
    /// HTTP/1.1 needs a moment after a body's end; the others are ready at once.
    pub fn ready(&self) -> BoxFuture<bool> {
        match &self.inner {
            Inner::Http1(client) => client.ready(),
            Inner::Http2(_) | Inner::Spdy(_) | Inner::Http3(_) => {
                let ready = !self.is_closing();
                Box::pin(async move { ready })
            }
        }
    }

    /// Completes when the connection has ended.
    pub fn closed(&self) -> BoxFuture<()> {
        match &self.inner {
            Inner::Http1(client) => client.closed(),
            Inner::Http2(client) => client.closed(),
            Inner::Spdy(client) => client.closed(),
            Inner::Http3(client) => client.closed(),
        }
    }

    /// Ends the connection in order: what is open goes on to its end, nothing new is taken.
    pub fn close(&self) {
        match &self.inner {
            Inner::Http1(client) => client.close(),
            Inner::Http2(client) => client.close(),
            Inner::Spdy(client) => client.close(),
            Inner::Http3(client) => client.close(),
        }
    }

    /// What was pushed, and no request has claimed so far; dropped, it is cancelled.
    #[must_use]
    pub fn take_pushes(&self) -> Vec<Push> {
        match &self.inner {
            Inner::Http1(_) | Inner::Http2(_) | Inner::Http3(_) => Vec::new(),
            Inner::Spdy(client) => client.take_pushes(),
        }
    }

    /// Header bytes on the wire so far.
    #[must_use]
    pub fn header_bytes(&self) -> HeaderBytes {
        match &self.inner {
            Inner::Http1(client) => client.header_bytes(),
            Inner::Http2(client) => client.header_bytes(),
            Inner::Spdy(client) => client.header_bytes(),
            Inner::Http3(client) => client.header_bytes(),
        }
    }
}

/// The tap of a connection that begins to speak.
fn connection_tap(
    protocol: Protocol,
    number: u64,
    options: &ClientOptions,
    runtime: &SharedRuntime,
) -> Option<ConnectionTap> {
    let tap = ConnectionTap {
        tap: options.tap.clone()?,
        connection: number,
        runtime: runtime.clone(),
    };
    tap.emit(Direction::Sent, &TapEvent::Opened { protocol });
    Some(tap)
}

/// Headers of one HTTP/1.1 connection, which no other protocol carries (RFC 9113 §8.2.2, SPDY/3.1 §3.2.1).
pub(crate) static CONNECTION_HEADERS: [HeaderName; 6] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("http2-settings"),
];

/// Removes what belongs to one HTTP/1.1 connection, and what its `Connection` header names.
pub(crate) fn drop_connection_headers(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    // Mostly there is none.
    let is_one = |name: &&HeaderName| CONNECTION_HEADERS.contains(name) || named.contains(name);
    let those: Vec<HeaderName> = headers.keys().filter(is_one).cloned().collect();
    for name in those {
        headers.remove(name);
    }
}
