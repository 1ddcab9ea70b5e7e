//! Limits of what a client may use of a server: the options, and the limits of connections and listeners that they give.

use std::time::Duration;

use spdy::Metrics;
use spdy_net::admission::{Admission, AdmissionLimits};
use spdy_net::limit::LimitHits;
use spdy_net::listen::ListenOptions;
use spdy_net::options::{ServerTimeouts, SpdyServerOptions};
use spdy_proxy::config::limits::ClientLimitsConfig;
use spdy_server::serve::ServerOptions;

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

/// Options for every connection; `hits` counts limits that clients reach.
pub(crate) fn connection_options(
    limits: &ClientLimitsConfig,
    metrics: Option<Metrics>,
    hits: LimitHits,
) -> ServerOptions {
    ServerOptions {
        max_streams: limits.max_streams,
        max_head_bytes: limits.max_head_bytes as usize,
        keepalive: limits.keepalive_s.map(Duration::from_secs),
        hits,
        timeouts: ServerTimeouts {
            idle_timeout: Duration::from_secs(limits.idle_timeout_s),
            min_rate: limits.min_rate,
            ..ServerTimeouts::default()
        },
        spdy: SpdyServerOptions {
            metrics,
            ..SpdyServerOptions::default()
        },
        ..ServerOptions::default()
    }
}

/// Options for all listeners together.
pub(crate) fn listen_options(limits: &ClientLimitsConfig, hits: LimitHits) -> ListenOptions {
    let admission = AdmissionLimits {
        connections: limits.max_connections as usize,
        per_address: limits.connections_per_address,
        rate: limits.connection_rate,
        abuses: limits.abuses_per_address,
        ..AdmissionLimits::default()
    };
    ListenOptions {
        admission: Admission::new(admission, hits),
        drain_timeout: Duration::from_secs(limits.drain_timeout_s),
        ..ListenOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_the_configuration_reach_connections_and_listeners() {
        let limits = ClientLimitsConfig {
            max_streams: 7,
            idle_timeout_s: 8,
            keepalive_s: Some(9),
            min_rate: 10,
            drain_timeout_s: 11,
            max_head_bytes: 12_000,
            ..ClientLimitsConfig::default()
        };
        let options = connection_options(&limits, None, LimitHits::default());
        assert_eq!(options.max_streams, 7);
        assert_eq!(options.timeouts.idle_timeout, Duration::from_secs(8));
        assert_eq!(options.keepalive, Some(Duration::from_secs(9)));
        assert_eq!(
            (options.timeouts.min_rate, options.max_head_bytes),
            (10, 12_000)
        );
        let listening = listen_options(&limits, LimitHits::default());
        assert_eq!(listening.drain_timeout, Duration::from_secs(11));
    }
}
