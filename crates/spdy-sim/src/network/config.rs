//! Configuration of a network.

use spdy_netem::path::PathConfig;
use spdy_netem::tcp::TcpConfig;

use crate::network::dns::NameLookups;

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
}
