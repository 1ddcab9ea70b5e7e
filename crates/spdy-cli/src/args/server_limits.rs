//! Options that limit what a client may use of a server.

use spdy_proxy::config::limits::ClientLimitsConfig;

/// Limits of `spdy serve` for its clients.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct ServerLimitArgs {
    /// Connections open at once, over all clients and listeners
    #[arg(long, value_name = "N", default_value_t = ClientLimitsConfig::default().max_connections, value_parser = clap::value_parser!(u32).range(1..))]
    max_connections: u32,

    /// Requests in progress on one SPDY, HTTP/2 or HTTP/3 connection; over HTTP/3 at most 4096
    #[arg(long, value_name = "N", default_value_t = ClientLimitsConfig::default().max_streams, value_parser = clap::value_parser!(u32).range(1..))]
    max_streams: u32,

    /// Send a PING on a SPDY session after this many seconds of silence [default: never].
    ///
    /// The session is closed after 10 more seconds of silence. Undertow's clients never reply to a PING.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    keepalive: Option<u64>,

    /// Neither obey nor enforce SPDY's windows, for peers without flow control (spdystream)
    #[arg(long)]
    pub(crate) no_flow_control: bool,
}

impl ServerLimitArgs {
    /// The same as a configuration.
    pub(crate) fn config(&self) -> ClientLimitsConfig {
        ClientLimitsConfig {
            max_connections: self.max_connections,
            max_streams: self.max_streams,
            keepalive_s: self.keepalive,
            ..ClientLimitsConfig::default()
        }
    }
}
