//! An accelerator between pipes in memory, in virtual time: a client's connection on one side, an origin's on the other.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::handler::Handler;
use spdy_net::latch::Latch;
use spdy_net::network::{BoxIo, Network, SharedNetwork};
use spdy_net::protocol::Protocol;
use spdy_net::serve::{ServerOptions, serve_connection};
use spdy_net::wall_clock::WallClock;
use spdy_proxy::config::Config;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::serve::connection::ConnectionHandler;
use spdy_proxy::sites::site_table::Sites;
use spdy_proxy::upstream::client::Upstream;
use spdy_rewrite::rules::capability::Keys;
use spdy_testkit::clock::Clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Bytes that a pipe holds.
pub(crate) const PIPE_BYTES: usize = 16 * 1024;
/// How long a test waits for what must come, by its clock.
const PATIENCE: Duration = Duration::from_secs(600);

/// All names lead to one origin, which takes each connection as a pipe, or to none.
struct Pipes(mpsc::UnboundedSender<DuplexStream>);

impl Network for Pipes {
    fn resolve(&self, _: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![IpAddr::V4(Ipv4Addr::new(192, 0, 2, 80))]) })
    }

    fn connect(&self, _: SocketAddr) -> BoxFuture<io::Result<BoxIo>> {
        let (near, far) = duplex(PIPE_BYTES);
        let result = self.0.send(far);
        Box::pin(async move {
            result.map_err(|_| io::ErrorKind::ConnectionRefused)?;
            Ok(Box::new(near) as BoxIo)
        })
    }
}

/// The accelerator, and the connections that its origin gets.
pub(crate) struct Between {
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) origin: mpsc::UnboundedReceiver<DuplexStream>,
    pub(crate) stop: Latch,
    pub(crate) clock: Clock,
    pub(crate) runtime: SharedRuntime,
}

impl Between {
    /// For `www.site.test`; `more` is the rest of its configuration, up to the keys of that site.
    pub(crate) fn start(more: &str) -> Self {
        let site = "[[site]]\nnames = ['www.site.test']\norigin = 'http://origin.test:8000'\n";
        let text = match more.split_once("---") {
            Some((before, of_site)) => [before, site, of_site].concat(),
            None => [more, site].concat(),
        };
        let config = Config::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let keys = Keys::from_secrets(&[7; 32], None).expect("the secret is long enough");
        let sites = Sites::compile(&config, &keys).expect("valid sites");
        let clock = Clock::default();
        let runtime = SharedRuntime::new(clock.clone());
        let (connections, origin) = mpsc::unbounded_channel();
        let network: SharedNetwork = Arc::new(Pipes(connections));
        let guarded = network.clone();
        let upstream = Upstream::new(&config.upstream, None, &sites, network, guarded, &runtime);
        let proxy = Proxy::new(
            sites,
            upstream,
            &config.cache,
            &config.learn,
            runtime.clone(),
            WallClock::FromEpoch(clock.wall_now()),
        );
        Self {
            proxy,
            origin,
            stop: Latch::new(),
            clock,
            runtime,
        }
    }

    /// A client's connection, and the serving of it.
    pub(crate) fn client(&self) -> (DuplexStream, JoinHandle<()>) {
        self.client_by(Protocol::Http1, ServerOptions::default())
    }

    /// The same of a client that speaks `protocol`.
    pub(crate) fn client_by(
        &self,
        protocol: Protocol,
        options: ServerOptions,
    ) -> (DuplexStream, JoinHandle<()>) {
        let from = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        self.client_at(from, protocol, options)
    }

    /// The same of a client at `from`.
    pub(crate) fn client_at(
        &self,
        from: IpAddr,
        protocol: Protocol,
        options: ServerOptions,
    ) -> (DuplexStream, JoinHandle<()>) {
        let (near, far) = duplex(PIPE_BYTES);
        let from = Some(from);
        let visit = Arc::new(ConnectionHandler::new(self.proxy.clone(), from, None));
        let (runtime, stop) = (self.runtime.clone(), self.stop.clone());
        let serving = tokio::spawn(async move {
            let (io, protocols) = (Box::new(far) as BoxIo, [protocol]);
            let served = serve_connection(io, visit, &protocols, None, &options, &runtime, &stop);
            let _ = served.await;
        });
        (near, serving)
    }

