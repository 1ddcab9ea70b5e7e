//! Limits for clients, where the command line does not set them.

use serde::Deserialize;

/// Limits for clients. The command line overrides them; without either, the program's default is used (`spdy accelerate --help`).
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientLimitsConfig {
    /// Connections open at once, over all clients and listeners; at least 1. Default 16384.
    pub max_connections: Option<u32>,
    /// Of these from one address (of IPv6: one /64). Default 4096; 0: as many as there are.
    pub connections_per_address: Option<u32>,
    /// New connections a second from one address, five seconds' worth at once. Default 1000; 0: as many as come.
    pub connection_rate: Option<u32>,
    /// Exchanges open at once on one SPDY, HTTP/2 or HTTP/3 connection; at least 1. Default 100.
    pub max_streams: Option<u32>,
    /// After how long a connection without requests is ended; at least 1. Default 180.
    pub idle_timeout_s: Option<u64>,
    /// The least that a client must send of a body, and take of an answer, bytes a second over a minute of waiting. Default 240; 0: any
    /// trickle.
    pub min_rate: Option<u32>,
    /// How long open exchanges have to end when the program is stopped. Default 5.
    pub drain_timeout_s: Option<u64>,
}

impl ClientLimitsConfig {
    /// The first key with an invalid value, and what is valid.
    #[must_use]
    pub fn fault(&self) -> Option<(&'static str, &'static str)> {
        let none = [
            ("limits.max_connections", self.max_connections == Some(0)),
            ("limits.max_streams", self.max_streams == Some(0)),
            ("limits.idle_timeout_s", self.idle_timeout_s == Some(0)),
        ];
        let none = none.into_iter().find(|(_, is_none)| *is_none);
        none.map(|(key, _)| (key, "at least 1"))
    }
}
