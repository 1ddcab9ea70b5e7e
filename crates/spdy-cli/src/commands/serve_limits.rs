//! How much a client of `spdy serve` may want: the options, and what they mean to the server.

use std::time::Duration;

use spdy::Metrics;
use spdy_net::admission::{Admission, AdmissionLimits};
use spdy_net::limit::LimitHits;
use spdy_net::listen::ListenOptions;
use spdy_server::serve::ServerOptions;

/// How much a client may want.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct Limits {
    /// Connections open at once, whoever opened them and wherever
    #[arg(long, value_name = "N", default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(1..))]
    max_connections: u32,

    /// Connections open at once from one address (of IPv6: one /64); 0 for as many as there are
    #[arg(long, value_name = "N", default_value_t = 4096)]
    connections_per_address: u32,

    /// New connections a second from one address, five seconds' worth at once; 0 for as many as come
    #[arg(long, value_name = "N", default_value_t = 1000)]
    connection_rate: u32,

    /// Connections of one address that may be ended for abuse within a minute, before it is not heard for the rest of it; 0 never minds
    #[arg(long, value_name = "N", default_value_t = 10)]
    abuses_per_address: u32,

    /// Exchanges open at once on one SPDY, HTTP/2 or HTTP/3 connection; over HTTP/3 at most 4096
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    max_streams: u32,

    /// Seconds after which a connection without requests is ended
    #[arg(long, value_name = "SECONDS", default_value_t = 180, value_parser = clap::value_parser!(u64).range(1..))]
    idle_timeout: u64,

    /// Send a PING on a SPDY session that was silent for so many seconds, and end it when it stays silent for 10 more. Not for Undertow's clients, which never answer a PING [default: never]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    keepalive: Option<u64>,

    /// The least a client must send of a body, and take of an answer, bytes a second over a minute of waiting; 0 for any trickle
    #[arg(long, value_name = "BYTES", default_value_t = 240)]
    min_rate: u32,

    /// Seconds that open exchanges have to end when the program is asked to stop
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    drain_timeout: u64,

    /// The largest head of a request, bytes
    #[arg(long, value_name = "BYTES", default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(8_192..))]
    max_head: u32,

    /// Neither obey nor enforce SPDY's windows: for peers without flow control (spdystream)
    #[arg(long)]
    no_flow_control: bool,
}

impl Limits {
    /// Connections open at once.
    pub(crate) fn max_connections(&self) -> u32 {
        self.max_connections
    }

    /// For every connection; who meets a limit is counted in `hits`.
    pub(crate) fn of_connections(
        &self,
        metrics: Option<Metrics>,
        hits: LimitHits,
    ) -> ServerOptions {
        ServerOptions {
            idle_timeout: Duration::from_secs(self.idle_timeout),
            max_streams: self.max_streams,
            max_head_bytes: self.max_head as usize,
            flow_control: !self.no_flow_control,
            keepalive: self.keepalive.map(Duration::from_secs),
            min_rate: self.min_rate,
            metrics,
            hits,
            ..ServerOptions::default()
        }
    }

    /// For all listeners together.
    pub(crate) fn of_listeners(&self, hits: LimitHits) -> ListenOptions {
        let limits = AdmissionLimits {
            connections: self.max_connections as usize,
            per_address: self.connections_per_address,
            rate: self.connection_rate,
            abuses: self.abuses_per_address,
            ..AdmissionLimits::default()
        };
        ListenOptions {
            admission: Admission::new(limits, hits),
            drain_timeout: Duration::from_secs(self.drain_timeout),
        }
    }
}
