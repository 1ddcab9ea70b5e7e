//! What `spdy accelerate` does with one connection of a client.

use std::net::UdpSocket;
use std::sync::Arc;

use futures_util::future::{Either, select};
use http::HeaderValue;
use spdy::runtime::SharedRuntime;
use spdy_acme::challenge::Http01Tokens;
use spdy_acme::http01::Http01Handler;
use spdy_net::admission::Conduct;
use spdy_net::connection_slot::ConnectionSlot;
use spdy_net::error::ConnectionError;
use spdy_net::handler::Handler;
use spdy_net::latch::Latch;
use spdy_net::listen::quic::QuicListener;
use spdy_net::listen::trusted_proxies::ClientInfo;
use spdy_net::listen::{ListenOptions, Listener};
use spdy_net::network::BoxIo;
use spdy_net::protocol::Protocol;
use spdy_net::quic::QuicIncoming;
use spdy_net::serve::ServerOptions;
use spdy_net::tls::ServerTls;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::response::server_timing::SharedTiming;
use spdy_proxy::serve::connection::ConnectionHandler;
use spdy_proxy::telemetry::access_log::AccessLog;

use crate::commands::serve_listen::{self, BoundListener};

/// What a connection is served with. It fits any listener until [`at`](Self::at) makes it specific to one.
#[derive(Clone)]
pub(super) struct ConnectionContext {
    pub(super) proxy: Arc<Proxy>,
    pub(super) protocols: Vec<Protocol>,
    pub(super) tls: Option<ServerTls>,
    pub(super) options: ServerOptions,
    pub(super) runtime: SharedRuntime,
    pub(super) stop: Latch,
    /// Set when connections are dropped that have not ended in time after the stop.
    pub(super) cut_off: Latch,
    pub(super) alt_svc: Option<HeaderValue>,
    pub(super) log: Option<AccessLog>,
    pub(super) timing: SharedTiming,
    /// Responses for http-01 challenges, on listeners without TLS.
    pub(super) tokens: Option<Http01Tokens>,
}

impl ConnectionContext {
    /// The context for the listener `door`.
    pub(super) fn at(&self, door: &BoundListener) -> Self {
        let is_tls = door.info.tls;
        Self {
            tls: self.tls.clone().filter(|_| is_tls),
            alt_svc: door.alt_svc(),
            tokens: self.tokens.clone().filter(|_| !is_tls),
            ..self.clone()
        }
    }

    fn handler(&self, from: ClientInfo, alt_svc: Option<HeaderValue>) -> Arc<ConnectionHandler> {
        let visit = ConnectionHandler::new(self.proxy.clone(), Some(from.address.ip()), alt_svc);
        let visit = visit
            .with_access_log(self.log.clone())
            .timing(self.timing.clone())
            .with_cutoff(self.cut_off.clone());
        Arc::new(visit)
    }

    async fn serve_tcp(self, io: BoxIo, from: ClientInfo, seat: ConnectionSlot) -> Conduct {
        let visit: Arc<dyn Handler> = self.handler(from, self.alt_svc.clone());
        let visit = match &self.tokens {
            Some(tokens) => Arc::new(Http01Handler::new(tokens.clone(), visit)),
            None => visit,
        };
        let options = ServerOptions {
            is_tls: from.is_tls,
            slot: seat,
            ..self.options
        };
        let (protocols, tls) = (&self.protocols, self.tls.as_ref());
        conduct(
            spdy_net::serve::serve_connection(
                io,
                visit,
                protocols,
                tls,
                &options,
                &self.runtime,
                &self.stop,
            )
            .await,
        )
    }

    /// Serves the connections that `listener` accepts, until the stop.
    pub(super) async fn listen_for_tcp(self, listener: Listener, options: ListenOptions) {
        let stop = self.stop.clone();
        let serve = move |io, from, seat| self.clone().serve_tcp(io, from, seat);
        listener.run(options, stop, serve).await;
    }

    /// The same over QUIC.
    pub(super) async fn listen_for_quic(self, listener: QuicListener, options: ListenOptions) {
        let stop = self.stop.clone();
        let serve = move |incoming, from, seat| self.clone().serve_quic(incoming, from, seat);
        listener.run(options, stop, serve).await;
    }

    /// The same over `socket`, after another program stops reading it.
    pub(super) async fn serve_quic_after_handover(
        self,
        socket: UdpSocket,
        free: Latch,
        options: ListenOptions,
    ) {
        let Either::Left(_) = select(free.wait(), self.stop.wait()).await else {
            return;
        };
        let tls = self.tls.as_ref().expect("a door of UDP has TLS");
        match serve_listen::quic(socket, tls, &self.options, &self.runtime) {
            Ok(listener) => self.listen_for_quic(listener, options).await,
            Err(error) => tracing::error!(%error, "nobody listens for h3"),
        }
    }

    async fn serve_quic(
        self,
        incoming: QuicIncoming,
        from: ClientInfo,
        seat: ConnectionSlot,
    ) -> Conduct {
        let visit = self.handler(from, None);
        let options = ServerOptions {
            slot: seat,
            ..self.options
        };
        let served =
            spdy_net::serve::serve_quic(incoming, visit, &options, &self.runtime, &self.stop);
        conduct(served.await)
    }
}

/// What is remembered of a client by how its connection ended.
pub(super) fn conduct(served: Result<(), ConnectionError>) -> Conduct {
    match served {
        Err(error) if error.is_abuse() => Conduct::Abusive,
        _ => Conduct::Fair,
    }
}
