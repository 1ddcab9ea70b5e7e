//! Serves one client connection of `spdy accelerate`.

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
use spdy_proxy::telemetry::shared_access_log::SharedAccessLog;
use spdy_service::listen::{self, BoundListener};

/// The context in which a connection is served. It fits any listener until [`at`](Self::at) makes it specific to one.
#[derive(Clone)]
pub(crate) struct ConnectionContext {
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) protocols: Vec<Protocol>,
    pub(crate) tls: Option<ServerTls>,
    pub(crate) options: ServerOptions,
    pub(crate) runtime: SharedRuntime,
    pub(crate) stop: Latch,
    /// Set when connections are dropped that have not ended in time after the stop.
    pub(crate) cut_off: Latch,
    pub(crate) alt_svc: Option<HeaderValue>,
    pub(crate) log: SharedAccessLog,
    pub(crate) timing: SharedTiming,
    /// Responses for http-01 challenges, on listeners without TLS.
    pub(crate) tokens: Option<Http01Tokens>,
}

impl ConnectionContext {
    /// The context for the listener `bound`.
    pub(crate) fn at(&self, bound: &BoundListener) -> Self {
        let is_tls = bound.info.tls;
        Self {
            tls: self.tls.clone().filter(|_| is_tls),
            alt_svc: bound.alt_svc(),
            tokens: self.tokens.clone().filter(|_| !is_tls),
            ..self.clone()
        }
    }

    fn handler(&self, from: ClientInfo, alt_svc: Option<HeaderValue>) -> Arc<ConnectionHandler> {
        let handler = ConnectionHandler::new(self.proxy.clone(), Some(from.address.ip()), alt_svc);
        let handler = handler
            .with_access_log(self.log.clone())
            .timing(self.timing.clone())
            .with_cutoff(self.cut_off.clone());
        Arc::new(handler)
    }

    async fn serve_tcp(self, io: BoxIo, from: ClientInfo, slot: ConnectionSlot) -> Conduct {
        let handler: Arc<dyn Handler> = self.handler(from, self.alt_svc.clone());
        let handler = match &self.tokens {
            Some(tokens) => Arc::new(Http01Handler::new(tokens.clone(), handler)),
            None => handler,
        };
        let mut options = self.options;
        options.is_tls = from.is_tls;
        options.slot = slot;
        let (protocols, tls) = (&self.protocols, self.tls.as_ref());
        conduct(
            spdy_net::serve::serve_connection(
                io,
                handler,
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
    pub(crate) async fn listen_for_tcp(self, listener: Listener, options: ListenOptions) {
        let stop = self.stop.clone();
        let serve = move |io, from, slot| self.clone().serve_tcp(io, from, slot);
        listener.run(options, stop, serve).await;
    }

    /// The same over QUIC.
    pub(crate) async fn listen_for_quic(self, listener: QuicListener, options: ListenOptions) {
        let stop = self.stop.clone();
        let serve = move |incoming, from, slot| self.clone().serve_quic(incoming, from, slot);
        listener.run(options, stop, serve).await;
    }

    /// The same over `socket`, after another program stops reading it.
    pub(crate) async fn serve_quic_after_handover(
        self,
        socket: UdpSocket,
        free: Latch,
        options: ListenOptions,
    ) {
        let Either::Left(_) = select(free.wait(), self.stop.wait()).await else {
            return;
        };
        let tls = self.tls.as_ref().expect("a UDP listener has TLS");
        match listen::quic(socket, tls, &self.options, &self.runtime) {
            Ok(listener) => self.listen_for_quic(listener, options).await,
            Err(error) => tracing::error!(%error, "cannot accept connections over HTTP/3"),
        }
    }

    async fn serve_quic(
        self,
        incoming: QuicIncoming,
        from: ClientInfo,
        slot: ConnectionSlot,
    ) -> Conduct {
        let handler = self.handler(from, None);
        let mut options = self.options;
        options.slot = slot;
        let served =
            spdy_net::serve::serve_quic(incoming, handler, &options, &self.runtime, &self.stop);
        conduct(served.await)
    }
}

/// The conduct of a client, by how its connection ended.
pub(crate) fn conduct(served: Result<(), ConnectionError>) -> Conduct {
    match served {
        Err(error) if error.is_abuse() => Conduct::Abusive,
        _ => Conduct::Fair,
    }
}
