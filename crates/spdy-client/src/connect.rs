//! Opens a connection to an origin: name, TCP, TLS, protocol, with the time of each phase.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_net::connection::Connection;
use spdy_net::negotiate;
use spdy_net::network::{BoxIo, SharedNetwork};
use spdy_net::protocol::Protocol;
use spdy_net::quic::{self, QuicConnection};
use spdy_net::tls::{ClientTls, HandshakeInfo, PeerCertificates};

use crate::answered_addresses::AnsweredAddresses;
use crate::config::Config;
use crate::dns::Dns;
use crate::error::{ConnectFailure, Error, TimeoutPhase};
use crate::origin::Origin;
use crate::pool::ConnectionId;
use crate::route::Route;
use crate::timing::Span;

/// The times of the phases of connecting.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Phases {
    pub(crate) dns: Option<Span>,
    pub(crate) connect: Option<Span>,
    pub(crate) tls: Option<Span>,
}

/// A new connection, with its times and its address.
pub(crate) struct EstablishedConnection {
    pub(crate) connection: Connection,
    pub(crate) phases: Phases,
    pub(crate) route: Route,
    /// Certificates of the server, if another origin might use the connection. `None` if they are not known yet.
    pub(crate) certificates: Option<PeerCertificates>,
}

/// A byte stream on which nothing was sent yet.
struct ByteConnection {
    io: BoxIo,
    address: SocketAddr,
    /// The result of the TLS handshake, and the server's certificates.
    tls: Option<(HandshakeInfo, PeerCertificates)>,
    /// Times, without that of the name lookup.
    phases: Phases,
}

/// The result of an attempt to connect.
pub(crate) enum ConnectOutcome {
    New(Box<EstablishedConnection>),
    /// An existing open connection.
    Shared(ConnectionId),
}

/// The protocol of a TLS connection, negotiated by ALPN from `offered`.
fn selected(
    origin: &Origin,
    handshake: HandshakeInfo,
    offered: &[Protocol],
) -> Result<Protocol, Error> {
    negotiate::client(handshake.protocol, offered).map_err(|error| Error::Connect {
        origin: origin.clone(),
        failure: ConnectFailure::NoProtocol,
        reason: error.to_string(),
    })
}

/// The parts of a client that are needed to connect.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) runtime: SharedRuntime,
    pub(crate) network: SharedNetwork,
    pub(crate) dns: Dns,
    /// With other TLS sessions than `config.tls`; created when it is first needed.
    pub(crate) tls_without_credentials: std::sync::Arc<OnceLock<ClientTls>>,
    /// Where early data may be sent.
    pub(crate) answered: AnsweredAddresses,
    pub(crate) config: std::sync::Arc<Config>,
}

impl Connector {
    /// Connects to `origin` within the configured timeout. `number` is the ID of the connection. `share` may find an open
    /// connection of another origin at one of the addresses.
    pub(crate) async fn connect(
        &self,
        origin: &Origin,
        number: u64,
        share: impl FnOnce(&[IpAddr]) -> Option<ConnectionId> + Send,
    ) -> Result<ConnectOutcome, Error> {
        let connecting = Box::pin(self.connect_untimed(origin, number, share));
        let Some(after) = self.config.connect_timeout else {
            return connecting.await;
        };
        let deadline = self.runtime.sleep_until(self.runtime.now() + after);
        match select(connecting, deadline).await {
            Either::Left((connected, _)) => connected,
            Either::Right(_) => Err(Error::TimedOut {
                phase: TimeoutPhase::Connection,
                origin: origin.clone(),
                after,
            }),
        }
    }

