//! Limits of what a client may use of a server: the options of connections and listeners that a configuration gives.

use std::time::Duration;

use spdy::Metrics;
use spdy_net::admission::{Admission, AdmissionLimits};
use spdy_net::limit::LimitHits;
use spdy_net::listen::ListenOptions;
use spdy_net::options::{ServerTimeouts, SpdyServerOptions};
use spdy_proxy::config::limits::ClientLimitsConfig;
use spdy_server::serve::ServerOptions;

/// Options for every connection; `hits` counts limits that clients reach.
#[must_use]
pub fn connection_options(
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
#[must_use]
pub fn listen_options(limits: &ClientLimitsConfig, hits: LimitHits) -> ListenOptions {
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
