//! Configuration of a network.

use std::time::Duration;

use spdy_netem::path::PathConfig;
use spdy_netem::tcp::TcpConfig;

use crate::network::dns::NameLookups;

/// [`NetworkConfig::program_latency`] of page loads. In packet captures of page loads in real time, a program takes 0.27 to 0.34 ms on
/// average from the arrival of a packet until it sends the answer (docs/explanation/accuracy-of-virtual-time.md).
pub(crate) const PROGRAM_LATENCY: Duration = Duration::from_micros(300);

/// Configuration of a network.
#[derive(Clone, Debug)]
pub struct NetworkConfig {
    /// The path between the client and everything else.
    pub path: PathConfig,
    /// TCP of the client's system.
    pub client_tcp: TcpConfig,
    /// TCP of the servers' systems.
    pub server_tcp: TcpConfig,
    /// How the client learns addresses.
    pub name_lookups: NameLookups,
    /// Time from the first arrival until the program of that side (the client, or all servers) runs. It handles everything that has arrived
    /// by then.
    pub program_latency: Duration,
}
