//! The server's side of QUIC: one socket with all its connections.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use quinn::crypto::rustls::QuicServerConfig;
use spdy::runtime::SharedRuntime;
use spdy_net_core::congestion::RememberedWindows;
use spdy_net_core::error::ConnectionError;
use spdy_net_core::network::DatagramSocket;
use spdy_net_core::options::ServerOptions;
use spdy_net_core::tls::ServerTls;

use crate::quic::recorded_windows::RecordedWindows;
use crate::quic::runtime::QuicRuntime;
use crate::quic::socket::QuicSocket;
use crate::quic::transport::{endpoint_config, server_transport};

/// Limit of clients whose first packet arrived and that were not admitted yet; more are refused.
const MAX_INCOMING: usize = 1024;
/// Limit of bytes that each of them may send until then, and of all together.
const INCOMING_BYTES: (u64, u64) = (16 * 1024, 4 * 1024 * 1024);

/// A server's QUIC endpoint: one socket with all its connections.
#[derive(Clone, Debug)]
pub struct QuicEndpoint {
    endpoint: quinn::Endpoint,
    config: Arc<quinn::ServerConfig>,
}

impl QuicEndpoint {
    /// Accepts connections at `socket`. Only those `options` are used that all connections share;
    /// [`serve_quic`](crate::serve::serve_quic) uses the others.
    ///
    /// # Errors
    ///
    /// The socket does not report its address, or TLS does not support QUIC (version 1.3, AES-128-GCM).
    pub fn new(
        socket: DatagramSocket,
        tls: &ServerTls,
        options: &ServerOptions,
        runtime: &SharedRuntime,
    ) -> io::Result<Self> {
        let crypto = QuicServerConfig::try_from(tls.for_quic()?).map_err(io::Error::other)?;
        let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
        config
            .transport_config(Arc::new(server_transport(options)))
            .max_incoming(MAX_INCOMING)
            .incoming_buffer_size(INCOMING_BYTES.0)
            .incoming_buffer_size_total(INCOMING_BYTES.1);
        let name = socket.local_addr()?;
        let endpoint = quinn::Endpoint::new_with_abstract_socket(
            endpoint_config(&options.quic, format_args!("server {name}")),
            Some(config.clone()),
            QuicSocket::shared(socket),
            QuicRuntime::shared(runtime),
        )?;
        let config = Arc::new(config);
        Ok(Self { endpoint, config })
    }

    /// The local address.
    ///
    /// # Errors
    ///
    /// The socket does not report its address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.endpoint.local_addr()
    }

    /// The next client; `None` when the endpoint is closed.
    pub async fn accept(&self) -> Option<QuicIncoming> {
        let incoming = self.endpoint.accept().await?;
        Some(QuicIncoming {
            incoming,
            config: self.config.clone(),
            windows: None,
        })
    }

    /// Accepts no new connections; open ones continue.
    pub fn stop_accepting(&self) {
        self.endpoint.set_server_config(None);
    }

    /// Completes when the last connection has ended, and its last packets were sent.
    pub async fn drained(&self) {
        self.endpoint.wait_idle().await;
    }
}

fn handshake_error(error: &quinn::ConnectionError) -> ConnectionError {
    ConnectionError::Http3 {
        reason: format!("QUIC: {error}"),
        abuse: false,
    }
}

/// A connection whose handshake has begun.
pub(crate) struct AcceptedConnection<H> {
    pub(crate) connection: quinn::Connection,
    /// Completes with the handshake.
    pub(crate) handshake: H,
    /// To be dropped when the connection has ended.
    pub(crate) recorded: Option<RecordedWindows>,
}

/// A client whose first packet arrived.
#[derive(Debug)]
pub struct QuicIncoming {
    incoming: quinn::Incoming,
    /// The configuration of its endpoint.
    config: Arc<quinn::ServerConfig>,
    windows: Option<RememberedWindows>,
}

impl QuicIncoming {
    /// The source address of the packet; see [`is_address_validated`](Self::is_address_validated).
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.incoming.remote_address()
    }

    /// True if the client has proved that it receives packets at this address.
    #[must_use]
    pub fn is_address_validated(&self) -> bool {
        self.incoming.remote_address_validated()
    }

    /// Starts the connection with the congestion window of earlier ones, and records what it reaches.
    #[must_use]
    pub fn with_windows(mut self, windows: Option<RememberedWindows>) -> Self {
        self.windows = windows;
        self
    }

    /// Sends a Retry to validate the address, which costs the client a round trip (RFC 9000 §8.1.2).
    pub fn retry(self) {
        if let Err(proven) = self.incoming.retry() {
            proven.into_incoming().refuse();
        }
    }

    /// Refuses the connection.
    pub fn refuse(self) {
        self.incoming.refuse();
    }

    /// Begins the handshake. The connection can send before the handshake is complete ("0.5-RTT"), to a client that is not
    /// authenticated yet. If the client's first message has several packets, quinn opens no stream before the handshake is complete.
    ///
    /// # Errors
    ///
    /// There is no common version, protocol or cipher, or the client left.
    pub(crate) fn accept(
        self,
        options: &ServerOptions,
    ) -> Result<
        AcceptedConnection<impl Future<Output = Result<(), ConnectionError>> + Send + use<>>,
        ConnectionError,
    > {
        let client = self.address().ip();
        let packets = self.windows.as_ref().map(|it| it.initial_window(client));
        let connecting = match packets {
            Some(packets) if packets > options.quic.initial_window => {
                let mut config = quinn::ServerConfig::clone(&self.config);
                let mut options = options.clone();
                options.quic.initial_window = packets;
                config.transport_config(Arc::new(server_transport(&options)));
                self.incoming.accept_with(Arc::new(config))
            }
            _ => self.incoming.accept(),
        };
        let connecting = connecting.map_err(|error| handshake_error(&error))?;
        let (connection, shaken) = connecting
            .into_0rtt()
            .map_err(|_| handshake_error(&quinn::ConnectionError::Reset))?; // never for a server
        let shaking = connection.clone();
        let handshake = async move {
            shaken.await;
            match shaking.close_reason() {
                None => Ok(()),
                Some(error) => Err(handshake_error(&error)),
            }
        };
        let windows = self.windows;
        Ok(AcceptedConnection {
            recorded: windows.map(|windows| RecordedWindows::new(windows, connection.clone())),
            connection,
            handshake,
        })
    }
}
