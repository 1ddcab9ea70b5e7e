//! A world of servers in one process: names, addresses, and what answers there.

pub(crate) mod pool;
pub(crate) mod site;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use spdy::body::Body;
use spdy::runtime::{BoxFuture, SharedRuntime, TokioRuntime};
use spdy_net::handler::Handler;
use spdy_net::latch::Latch;
use spdy_net::network::{BoxIo, Network};
use spdy_net::protocol::Protocol;
use spdy_net::serve::{ServerOptions, serve_connection};
use spdy_net::tls::certificates::{KeyKind, LocalCa};
use spdy_net::tls::verify::Trust;
use spdy_net::tls::{ClientTls, KeyLogTarget, ServerTls, TlsOptions};

/// The server that accepts connections at an address.
type Acceptor = Arc<dyn Fn(BoxIo) + Send + Sync>;

#[derive(Clone, Default)]
pub(crate) struct World(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    names: BTreeMap<String, Vec<IpAddr>>,
    acceptors: BTreeMap<SocketAddr, Acceptor>,
    /// Names that were looked up, addresses that were connected to.
    look_ups: Vec<String>,
    connects: Vec<SocketAddr>,
    /// Held look-ups complete when this is set.
    hold: Option<Latch>,
}

pub(crate) fn runtime() -> SharedRuntime {
    SharedRuntime::new(TokioRuntime::start())
}

impl World {
    pub(crate) fn name(&self, name: &str, addresses: &[&str]) -> &Self {
        let addresses = addresses
            .iter()
            .map(|address| address.parse().unwrap())
            .collect();
        self.0
            .lock()
            .unwrap()
            .names
            .insert(name.to_owned(), addresses);
        self
    }

    pub(crate) fn accept_at(
        &self,
        at: &str,
        acceptor: impl Fn(BoxIo) + Send + Sync + 'static,
    ) -> &Self {
        self.0
            .lock()
            .unwrap()
            .acceptors
            .insert(at.parse().unwrap(), Arc::new(acceptor));
        self
    }

    /// A server of `handler` at `at`.
    pub(crate) fn server(
        &self,
        at: &str,
        protocols: &[Protocol],
        tls: Option<ServerTls>,
        stop: Latch,
        handler: impl Handler + Clone,
    ) -> &Self {
        let protocols = protocols.to_vec();
        self.accept_at(at, move |io| {
            let (handler, protocols) = (Arc::new(handler.clone()), protocols.clone());
            let (tls, stop) = (tls.clone(), stop.clone());
            tokio::spawn(async move {
                let options = ServerOptions::default();
                let runtime = runtime();
                let _ = serve_connection(
                    io,
                    handler,
                    &protocols,
                    tls.as_ref(),
                    &options,
                    &runtime,
                    &stop,
                )
                .await;
            });
        })
    }

    pub(crate) fn hold_look_ups(&self) -> Latch {
        let latch = Latch::new();
        self.0.lock().unwrap().hold = Some(latch.clone());
        latch
    }

    pub(crate) fn look_ups(&self) -> Vec<String> {
        self.0.lock().unwrap().look_ups.clone()
    }

    pub(crate) fn connects(&self) -> Vec<SocketAddr> {
        self.0.lock().unwrap().connects.clone()
    }
}

impl Network for World {
    fn resolve(&self, host: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        let mut state = self.0.lock().unwrap();
        state.look_ups.push(host.to_owned());
        let addresses = state.names.get(host).cloned();
        let hold = state.hold.clone();
        Box::pin(async move {
            if let Some(hold) = hold {
                hold.wait().await;
            }
            addresses.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such name"))
        })
    }

    fn connect(&self, to: SocketAddr) -> BoxFuture<io::Result<BoxIo>> {
        let mut state = self.0.lock().unwrap();
        state.connects.push(to);
        let acceptor = state.acceptors.get(&to).cloned();
        Box::pin(async move {
            let acceptor =
                acceptor.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionRefused))?;
            let (near, far) = tokio::io::duplex(64 * 1024);
            acceptor(Box::new(far));
            Ok(Box::new(near) as BoxIo)
        })
    }
}

/// The two sides of TLS for `a.test`.
pub(crate) fn tls_pair() -> (ServerTls, ClientTls) {
    let mut options = TlsOptions::default();
    options.key_log = KeyLogTarget::Disabled;
    let ca = LocalCa::generate(KeyKind::EcdsaP256).unwrap();
    let identity = ca.issue(&["a.test".to_owned()], &[]).unwrap();
    let server = ServerTls::new(&identity, &Protocol::ALL, &options).unwrap();
    let client = ClientTls::new(&Trust::only(vec![ca.certificate().clone()]), &options).unwrap();
    (server, client)
}

pub(crate) fn get(uri: &str) -> Request<Body> {
    Request::get(uri).body(Body::empty()).unwrap()
}

pub(crate) async fn read(response: Response<Body>) -> Result<Bytes, spdy::BoxError> {
    response.into_body().collect_up_to(1 << 26).await
}

/// `/N` gives N bytes.
pub(crate) async fn numbers(request: Request<Body>) -> Response<Body> {
    let len = request
        .uri()
        .path()
        .trim_start_matches('/')
        .parse()
        .unwrap_or(0);
    Response::new(Body::full(vec![b'x'; len]))
}