    async fn connect_untimed(
        &self,
        origin: &Origin,
        number: u64,
        share: impl FnOnce(&[IpAddr]) -> Option<ConnectionId> + Send,
    ) -> Result<ConnectOutcome, Error> {
        let failed = |failure, reason: String| Error::Connect {
            origin: origin.clone(),
            failure,
            reason,
        };
        let tls = match (&self.config.tls, origin.secure) {
            (Some(tls), true) if origin.without_credentials => {
                let other = &self.tls_without_credentials;
                Some(other.get_or_init(|| tls.with_own_sessions()))
            }
            (Some(tls), true) => Some(tls),
            (None, true) => return Err(Error::NoTls(origin.clone())),
            (_, false) if self.plain_protocol(origin).is_over_quic() => {
                return Err(Error::NoPlainQuic(origin.clone()));
            }
            (_, false) => None,
        };
        let (addresses, dns) = self.dns.resolve(origin).await;
        let addresses = addresses.map_err(|failure| failure.for_host(&origin.host))?;

        if let Some(other) = share(&addresses) {
            return Ok(ConnectOutcome::Shared(other));
        }

        let began = self.runtime.now();
        if let Some(tls) = tls.filter(|_| self.config.is_over_quic(&origin.host)) {
            let quic = self.connect_quic(origin, &addresses, number, tls).await;
            let ((quic, handshake, shown), address) = quic
                .map_err(|error| failed(ConnectFailure::of_transport(&error), error.to_string()))?;
            let options = &self.config.connection;
            return Ok(ConnectOutcome::New(Box::new(EstablishedConnection {
                connection: Connection::start_http3(quic, number, options, &self.runtime),
                phases: Phases {
                    dns,
                    // One handshake for TLS and QUIC.
                    connect: Some((began, self.runtime.now())),
                    tls: None,
                },
                route: Route {
                    protocol: Protocol::Http3,
                    address,
                    tls: Some(handshake),
                    shared: false,
                },
                // Those of a connection with early data are known later.
                certificates: Some(shown).filter(|it| self.config.ip_pooling && !it.is_empty()),
            })));
        }
        let tls = tls.map(|tls| tls.with_alpn(&Protocol::over_tcp(&self.config.protocols)));
        let ByteConnection {
            io,
            address,
            tls: secured,
            mut phases,
        } = self.open(origin, &addresses, tls.as_ref()).await?;
        phases.dns = dns;
        let (handshake, shown) = match secured {
            Some((handshake, shown)) => (Some(handshake), self.config.ip_pooling.then_some(shown)),
            None => (None, None),
        };
        let protocol = match handshake {
            Some(handshake) => selected(origin, handshake, &self.config.protocols)?,
            None => self.plain_protocol(origin),
        };
        let options = &self.config.connection;
        let connection = Connection::start(io, protocol, number, options, &self.runtime).await;
        let connection =
            connection.map_err(|error| failed(ConnectFailure::Protocol, error.to_string()))?;
        let route = Route {
            protocol,
            address,
            tls: handshake,
            shared: false,
        };
        Ok(ConnectOutcome::New(Box::new(EstablishedConnection {
            connection,
            phases,
            route,
            certificates: shown,
        })))
    }

    /// Connects to `origin` for HTTP/1.1 only. The connection is not shared.
    pub(crate) async fn connect_unpooled(&self, origin: &Origin) -> Result<BoxIo, Error> {
        let tls = match (&self.config.tls, origin.secure) {
            (Some(tls), true) => Some(tls.with_alpn(&[Protocol::Http1])),
            (None, true) => return Err(Error::NoTls(origin.clone())),
            (_, false) => None,
        };
        let (addresses, _) = self.dns.resolve(origin).await;
        let addresses = addresses.map_err(|failure| failure.for_host(&origin.host))?;
        let opened = self.open(origin, &addresses, tls.as_ref()).await?;
        if let Some((handshake, _)) = opened.tls {
            selected(origin, handshake, &[Protocol::Http1])?;
        }
        Ok(opened.io)
    }

    /// Connects by TCP to one of `addresses`, then by TLS if required.
    async fn open(
        &self,
        origin: &Origin,
        addresses: &[IpAddr],
        tls: Option<&ClientTls>,
    ) -> Result<ByteConnection, Error> {
        let failed = |failure, error: io::Error| Error::Connect {
            origin: origin.clone(),
            failure,
            reason: error.to_string(),
        };
        let began = self.runtime.now();
        let tcp = self.connect_any(addresses, origin.port, |to| self.network.connect(to));
        let (io, address) = tcp
            .await
            .map_err(|error| failed(ConnectFailure::of_transport(&error), error))?;
        let connected = self.runtime.now();
        let mut phases = Phases {
            connect: Some((began, connected)),
            ..Phases::default()
        };
        let (io, secured) = match tls {
            None => (io, None),
            Some(tls) => {
                let result = tls.connect_with_certificates(io, &origin.host).await;
                let (io, handshake, shown) =
                    result.map_err(|error| failed(ConnectFailure::of_tls(&error), error))?;
                phases.tls = Some((connected, self.runtime.now()));
                (io, Some((handshake, shown)))
            }
        };
        Ok(ByteConnection {
            io,
            address,
            tls: secured,
            phases,
        })
    }

