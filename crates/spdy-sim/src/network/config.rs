//! What a network is made of.

use spdy_netem::path::PathConfig;
use spdy_netem::tcp::TcpConfig;

use crate::network::dns::NameLookups;

/// What a network is made of.
#[derive(Clone, Debug)]
pub struct NetworkConfig {
    /// The one path between the client and everything else.
    pub path: PathConfig,
    /// TCP as the client's system has it.
    pub client_tcp: TcpConfig,
    /// TCP as the servers' systems have it.
    pub server_tcp: TcpConfig,
    /// How the client learns addresses.
    pub name_lookups: NameLookups,
}
