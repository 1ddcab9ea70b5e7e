//! Origins, the accelerator and its clients in virtual time.

use std::net::SocketAddr;
use std::sync::Arc;

use spdy::runtime::{Runtime, SharedRuntime};
use spdy_client::client::Client;
use spdy_net::congestion::RememberedWindows;
use spdy_net::latch::Latch;
use spdy_net::quic::QuicEndpoint;
use spdy_net::serve::{serve_connection, serve_quic};
use spdy_net::tls::ServerTls;
use spdy_net::wall_clock::WallClock;
use spdy_netem::path::PathConfig;
use spdy_proxy::config::cache::CacheConfig;
use spdy_proxy::config::learn::LearnConfig;
use spdy_proxy::config::upstream::UpstreamConfig;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::serve::connection::ConnectionHandler;
use spdy_proxy::upstream::client::Upstream;
use spdy_server::serve::ServeConfig;

use crate::accelerator::{AcceleratedPage, Rewriting, site};
use crate::load::LoadDriver;
use crate::load::serve_page::serve_page;
use crate::load::{Load, Page, SiteClients, endpoints, tls};
use crate::network::Traffic;
use crate::network::{Acceptor, NetworkConfig, SimNetwork};
use crate::options::{Accelerator, Options, Push, RaceProtocol};
use crate::qlog::QlogRecorder;
use crate::runtime::SimRuntime;
use crate::runtime::{Executor, ExecutorLimits};
use crate::seed;

/// Bits per second behind the access link.
const BACKHAUL_BPS: u64 = 100_000_000;

/// The accelerator and the origins of a load.
struct AcceleratorNode<'a> {
    page: &'a Page,
    seen: &'a AcceleratedPage,
    protocol: RaceProtocol,
    options: &'a Options,
    runtime: SimRuntime,
    proxy: Arc<Proxy>,
    serve: ServeConfig,
}

/// Like [`load()`](crate::load::load), with the accelerator of `options`.
pub(crate) fn load(
    page: &Page,
    protocol: RaceProtocol,
    network_name: &str,
    network: &NetworkConfig,
    options: &Options,
    seed: u64,
) -> Load {
    let executor = Executor::new(ExecutorLimits::default());
    let runtime = executor.runtime();
    let shared = SharedRuntime::new(runtime.clone());
    let qlogs = QlogRecorder::default();
    let clients_of = |loaded: &Page, access: &SimNetwork, seed, qlog: Option<_>| {
        SiteClients::new(loaded, options, |number| {
            let mut config = page.client_config(protocol, options);
            config.connection.qlog = qlog.clone();
            let seed = endpoints::client_seed(seed, number);
            config.connection.quic = endpoints::quic(&network.client_tcp, seed);
            Client::new(shared.clone(), Arc::new(access.clone()), config)
        })
    };
    let access = SimNetwork::new(runtime.clone(), network.clone(), seed);
    let seen = match page.accelerated(Rewriting {
        secure: protocol.is_secure(),
        paper_urls: options.paper_urls,
        knows_stylesheets: options.accelerator.is_warm(),
    }) {
        Ok(seen) => seen,
        Err(reason) => {
            let clients = clients_of(page, &access, seed, None);
            let tab = LoadDriver::new(page, protocol, options, &clients, &runtime);
            return tab.into_load(network_name, seed, Err(reason.clone()), &Traffic::default());
        }
    };
    let qlog = options.qlog.then(|| qlogs.files());
    let clients = clients_of(&seen.page, &access, seed, qlog);
    let mut serve = endpoints::server(protocol, protocol.wire_protocol(), options);
    serve.tls = serve.tls.map(ServerTls::with_dynamic_record_size);
    serve.options.http2_push = options.push != Push::No;
    serve.options.quic = endpoints::quic(&network.server_tcp, seed);
    let stage = AcceleratorNode {
        page,
        seen,
        protocol,
        options,
        runtime: runtime.clone(),
        proxy: accelerator(page, seen, options, network, &runtime, seed),
        serve,
    };
    let windows =
        (options.accelerator == Accelerator::Known).then(|| RememberedWindows::new(shared.clone()));
    stage.open(&access, seed, windows.as_ref());
    // The earlier client is as near as possible: the duration of its load does not matter.
    let before = NetworkConfig {
        path: PathConfig::new(BACKHAUL_BPS, BACKHAUL_BPS, options.backhaul),
        ..network.clone()
    };
    let before = SimNetwork::new(runtime.clone(), before, seed::derive(seed, "before"));
    let first = clients_of(&seen.page, &before, seed::derive(seed, "before"), None);
    let beside = SimNetwork::new(
        runtime.clone(),
        network.clone(),
        seed::derive(seed, "beside"),
    );
    let second = clients_of(&seen.page, &beside, seed::derive(seed, "beside"), None);
    let tab_of = |clients| {
        let tab = LoadDriver::new(&seen.page, protocol, options, clients, &runtime);
        tab.with_proxied_content(&seen.content)
    };
    let tab = tab_of(&clients);
    let ended = executor.run(async {
        if options.accelerator.is_warm() {
            stage.open(&before, seed::derive(seed, "before"), None);
            tab_of(&first).run(&|| ()).await;
            first.close().await;
            before.quiet().await;
        }
        if let Some(windows) = &windows {
            stage.open(&beside, seed::derive(seed, "beside"), Some(windows));
            tab_of(&second).run(&|| ()).await;
            second.close().await;
            beside.quiet().await;
        }
        tab.run(&|| access.restart_traffic()).await;
        clients.close().await;
        access.quiet().await;
    });
    let ended = ended.map_err(|stalled| stalled.to_string());
    let load = tab.into_load(network_name, seed, ended, &access.traffic());
    Load {
        qlogs: qlogs.take(),
        ..load
    }
}

