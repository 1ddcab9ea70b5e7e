//! The servers of a page in virtual time: one at every address.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use spdy::runtime::{Runtime, SharedRuntime};
use spdy_net::protocol::Protocol;
use spdy_net::quic::{QuicEndpoint, QuicOptions};
use spdy_server::serve::{ServeConfig, serve_connection, serve_quic};
use spdy_server::site::Site;

use crate::load::Page;
use crate::network::{Acceptor, SimNetwork};
use crate::options::{Options, RaceProtocol};
use crate::runtime::SimRuntime;

/// Starts a server at every address of the page.
pub(crate) fn serve_page(
    page: &Page,
    protocol: RaceProtocol,
    options: &Options,
    quic: QuicOptions,
    network: &SimNetwork,
    runtime: &SimRuntime,
) {
    let ports = page.ports(protocol.is_secure());
    let shared = SharedRuntime::new(runtime.clone());
    let acceptor = |spoken| -> Acceptor {
        let config = page.serve_config(protocol, spoken, options);
        let (site, spawner, shared) = (page.site().clone(), runtime.clone(), shared.clone());
        Arc::new(move |io| {
            let serving = serve_connection(io, site.clone(), config.clone(), shared.clone());
            spawner.spawn(Box::pin(async move {
                serving.await;
            }));
        })
    };
    let mut acceptors: Vec<(Protocol, Acceptor)> = Vec::new();
    let mut by_quic = BTreeSet::new(); // two names of one address share its socket
    for (host, address) in page.hosts(protocol, options) {
        network.name(&host, vec![address]);
        network.set_extra_rtt(address, options.backhaul);
        let addresses = ports.iter().map(|&port| SocketAddr::new(address, port));
        let spoken = page.protocol_for(protocol, options, &host);
        if spoken.is_over_quic() {
            by_quic.extend(addresses);
            continue;
        }
        let at = acceptors.iter().position(|(other, _)| *other == spoken);
        let at = at.unwrap_or_else(|| {
            acceptors.push((spoken, acceptor(spoken)));
            acceptors.len() - 1
        });
        for address in addresses {
            network.listen(address, acceptors[at].1.clone());
        }
    }
    if by_quic.is_empty() {
        return;
    }
    let mut config = page.serve_config(protocol, protocol.wire_protocol(), options);
    config.options.quic = quic;
    for address in by_quic {
        let serving = serve_address(address, page.site().clone(), &config, network, &shared);
        runtime.spawn(Box::pin(serving));
    }
}

/// Serves each QUIC connection to `address`.
fn serve_address(
    address: SocketAddr,
    site: Arc<Site>,
    config: &ServeConfig,
    network: &SimNetwork,
    runtime: &SharedRuntime,
) -> impl Future<Output = ()> + use<> {
    let tls = config.tls.as_ref().expect("QUIC always has TLS");
    let socket = network.bind(address);
    let endpoint =
        socket.and_then(|socket| QuicEndpoint::new(socket, tls, &config.options, runtime));
    let endpoint = endpoint.expect("the address is unused and the TLS options are valid");
    let (config, runtime) = (config.clone(), runtime.clone());
    async move {
        while let Some(incoming) = endpoint.accept().await {
            let serving = serve_quic(incoming, site.clone(), config.clone(), runtime.clone());
            runtime.spawn(Box::pin(async move {
                serving.await;
            }));
        }
    }
}
