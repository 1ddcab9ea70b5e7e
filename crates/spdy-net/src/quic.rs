//! QUIC by quinn, on our clock, tasks, sockets and chance (RFC 9000, RFC 9002).
//!
//! ```text
//!   quinn::Endpoint  --datagrams-->  network::Network::datagrams      UDP, or the lab's
//!         |          --timers, tasks, now-->  spdy::runtime::Runtime
//!         |          --ids, skipped packet numbers, padding-->  QuicOptions::seed, or the system
//!   quinn::Connection  -->  http3/
//! ```
//!
//! A client has a socket for each connection, as browsers have; a server one for all. Congestion control, pacing,
//! loss recovery and acknowledgements are quinn's.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant as SystemInstant};

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{EndpointConfig, IdleTimeout, TransportConfig, VarInt};
use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_clock::Instant;

use crate::connection::ClientOptions;
use crate::error::ConnectionError;
use crate::http3::control::MAX_UNI_STREAMS;
use crate::network::{DatagramSocket, Network};
use crate::protocol::Protocol;
use crate::serve::ServerOptions;
use crate::tls::{ClientTls, HandshakeInfo, PeerCertificates, ServerTls};
use crate::upload_windows::{GROWN_WINDOW_BYTES, connection_window};

/// Bytes of a datagram that every path bears (RFC 9000 §14.1). More is not looked for; windows count in these.
pub const DATAGRAM_BYTES: u32 = 1200;
/// Bytes of bodies that a connection holds of what is sent and not acknowledged, or not sent yet: 170 Mbit/s at 100 ms.
/// It is what a client that takes nothing can make us hold, unless it is in memory anyhow.
pub(crate) const SEND_WINDOW_BYTES: usize = 2 * 1024 * 1024;
/// The most streams of requests that are open at once, whatever `max_streams` says: quinn makes an entry for each that
/// may be, when the connection is born.
const MAX_REQUEST_STREAMS: u32 = 4096;
/// How long a client receives nothing from its server before the connection counts as lost.
const CLIENT_IDLE_TIMEOUT: Duration = Duration::from_secs(180);
/// Clients whose first packet came and that were not admitted yet; further ones are refused.
const MAX_INCOMING: usize = 1024;
/// Bytes that each of them may send meanwhile, and all together.
const INCOMING_BYTES: (u64, u64) = (16 * 1024, 4 * 1024 * 1024);

/// How the congestion window grows and falls.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Congestion {
    /// RFC 9438, without HyStart: slow start ends with the first loss.
    #[default]
    Cubic,
    /// RFC 9002 §7.
    NewReno,
}

/// Choices of QUIC, beneath HTTP/3.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QuicOptions {
    /// Congestion control of what this side sends.
    pub congestion: Congestion,
    /// Datagrams of [`DATAGRAM_BYTES`] that may be sent before the first acknowledgement, at least 2. Default 10
    /// (RFC 9002 §7.2), as TCP has it (RFC 6928).
    pub initial_window: u32,
    /// All chance that can reach the length or the time of a packet comes from this; `None`: from the system.
    pub seed: Option<u64>,
}

impl Default for QuicOptions {
    fn default() -> Self {
        Self {
            congestion: Congestion::default(),
            initial_window: 10,
            seed: None,
        }
    }
}

impl QuicOptions {
    /// The chance of the endpoint called `name`.
    fn endpoint(&self, name: fmt::Arguments<'_>) -> EndpointConfig {
        let mut config = EndpointConfig::default();
        config.rng_seed(self.seed.map(|seed| {
            let named = Sha256::new_with_prefix(seed.to_be_bytes());
            named.chain_update(name.to_string()).finalize().into()
        }));
        config
    }

    fn transport(&self, idle: Duration) -> TransportConfig {
        use quinn::congestion::{CubicConfig, NewRenoConfig};
        let window = u64::from(self.initial_window.max(2)) * u64::from(DATAGRAM_BYTES);
        let mut transport = TransportConfig::default();
        match self.congestion {
            Congestion::Cubic => {
                let mut cubic = CubicConfig::default();
                cubic.initial_window(window);
                transport.congestion_controller_factory(Arc::new(cubic));
            }
            Congestion::NewReno => {
                let mut reno = NewRenoConfig::default();
                reno.initial_window(window);
                transport.congestion_controller_factory(Arc::new(reno));
            }
        }
        transport
            // A period that is too long for the wire is none.
            .max_idle_timeout(IdleTimeout::try_from(idle).ok())
            // Its probes of up to 1,452 bytes go out right behind the handshake, at the cost of what is asked for then,
            // and save a hundredth of a long answer.
            .mtu_discovery_config(None)
            .max_concurrent_uni_streams(VarInt::from_u32(MAX_UNI_STREAMS))
            // Bounded, and shared out by urgency, in http3/room.rs.
            .send_window(u64::from(u32::MAX))
            // Without it a stream that was begun would go on, whatever is more urgent.
            .send_fairness(true)
            .datagram_receive_buffer_size(None);
        transport
    }

