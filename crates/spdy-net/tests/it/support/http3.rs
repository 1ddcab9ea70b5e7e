//! A server of HTTP/3 at a port of loopback.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use spdy::runtime::SharedRuntime;
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::handler::Handler;
use spdy_net::latch::Latch;
use spdy_net::listen::ListenOptions;
use spdy_net::listen::quic::QuicListener;
use spdy_net::network::{Network, SystemNetwork};
use spdy_net::protocol::Protocol;
use spdy_net::quic;
use spdy_net::serve::{ServerOptions, serve_quic};
use spdy_net::tls::certificates::{KeyKind, LocalCa};
use spdy_net::tls::verify::Trust;
use spdy_net::tls::{ClientTls, ServerTls};

use super::{runtime, without_key_log};

const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A server at a port of loopback, and what a client needs to reach it.
pub(crate) struct TestServer {
    ca: LocalCa,
    address: SocketAddr,
}

impl TestServer {
    pub(crate) fn serve(handler: impl Handler) -> Self {
        Self::listen(runtime(), handler, ListenOptions::default())
    }

    /// Serves in the time of `runtime`, with `listen` as the options of the listener.
    pub(crate) fn listen(
        runtime: SharedRuntime,
        handler: impl Handler,
        listen: ListenOptions,
    ) -> Self {
        let ca = LocalCa::generate(KeyKind::EcdsaP256).unwrap();
        let identity = ca.issue(&["localhost".to_owned()], &[]).unwrap();
        let tls = ServerTls::new(&identity, &Protocol::ALL, &without_key_log()).unwrap();
        let options = ServerOptions::default();
        let listener = QuicListener::bind(LOOPBACK, &tls, &options, &runtime).unwrap();
        let (address, stop) = (listener.address(), Latch::new());
        let (handler, until): (Arc<dyn Handler>, _) = (Arc::new(handler), stop.clone());
        tokio::spawn(listener.run(listen, stop, move |incoming, _, slot| {
            let (handler, runtime, until) = (handler.clone(), runtime.clone(), until.clone());
            let mut options = options.clone();
            options.slot = slot;
            async move {
                let _ = serve_quic(incoming, handler, &options, &runtime, &until).await;
            }
        }));
        Self { ca, address }
    }

    pub(crate) async fn connect(&self, options: ClientOptions) -> Connection {
        self.connect_over(&SystemNetwork, options).await
    }

    /// Connects with a socket of `network`.
    pub(crate) async fn connect_over(
        &self,
        network: &dyn Network,
        options: ClientOptions,
    ) -> Connection {
        let trust = Trust::only(vec![self.ca.certificate().clone()]);
        let (tls, runtime) = (
            ClientTls::new(&trust, &without_key_log()).unwrap(),
            runtime(),
        );
        let to = self.address;
        let connecting = quic::connect(network, to, "localhost", &tls, 0, &options, &runtime);
        let (quic, negotiated, _) = connecting.await.unwrap();
        assert_eq!(negotiated.protocol, Some(Protocol::Http3));
        Connection::start_http3(quic, 0, &options, &runtime)
    }
}