    /// Answers all later requests to the origin with `handler`.
    pub(crate) fn serve_origin(&mut self, handler: impl Handler) {
        self.serve_origin_by(Protocol::Http1, handler);
    }

    /// The same of an origin that speaks only `protocol`, without TLS.
    pub(crate) fn serve_origin_by(&mut self, protocol: Protocol, handler: impl Handler) {
        self.serve_origin_with(protocol, ServerOptions::default(), handler);
    }

    /// The same of an origin with `options`.
    pub(crate) fn serve_origin_with(
        &mut self,
        protocol: Protocol,
        options: ServerOptions,
        handler: impl Handler,
    ) {
        let mut connections = std::mem::replace(&mut self.origin, mpsc::unbounded_channel().1);
        let (handler, runtime, stop) = (Arc::new(handler), self.runtime.clone(), self.stop.clone());
        tokio::spawn(async move {
            while let Some(io) = connections.recv().await {
                let (handler, runtime, stop) = (handler.clone(), runtime.clone(), stop.clone());
                let options = options.clone();
                tokio::spawn(async move {
                    let io = Box::new(io) as BoxIo;
                    let protocols = [protocol];
                    let served =
                        serve_connection(io, handler, &protocols, None, &options, &runtime, &stop);
                    let _ = served.await;
                });
            }
        });
    }

    /// A client's connection by `protocol`, over which a test sends requests.
    pub(crate) async fn connection(&self, protocol: Protocol) -> Connection {
        self.connection_from(1, protocol).await
    }

    /// The same of a client whose address ends with `from`.
    pub(crate) async fn connection_from(&self, from: u8, protocol: Protocol) -> Connection {
        let mut server = ServerOptions::default();
        server.spdy.send_trailers = true;
        let from = IpAddr::V4(Ipv4Addr::new(192, 0, 2, from));
        let (io, _) = self.client_at(from, protocol, server);
        let (io, options): (BoxIo, _) = (Box::new(io), ClientOptions::default());
        let connection = Connection::start(io, protocol, 0, &options, &self.runtime).await;
        connection.expect("a connection")
    }

    /// The next connection to the origin.
    pub(crate) async fn next_connection(&mut self) -> DuplexStream {
        self.origin.recv().await.expect("a request arrives")
    }

    /// The output of `waited` while time advances, and how long it took.
    pub(crate) async fn wait<T>(&self, waited: impl Future<Output = T>) -> (T, Duration) {
        let begun = self.clock.wall_now();
        let mut waited = pin!(waited);
        for _ in 0..PATIENCE.as_secs() {
            let turning = pin!(self.clock.advance(Duration::from_secs(1)));
            if let Either::Left((output, _)) = select(waited.as_mut(), turning).await {
                let took = self.clock.wall_now().duration_since(begun);
                return (output, took.expect("the clock advances"));
            }
        }
        panic!("nothing came of it in {PATIENCE:?}");
    }

    /// The bytes that arrive within ten minutes, or all if the stream ends before.
    pub(crate) async fn read_available(&self, io: &mut DuplexStream) -> String {
        let mut received = Vec::new();
        {
            let reading = pin!(io.read_to_end(&mut received));
            select(reading, pin!(self.clock.advance(PATIENCE))).await;
        }
        String::from_utf8_lossy(&received).into_owned()
    }
}

/// Reads `io` up to a blank line.
pub(crate) async fn head(io: &mut DuplexStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(io.read_u8().await.expect("the head continues"));
    }
    String::from_utf8(head).expect("the text is UTF-8")
}

pub(crate) async fn write(io: &mut DuplexStream, text: &str) {
    io.write_all(text.as_bytes()).await.expect("the peer reads");
}