    fn client_transport(options: &ClientOptions) -> TransportConfig {
        let mut transport = options.quic.transport(CLIENT_IDLE_TIMEOUT);
        transport
            .max_concurrent_bidi_streams(VarInt::from_u32(0))
            .stream_receive_window(VarInt::from_u32(options.stream_window_bytes))
            .receive_window(VarInt::from_u32(options.session_window_size()))
            .keep_alive_interval(options.keepalive);
        transport
    }

    fn server_transport(options: &ServerOptions) -> TransportConfig {
        let mut transport = options.quic.transport(options.idle_timeout);
        let streams = options.max_streams.min(MAX_REQUEST_STREAMS);
        transport
            .max_concurrent_bidi_streams(VarInt::from_u32(streams))
            .stream_receive_window(VarInt::from_u32(GROWN_WINDOW_BYTES))
            .receive_window(VarInt::from_u32(connection_window(streams)))
            .keep_alive_interval(options.keepalive);
        transport
    }
}

/// A client's connection whose handshake is done, and the endpoint that it lives on.
#[derive(Debug)]
pub struct QuicConnection {
    pub(crate) connection: quinn::Connection,
    pub(crate) endpoint: quinn::Endpoint,
}

/// Opens a QUIC connection for HTTP/3 to `to`, whose certificate must be for `host`. `number` names it.
///
/// # Errors
///
/// No socket, a host that is no name, a certificate that is not believed, a server that speaks something else or
/// does not answer.
pub async fn connect(
    network: &dyn Network,
    to: SocketAddr,
    host: &str,
    tls: &ClientTls,
    number: u64,
    options: &ClientOptions,
    runtime: &SharedRuntime,
) -> io::Result<(QuicConnection, HandshakeInfo, PeerCertificates)> {
    let any = match to.ip() {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = network.datagrams(SocketAddr::new(any, 0))?;
    let crypto = QuicClientConfig::try_from(tls.for_quic(host)?).map_err(io::Error::other)?;
    let mut config = quinn::ClientConfig::new(Arc::new(crypto));
    config.transport_config(Arc::new(QuicOptions::client_transport(options)));
    let endpoint = quinn::Endpoint::new_with_abstract_socket(
        options.quic.endpoint(format_args!("client {number}")),
        None,
        socket,
        QuicRuntime::shared(runtime),
    )?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let connecting = endpoint.connect_with(config, to, host);
    let connecting =
        connecting.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let connection = connecting.await?;
    let agreed = HandshakeInfo {
        protocol: Some(Protocol::Http3),
        version: Some(rustls::ProtocolVersion::TLSv1_3),
        // quinn does not tell these.
        suite: None,
        resumed: false,
        is_acme_challenge: false,
    };
    let shown = connection
        .peer_identity()
        .and_then(|shown| shown.downcast::<Vec<CertificateDer<'static>>>().ok())
        .map_or_else(
            || PeerCertificates::from([]),
            |shown| PeerCertificates::from(*shown),
        );
    let quic = QuicConnection {
        connection,
        endpoint,
    };
    Ok((quic, agreed, shown))
}

/// A server's end of QUIC: one socket, and the connections that come by it.
#[derive(Clone, Debug)]
pub struct QuicEndpoint {
    endpoint: quinn::Endpoint,
}

impl QuicEndpoint {
    /// Takes connections at `socket`. Of `options` it uses what all connections share; the rest is
    /// [`serve_quic`](crate::serve::serve_quic)'s.
    ///
    /// # Errors
    ///
    /// A socket that does not know its address, or TLS without what QUIC needs (version 1.3, AES-128-GCM).
    pub fn new(
        socket: DatagramSocket,
        tls: &ServerTls,
        options: &ServerOptions,
        runtime: &SharedRuntime,
    ) -> io::Result<Self> {
        let crypto = QuicServerConfig::try_from(tls.for_quic()?).map_err(io::Error::other)?;
        let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
        config
            .transport_config(Arc::new(QuicOptions::server_transport(options)))
            .max_incoming(MAX_INCOMING)
            .incoming_buffer_size(INCOMING_BYTES.0)
            .incoming_buffer_size_total(INCOMING_BYTES.1);
        let name = socket.local_addr()?;
        let endpoint = quinn::Endpoint::new_with_abstract_socket(
            options.quic.endpoint(format_args!("server {name}")),
            Some(config),
            socket,
            QuicRuntime::shared(runtime),
        )?;
        Ok(Self { endpoint })
    }

    /// Where it takes connections.
    ///
    /// # Errors
    ///
    /// The socket does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.endpoint.local_addr()
    }

    /// The next client; `None` when the endpoint is closed.
    pub async fn accept(&self) -> Option<QuicIncoming> {
        let incoming = self.endpoint.accept().await?;
        Some(QuicIncoming { incoming })
    }

    /// Takes no new connections; those that stand go on.
    pub fn stop_accepting(&self) {
        self.endpoint.set_server_config(None);
    }

    /// Completes when the last connection has ended, its last packets sent.
    pub async fn drained(&self) {
        self.endpoint.wait_idle().await;
    }
}

/// A client whose first packet came.
#[derive(Debug)]
pub struct QuicIncoming {
    incoming: quinn::Incoming,
}

impl QuicIncoming {
    /// Where the packet says that it comes from; see [`is_address_validated`](Self::is_address_validated).
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.incoming.remote_address()
    }

    /// Whether the client has shown that it receives what is sent there.
    #[must_use]
    pub fn is_address_validated(&self) -> bool {
        self.incoming.remote_address_validated()
    }

    /// Asks for that proof, which costs an honest client a round trip (RFC 9000 §8.1.2).
    pub fn retry(self) {
        if let Err(proven) = self.incoming.retry() {
            proven.into_incoming().refuse();
        }
    }

    /// Says no.
    pub fn refuse(self) {
        self.incoming.refuse();
    }

    /// Shakes hands.
    ///
    /// # Errors
    ///
    /// No common version, protocol or cipher, or a client that left.
    pub(crate) async fn accept(self) -> Result<quinn::Connection, ConnectionError> {
        let accepted = async { self.incoming.accept()?.await };
        let failed = |error: quinn::ConnectionError| ConnectionError::Http3 {
            why: format!("QUIC: {error}"),
            abuse: false,
        };
        accepted.await.map_err(failed)
    }
}

