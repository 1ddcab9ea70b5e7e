//! How much a client of `spdy serve` may want: the options, and what they mean to the server.

use std::time::Duration;

use spdy::Metrics;
use spdy_net::admission::{Admission, AdmissionLimits};
use spdy_net::limit::LimitHits;
use spdy_net::listen::ListenOptions;
use spdy_proxy::config::limits::ClientLimitsConfig;
use spdy_server::serve::ServerOptions;

/// What is so where neither the command line nor a configuration says it: as the help has it.
const MAX_CONNECTIONS: u32 = 16_384;
const PER_ADDRESS: u32 = 4096;
const CONNECTION_RATE: u32 = 1000;
const MAX_STREAMS: u32 = 100;
const IDLE_TIMEOUT_S: u64 = 180;
const MIN_RATE: u32 = 240;
const DRAIN_TIMEOUT_S: u64 = 5;

/// How much a client may want.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct ServerLimitArgs {
    /// Connections open at once, over all clients and listeners [default: 16384]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_connections: Option<u32>,

    /// Connections open at once from one address (of IPv6: one /64); 0 for as many as there are [default: 4096]
    #[arg(long, value_name = "N")]
    connections_per_address: Option<u32>,

    /// New connections a second from one address, five seconds' worth at once; 0 for as many as come [default: 1000]
    #[arg(long, value_name = "N")]
    connection_rate: Option<u32>,

    /// Connections of one address that may be ended for abuse within a minute, before it is not heard for the rest of it; 0 never minds
    #[arg(long, value_name = "N", default_value_t = 10)]
    abuses_per_address: u32,

    /// Exchanges open at once on one SPDY, HTTP/2 or HTTP/3 connection; over HTTP/3 at most 4096 [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_streams: Option<u32>,

    /// Seconds after which a connection without requests is ended [default: 180]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    idle_timeout: Option<u64>,

    /// Send a PING on a SPDY session that was silent for so many seconds, and end it when it stays silent for 10 more. Not for Undertow's clients, which never answer a PING [default: never]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    keepalive: Option<u64>,

    /// The least a client must send of a body, and take of an answer, bytes a second over a minute of waiting; 0 for any trickle [default: 240]
    #[arg(long, value_name = "BYTES")]
    min_rate: Option<u32>,

    /// Seconds that open exchanges have to end when the program is asked to stop [default: 5]
    #[arg(long, value_name = "SECONDS")]
    drain_timeout: Option<u64>,

    /// The largest head of a request, bytes
    #[arg(long, value_name = "BYTES", default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(8_192..))]
    max_head: u32,

    /// Neither obey nor enforce SPDY's windows: for peers without flow control (spdystream)
    #[arg(long)]
    no_flow_control: bool,
}

impl ServerLimitArgs {
    /// The same, where nothing is said as `config` has it.
    pub(crate) fn or(&self, config: &ClientLimitsConfig) -> Self {
        Self {
            max_connections: self.max_connections.or(config.max_connections),
            connections_per_address: self
                .connections_per_address
                .or(config.connections_per_address),
            connection_rate: self.connection_rate.or(config.connection_rate),
            max_streams: self.max_streams.or(config.max_streams),
            idle_timeout: self.idle_timeout.or(config.idle_timeout_s),
            min_rate: self.min_rate.or(config.min_rate),
            drain_timeout: self.drain_timeout.or(config.drain_timeout_s),
            ..self.clone()
        }
    }

    /// Connections open at once.
    pub(crate) fn max_connections(&self) -> u32 {
        self.max_connections.unwrap_or(MAX_CONNECTIONS)
    }

    /// Options for every connection; `hits` counts limits that clients reach.
    pub(crate) fn of_connections(
        &self,
        metrics: Option<Metrics>,
        hits: LimitHits,
    ) -> ServerOptions {
        ServerOptions {
            idle_timeout: Duration::from_secs(self.idle_timeout.unwrap_or(IDLE_TIMEOUT_S)),
            max_streams: self.max_streams.unwrap_or(MAX_STREAMS),
            max_head_bytes: self.max_head as usize,
            flow_control: !self.no_flow_control,
            keepalive: self.keepalive.map(Duration::from_secs),
            min_rate: self.min_rate.unwrap_or(MIN_RATE),
            metrics,
            hits,
            ..ServerOptions::default()
        }
    }

    /// For all listeners together.
    pub(crate) fn of_listeners(&self, hits: LimitHits) -> ListenOptions {
        let limits = AdmissionLimits {
            connections: self.max_connections() as usize,
            per_address: self.connections_per_address.unwrap_or(PER_ADDRESS),
            rate: self.connection_rate.unwrap_or(CONNECTION_RATE),
            abuses: self.abuses_per_address,
            ..AdmissionLimits::default()
        };
        ListenOptions {
            admission: Admission::new(limits, hits),
            drain_timeout: Duration::from_secs(self.drain_timeout.unwrap_or(DRAIN_TIMEOUT_S)),
            ..ListenOptions::default()
        }
    }
}