/// Returns the accelerator for `page` with the origins behind it.
fn accelerator(
    page: &Page,
    seen: &AcceleratedPage,
    options: &Options,
    network: &NetworkConfig,
    runtime: &SimRuntime,
    seed: u64,
) -> Arc<Proxy> {
    let shared = SharedRuntime::new(runtime.clone());
    let calendar = WallClock::FromEpoch(site::wall_now(page.replica()));
    let behind = NetworkConfig {
        path: PathConfig::new(BACKHAUL_BPS, BACKHAUL_BPS, options.backhaul),
        client_tcp: network.server_tcp,
        server_tcp: network.server_tcp,
        name_lookups: options.name_lookups,
        program_latency: network.program_latency,
    };
    let behind = SimNetwork::new(runtime.clone(), behind, seed::derive(seed, "backhaul"));
    serve_origins(page, options, calendar, &behind, runtime);
    let network: Arc<SimNetwork> = Arc::new(behind);
    // The guard against private addresses does not apply here: addresses in virtual time belong to no host.
    let upstream = Upstream::new(
        &UpstreamConfig::default(),
        Some(&tls::client(RaceProtocol::H2, options)),
        &seen.sites,
        network.clone(),
        network,
        &shared,
    );
    let learn = LearnConfig {
        push: options.push != Push::No,
        early_hints: options.hints,
        prefetch: options.prefetch,
        ..LearnConfig::default()
    };
    let cache = page
        .operator_config()
        .map_or_else(CacheConfig::default, |it| it.cache.clone());
    Proxy::new(
        seen.sites.clone(),
        upstream,
        &cache,
        &learn,
        shared,
        calendar,
    )
}