/// Our runtime as quinn wants one. quinn only compares and adds instants, so any fixed origin will do.
#[derive(Debug)]
struct QuicRuntime {
    runtime: SharedRuntime,
    origin: SystemInstant,
}

impl QuicRuntime {
    fn shared(runtime: &SharedRuntime) -> Arc<dyn quinn::Runtime> {
        Arc::new(Self {
            runtime: runtime.clone(),
            origin: SystemInstant::now(),
        })
    }
}

impl quinn::Runtime for QuicRuntime {
    fn new_timer(&self, at: SystemInstant) -> Pin<Box<dyn quinn::AsyncTimer>> {
        let mut timer = QuicTimer {
            runtime: self.runtime.clone(),
            origin: self.origin,
            sleep: Box::pin(std::future::pending()),
        };
        timer.set_to(at);
        Box::pin(timer)
    }

    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.runtime.spawn(task);
    }

    fn wrap_udp_socket(
        &self,
        _: std::net::UdpSocket,
    ) -> io::Result<Arc<dyn quinn::AsyncUdpSocket>> {
        let why = "sockets come from the network, not from the runtime";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    fn now(&self) -> SystemInstant {
        self.origin + (self.runtime.now() - Instant::ZERO)
    }
}

struct QuicTimer {
    runtime: SharedRuntime,
    origin: SystemInstant,
    sleep: BoxFuture<()>,
}

impl QuicTimer {
    fn set_to(&mut self, at: SystemInstant) {
        let at = Instant::ZERO + at.saturating_duration_since(self.origin);
        self.sleep = self.runtime.sleep_until(at);
    }
}

impl quinn::AsyncTimer for QuicTimer {
    fn reset(mut self: Pin<&mut Self>, at: SystemInstant) {
        self.set_to(at);
    }

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.sleep.as_mut().poll(cx)
    }
}

impl fmt::Debug for QuicTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunTimer")
    }
}