    /// The protocol for `origin` without TLS.
    fn plain_protocol(&self, origin: &Origin) -> Protocol {
        let configured = self.config.host_protocols.get(&origin.host).copied();
        configured.unwrap_or(self.config.plain_protocol)
    }

    async fn connect_quic(
        &self,
        origin: &Origin,
        addresses: &[IpAddr],
        number: u64,
        tls: &ClientTls,
    ) -> io::Result<(
        (QuicConnection, HandshakeInfo, PeerCertificates),
        SocketAddr,
    )> {
        let answered = self.answered.take(origin, addresses);
        let first = answered.map(|address| address.ip());
        let others = addresses.iter().filter(|it| Some(**it) != first);
        let addresses: Vec<_> = first.iter().chain(others).copied().collect();
        let connect = |to| {
            let connector = self.clone();
            let (tls, host) = (tls.clone(), origin.host.clone());
            let connecting = async move {
                let (network, runtime) = (&*connector.network, &connector.runtime);
                let options = &connector.config.connection;
                if Some(to) == answered {
                    return quic::connect_early(network, to, &host, &tls, number, options, runtime)
                        .await;
                }
                quic::connect(network, to, &host, &tls, number, options, runtime).await
            };
            Box::pin(connecting) as BoxFuture<_>
        };
        let connecting = self.connect_any(&addresses, origin.port, connect);
        let (connected, address): ((QuicConnection, _, _), _) = connecting.await?;
        let (origin, answered) = (origin.clone(), self.answered.clone());
        match connected.0.pending_handshake() {
            None => answered.insert(origin, address),
            Some(handshake) => {
                let (timeout, runtime) = (self.config.connect_timeout, self.runtime.clone());
                self.runtime.spawn(Box::pin(async move {
                    if handshake.complete_within(timeout, &runtime).await {
                        answered.insert(origin, address);
                    }
                }));
            }
        }
        Ok((connected, address))
    }

    /// Connects to the first address that answers. The next address is tried when one fails or is slow.
    async fn connect_any<T>(
        &self,
        addresses: &[IpAddr],
        port: u16,
        connect: impl Fn(SocketAddr) -> BoxFuture<io::Result<T>>,
    ) -> io::Result<(T, SocketAddr)> {
        let mut attempts = FuturesUnordered::new();
        let mut rest = addresses.iter();
        let mut last_error = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        loop {
            if let Some(&address) = rest.next() {
                let to = SocketAddr::new(address, port);
                let attempt = connect(to);
                attempts.push(async move { attempt.await.map(|won| (won, to)) });
            } else if attempts.is_empty() {
                return Err(last_error);
            }
            let timeout = match rest.len() {
                0 => None,
                _ => Some(self.config.address_stagger),
            };
            loop {
                match self.with_timeout(timeout, attempts.next()).await {
                    None => break, // slow: also try the next address
                    Some(Some(Ok(won))) => return Ok(won),
                    Some(Some(Err(error))) => last_error = error,
                    Some(None) => break, // no attempt is in progress
                }
                if rest.len() > 0 {
                    break;
                }
            }
        }
    }

    /// The output of `waited`, or `None` after `timeout`.
    async fn with_timeout<F: Future + Unpin>(
        &self,
        timeout: Option<Duration>,
        waited: F,
    ) -> Option<F::Output> {
        let Some(timeout) = timeout else {
            return Some(waited.await);
        };
        let deadline = self.runtime.sleep_until(self.runtime.now() + timeout);
        match select(waited, deadline).await {
            Either::Left((output, _)) => Some(output),
            Either::Right(_) => None,
        }
    }
}