/// Adds the replica's hosts behind the accelerator, each in plain text and in TLS, at the ports of its URLs.
fn serve_origins(
    page: &Page,
    options: &Options,
    calendar: WallClock,
    network: &SimNetwork,
    runtime: &SimRuntime,
) {
    let shared = SharedRuntime::new(runtime.clone());
    let acceptor = |secure| -> Acceptor {
        let config = endpoints::origin(secure, calendar, options);
        let (site, spawner, shared) = (page.site().clone(), runtime.clone(), shared.clone());
        Arc::new(move |io| {
            let serving = spdy_server::serve::serve_connection(
                io,
                site.clone(),
                config.clone(),
                shared.clone(),
            );
            spawner.spawn(Box::pin(async move {
                serving.await;
            }));
        })
    };
    let [plain, secure] = [false, true].map(acceptor);
    for (host, address) in page.hosts(RaceProtocol::Https, &Options::default()) {
        network.name(&host, vec![address]);
        network.listen(SocketAddr::new(address, 80), plain.clone());
        network.listen(SocketAddr::new(address, 443), secure.clone());
        for exchange in &page.replica().exchanges {
            if exchange.url.host_str() != Some(host.as_str()) {
                continue;
            }
            let acceptor = match exchange.url.scheme() {
                "https" => &secure,
                _ => &plain,
            };
            if let Some(port) = exchange.url.port() {
                network.listen(SocketAddr::new(address, port), acceptor.clone());
            }
        }
    }
}

impl AcceleratorNode<'_> {
    /// Connects the clients of `access`: the page's name resolves to the accelerator, all other names to their hosts.
    /// Its listeners use `windows`.
    fn open(&self, access: &SimNetwork, seed: u64, windows: Option<&RememberedWindows>) {
        let quic = endpoints::quic(&access.config().server_tcp, seed);
        serve_page(
            self.page,
            self.protocol,
            self.options,
            quic,
            access,
            &self.runtime,
        );
        let names = self.seen.names.iter().map(String::as_str);
        for name in names.chain(self.seen.sites.alias_names()) {
            access.name(name, vec![site::ADDRESS]);
        }
        let own = &self.page.replica().document().url;
        let default = if self.protocol.is_secure() { 443 } else { 80 };
        let door = SocketAddr::new(site::ADDRESS, own.port().unwrap_or(default));
        if self.protocol.wire_protocol().is_over_quic() {
            return self.listen_quic(access, door, windows.cloned());
        }
        access.listen_with_windows(door, self.acceptor(), windows.cloned());
    }

    fn acceptor(&self) -> Acceptor {
        let (proxy, serve) = (self.proxy.clone(), self.serve.clone());
        let (runtime, shared) = (
            self.runtime.clone(),
            SharedRuntime::new(self.runtime.clone()),
        );
        Arc::new(move |io| {
            let visit = Arc::new(ConnectionHandler::new(proxy.clone(), None, None));
            let (serve, shared) = (serve.clone(), shared.clone());
            runtime.spawn(Box::pin(async move {
                let (protocols, tls, options) =
                    (&serve.protocols, serve.tls.as_ref(), &serve.options);
                let stop = Latch::new();
                let served =
                    serve_connection(io, visit, protocols, tls, options, &shared, &stop).await;
                if let Err(error) = served {
                    tracing::debug!(%error, "a connection to the accelerator ended with an error");
                }
            }));
        })
    }

    fn listen_quic(
        &self,
        access: &SimNetwork,
        door: SocketAddr,
        windows: Option<RememberedWindows>,
    ) {
        let shared = SharedRuntime::new(self.runtime.clone());
        let (proxy, serve, runtime) =
            (self.proxy.clone(), self.serve.clone(), self.runtime.clone());
        let tls = serve.tls.as_ref().expect("QUIC always has TLS");
        let endpoint = access
            .bind(door)
            .and_then(|socket| QuicEndpoint::new(socket, tls, &serve.options, &shared))
            .expect("the address is unused and the TLS options are valid");
        self.runtime.spawn(Box::pin(async move {
            while let Some(incoming) = endpoint.accept().await {
                let incoming = incoming.with_windows(windows.clone());
                let visit = Arc::new(ConnectionHandler::new(proxy.clone(), None, None));
                let (options, shared) = (serve.options.clone(), shared.clone());
                runtime.spawn(Box::pin(async move {
                    let stop = Latch::new();
                    let _ = serve_quic(incoming, visit, &options, &shared, &stop).await;
                }));
            }
        }));
    }
}
