//! One page load in virtual time: the machine of [`page_load`](crate::page_load) over the released client and server.
//!
//! Only three parts of a real load are replaced: sockets, clock and randomness. Every request is built from the recorded head. Every
//! body is compared with the replica's byte by byte. Packets are counted as they cross the network.
//!
//! - **Scheme.** The protocol under test decides it: `http` is requested in plain text, every other protocol in
//!   TLS, whatever the recording used. Host, port (where the URL names one), path and query stay.
//! - **Headers.** As recorded, in their order, without those of a connection (RFC 9110 §7.6.1), `If-*` and `Range`: the cache of a
//!   load is empty. Only a resource with a 206 response is requested with a `Range`: that of the response. A replica has no bodies of
//!   requests, so requests have none.
//! - **Hosts.** One address for each hostname: the recorded one (or the one in the URL itself), else one of 198.18.0.0/15, the
//!   benchmark block (RFC 2544). Two names may share a recorded address; they share a connection if [`Options::ip_pooling`] allows
//!   that. If [`Options::deployment`] makes them speak two protocols, each gets its own address: a server chooses its protocol before
//!   it learns a name.

use std::sync::Arc;

use spdy::runtime::SharedRuntime;
use spdy_client::client::Client;

#[cfg(feature = "accelerator")]
use crate::accelerator;
use crate::load::LoadDriver;
use crate::load::serve_page::serve_page;
use crate::load::{Load, Page, SiteClients, endpoints};
use crate::network::{NetworkConfig, SimNetwork};
#[cfg(feature = "accelerator")]
use crate::options::Accelerator;
use crate::options::{Options, RaceProtocol};
use crate::qlog::QlogRecorder;
use crate::runtime::{Executor, ExecutorLimits};

/// Each page of a visit may take as long as any other.
fn limits(page: &Page) -> ExecutorLimits {
    let limits = ExecutorLimits::default();
    let earlier = page.earlier();
    let pages = earlier.pages.len() as u32; // at most MAX_PAGES
    ExecutorLimits {
        virtual_time: limits.virtual_time * (pages + 1) + earlier.pause * pages,
        events: limits.events * u64::from(pages + 1),
    }
}

/// Loads `page` once over `protocol` and the network that `network` describes. `network_name` and `seed` are copied into the result;
/// all randomness comes from `seed`.
///
/// If a load cannot end (a deadlock, or an hour of virtual time), its `failures` state this, and its times are those at which it
/// stopped.
#[must_use]
pub fn load(
    page: &Page,
    protocol: RaceProtocol,
    network_name: &str,
    network: &NetworkConfig,
    options: &Options,
    seed: u64,
) -> Load {
    #[cfg(feature = "accelerator")]
    if options.accelerator != Accelerator::Off {
        return accelerator::load(page, protocol, network_name, network, options, seed);
    }
    let executor = Executor::new(limits(page));
    let runtime = executor.runtime();
    let client_tcp = network.client_tcp;
    let qlogs = QlogRecorder::default();
    let quic = endpoints::quic(&network.server_tcp, seed);
    let network = SimNetwork::new(runtime.clone(), network.clone(), seed);
    serve_page(page, protocol, options, quic, &network, &runtime);
    let clients = SiteClients::new(page, options, |number| {
        let seed = endpoints::client_seed(seed, number);
        let mut config = page.client_config(protocol, options);
        config.connection.quic = endpoints::quic(&client_tcp, seed);
        config.connection.qlog = options.qlog.then(|| qlogs.files());
        let runtime = SharedRuntime::new(runtime.clone());
        Client::new(runtime, Arc::new(network.clone()), config)
    });
    let tab = LoadDriver::new(page, protocol, options, &clients, &runtime);
    let ended = executor.run(async {
        tab.run(&|| network.restart_traffic()).await;
        clients.close().await;
        network.quiet().await;
    });
    let ended = ended.map_err(|stalled| stalled.to_string());
    let load = tab.into_load(network_name, seed, ended, &network.traffic());
    Load {
        qlogs: qlogs.take(),
        ..load
    }
}
