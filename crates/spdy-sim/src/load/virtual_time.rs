//! One page load: the machine of [`page_load`](crate::page_load) over the client and the server that ship,
//! in virtual time.
//!
//! Only three parts of a real load are replaced: sockets, clock and randomness. Every request is
//! built from the recorded head, every body is compared with the replica's byte by byte, and
//! packets are counted as they cross the network.
//!
//! - **Scheme.** The protocol under test decides it: `http` is requested in plain text, every other protocol in
//!   TLS, whatever the recording used. Host, port (where the URL names one), path and query stay.
//! - **Headers.** As recorded, in their order, without those of a connection
//!   (RFC 9110 §7.6.1), and for `If-*` and `Range`: the cache of a load is empty. Only a resource that was
//!   answered with 206 is requested with a `Range`: the range that the response had.
//!   Bodies of requests are not in a replica; such a request goes out with none.
//! - **Hosts.** One address a host name: the recorded one (or the one that the URL names itself), else one of 198.18.0.0/15, the block for
//!   benchmarks (RFC 2544). Two names may share a recorded address; they share a connection
//!   where [`Options::ip_pooling`] lets them. Where [`Options::deployment`] makes them speak two protocols, each
//!   gets an address of its own: what a server speaks is decided before it learns a name.

use std::sync::Arc;

use spdy::runtime::SharedRuntime;
use spdy_client::client::Client;

use crate::accelerator;
use crate::load::LoadDriver;
use crate::load::serve_page::serve_page;
use crate::load::{Load, Page, endpoints};
use crate::network::{NetworkConfig, SimNetwork};
use crate::options::{Accelerator, Options, RaceProtocol};
use crate::runtime::{Executor, ExecutorLimits};

/// Loads `page` once over `protocol` and the network that `network` describes. `network_name` and `seed` go
/// into the result; everything random comes from `seed`.
///
/// A load that cannot end (a deadlock, or an hour of virtual time) has this in its
/// `failures`, and the times of the instant at which it stopped.
#[must_use]
pub fn load(
    page: &Page,
    protocol: RaceProtocol,
    network_name: &str,
    network: &NetworkConfig,
    options: &Options,
    seed: u64,
) -> Load {
    if options.accelerator != Accelerator::Off {
        return accelerator::load(page, protocol, network_name, network, options, seed);
    }
    let executor = Executor::new(ExecutorLimits::default());
    let runtime = executor.runtime();
    let mut config = page.client_config(protocol, options);
    config.connection.quic = endpoints::quic(&network.client_tcp, seed);
    let quic = endpoints::quic(&network.server_tcp, seed);
    let network = SimNetwork::new(runtime.clone(), network.clone(), seed);
    serve_page(page, protocol, options, quic, &network, &runtime);
    let client = Client::new(
        SharedRuntime::new(runtime.clone()),
        Arc::new(network.clone()),
        config,
    );
    let tab = LoadDriver::new(page, protocol, options, &client, &runtime);
    let ended = executor.run(async {
        tab.run().await;
        client.close().await;
        network.quiet().await;
    });
    let ended = ended.map_err(|stalled| stalled.to_string());
    tab.into_load(network_name, seed, ended, &network.traffic())
}
