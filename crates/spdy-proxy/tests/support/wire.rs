//! An accelerator between pipes in memory, in virtual time: a client's connection on one side, an origin's on the other.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use spdy::runtime::{BoxFuture, Runtime, SharedRuntime};
use spdy_clock::Instant;
use spdy_net::calendar::Calendar;
use spdy_net::latch::Latch;
use spdy_net::network::{BoxIo, Network, SharedNetwork};
use spdy_net::protocol::Protocol;
use spdy_net::serve::{ServerOptions, serve_connection};
use spdy_proxy::config::Config;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::sites::Sites;
use spdy_proxy::upstream::Upstream;
use spdy_proxy::visit::Visit;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Bytes that a pipe holds.
pub(crate) const PIPE_BYTES: usize = 16 * 1024;

/// tokio's clock, which stands still while a task has something to do.
#[derive(Debug)]
struct Paused(tokio::time::Instant);

impl Runtime for Paused {
    fn now(&self) -> Instant {
        Instant::ZERO + self.0.elapsed()
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()> {
        let deadline = self.0 + (deadline - Instant::ZERO);
        Box::pin(tokio::time::sleep_until(deadline))
    }

    fn spawn(&self, task: BoxFuture<()>) {
        drop(tokio::spawn(task));
    }
}

/// All names lead to one origin, which takes each connection as a pipe, or to none.
struct Pipes(mpsc::UnboundedSender<DuplexStream>);

impl Network for Pipes {
    fn resolve(&self, _: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![IpAddr::V4(Ipv4Addr::new(192, 0, 2, 80))]) })
    }

    fn connect(&self, _: SocketAddr) -> BoxFuture<io::Result<BoxIo>> {
        let (near, far) = duplex(PIPE_BYTES);
        let sent = self.0.send(far);
        Box::pin(async move {
            sent.map_err(|_| io::ErrorKind::ConnectionRefused)?;
            Ok(Box::new(near) as BoxIo)
        })
    }
}

/// The accelerator, and the connections that its origin gets.
pub(crate) struct Between {
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) origin: mpsc::UnboundedReceiver<DuplexStream>,
    pub(crate) stop: Latch,
    runtime: SharedRuntime,
}

impl Between {
    /// For `www.site.test`; `more` is the rest of its configuration, up to the keys of that site.
    pub(crate) fn start(more: &str) -> Self {
        let site = "[[site]]\nnames = ['www.site.test']\norigin = 'http://origin.test:8000'\n";
        let text = match more.split_once("---") {
            Some((before, of_site)) => [before, site, of_site].concat(),
            None => [more, site].concat(),
        };
        let config = Config::read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let sites = Sites::compile(&config, &[7; 32]).expect("good sites");
        let runtime = SharedRuntime::new(Paused(tokio::time::Instant::now()));
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
            Calendar::default(),
        );
        Self {
            proxy,
            origin,
            stop: Latch::new(),
            runtime,
        }
    }

    /// A client's connection, and the serving of it.
    pub(crate) fn client(&self) -> (DuplexStream, JoinHandle<()>) {
        let (near, far) = duplex(PIPE_BYTES);
        let from = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
        let visit = Arc::new(Visit::new(self.proxy.clone(), from, None));
        let (runtime, stop) = (self.runtime.clone(), self.stop.clone());
        let serving = tokio::spawn(async move {
            let (io, options) = (Box::new(far) as BoxIo, ServerOptions::default());
            let protocols = [Protocol::Http1];
            let served = serve_connection(io, visit, &protocols, None, &options, &runtime, &stop);
            let _ = served.await;
        });
        (near, serving)
    }

    /// The next connection to the origin.
    pub(crate) async fn asked(&mut self) -> DuplexStream {
        self.origin.recv().await.expect("it is asked")
    }
}

/// What stands in `io` up to a blank line.
pub(crate) async fn head(io: &mut DuplexStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(io.read_u8().await.expect("the head goes on"));
    }
    String::from_utf8(head).expect("text")
}

/// What comes within ten minutes; all there is if it ends before.
pub(crate) async fn what_comes(io: &mut DuplexStream) -> String {
    let mut got = Vec::new();
    let reading = io.read_to_end(&mut got);
    let _ = tokio::time::timeout(Duration::from_secs(600), reading).await;
    String::from_utf8_lossy(&got).into_owned()
}

pub(crate) async fn write(io: &mut DuplexStream, text: &str) {
    io.write_all(text.as_bytes()).await.expect("it is taken");
}
