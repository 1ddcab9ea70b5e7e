//! One connection of a client, with any protocol.
//!
//! ```text
//!  start --> up: has_room? --send--> busy .. --> up
//!             |                                    \
//!             `-- is_closing: GOAWAY, close, or broken --> closed
//! ```
//!
//! A connection knows its own capacity and its own end. The pool (`spdy-client/src/pool/`) decides which request uses which
//! connection.

use http::{Request, Response};
use spdy::body::Body;
use spdy::client::Push;
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_frame::priority::Priority;
use spdy_h3::client::Http3Client;
use spdy_h3::quic::QuicConnection;
use spdy_net_core::error::{ConnectionError, ExchangeError, Retry};
use spdy_net_core::head::request_head;
use spdy_net_core::header_bytes::HeaderBytes;
use spdy_net_core::network::BoxIo;
use spdy_net_core::protocol::Protocol;
use spdy_net_core::tap::{ConnectionTap, TapEvent};
use spdy_net_core::tls::PeerCertificates;
use spdy_session::observe::Direction;

use crate::frame_per_write::write_frames_alone;
use crate::http1::Http1Client;
use crate::http2::client::Http2Client;
use crate::spdy_session::SpdyClient;

pub use spdy_net_core::options::ClientOptions;

/// A client's connection. Clones share it; it stays open while one of them exists.
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
    /// Starts `protocol` on `io`. `number` identifies the connection to the tap.
    ///
    /// # Errors
    ///
    /// The transport failed before the first byte was accepted.
    ///
    /// # Panics
    ///
    /// If `protocol` is HTTP/3, which does not run over a byte stream.
    pub async fn start(
        io: BoxIo,
        protocol: Protocol,
        number: u64,
        options: &ClientOptions,
        runtime: &SharedRuntime,
    ) -> Result<Self, ConnectionError> {
        let tap = connection_tap(protocol, number, options, runtime);
        let io = match options.frame_per_write {
            true => write_frames_alone(io, protocol),
            false => io,
        };
        let inner = match protocol {
            Protocol::Http1 => Inner::Http1(Http1Client::start(io, options, tap, runtime).await?),
            Protocol::Http2 => Inner::Http2(Http2Client::start(io, options, tap, runtime).await?),
            Protocol::Spdy(version) => {
                Inner::Spdy(SpdyClient::start(io, version, options, tap, runtime))
            }
            Protocol::Http3 => panic!("HTTP/3 does not run over TCP; use start_http3"),
        };
        Ok(Self { protocol, inner })
    }

    /// Starts HTTP/3 on `quic`. `number` identifies the connection to the tap.
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

    /// The protocol of the connection.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Limit of concurrent exchanges. There is none for SPDY and HTTP/3, which have their own priority queues.
    #[must_use]
    pub fn limit(&self) -> usize {
        match &self.inner {
            Inner::Http1(_) => 1,
            Inner::Http2(client) => client.limit(),
            Inner::Spdy(_) | Inner::Http3(_) => usize::MAX,
        }
    }

    /// True if the connection accepts no new exchanges.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        match &self.inner {
            Inner::Http1(client) => client.is_closing(),
            Inner::Http2(client) => client.is_closing(),
            Inner::Spdy(client) => client.is_closing(),
            Inner::Http3(client) => client.is_closing(),
        }
    }

    /// Sends `request`, whose URI must be absolute. The future returns the head of the response, and a body that fails if it is
    /// truncated. Dropping the future before that cancels the exchange.
    pub fn send(
        &self,
        mut request: Request<Body>,
        priority: Priority,
    ) -> BoxFuture<Result<Response<Body>, ExchangeError>> {
        if matches!(self.inner, Inner::Http2(_) | Inner::Spdy(_))
            && let Err(reason) = request_head::set_authority(&mut request)
        {
            let error = ExchangeError::new(Retry::Never, reason.to_string());
            return Box::pin(async { Err(error) });
        }
        match &self.inner {
            Inner::Http1(client) => client.send(request),
            Inner::Http2(client) => client.send(request, priority),
            Inner::Spdy(client) => client.send(request, priority),
            Inner::Http3(client) => client.send(request, priority),
        }
    }

    /// Completes with `true` when the connection can accept another exchange, and with `false` when it never will. HTTP/1.1 needs
    /// some time after the end of a body; the others are ready at once.
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

    /// Closes the connection in order: open exchanges are completed, new ones are not accepted.
    pub fn close(&self) {
        match &self.inner {
            Inner::Http1(client) => client.close(),
            Inner::Http2(client) => client.close(),
            Inner::Spdy(client) => client.close(),
            Inner::Http3(client) => client.close(),
        }
    }

    /// Takes the pushes that no request has claimed so far. Dropping a push cancels it.
    #[must_use]
    pub fn take_pushes(&self) -> Vec<Push> {
        match &self.inner {
            Inner::Http1(_) | Inner::Http2(_) | Inner::Http3(_) => Vec::new(),
            Inner::Spdy(client) => client.take_pushes(),
        }
    }

    /// The server's certificates over HTTP/3. `None` while the handshake is not complete, which is possible if the connection was opened
    /// with early data; and over TCP, where the handshake returns them.
    #[must_use]
    pub fn peer_certificates(&self) -> Option<PeerCertificates> {
        match &self.inner {
            Inner::Http1(_) | Inner::Http2(_) | Inner::Spdy(_) => None,
            Inner::Http3(client) => client.peer_certificates(),
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

/// The tap of a new connection.
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
