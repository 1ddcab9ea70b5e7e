//! Limits of what a client may use of a server: the options of connections and listeners that a configuration gives.

use std::time::Duration;

use spdy::Metrics;
use spdy_net::admission::{Admission, AdmissionLimits};
use spdy_net::limit::LimitHits;
use spdy_net::listen::ListenOptions;
use spdy_proxy::config::limits::ClientLimitsConfig;
use spdy_server::serve::ServerOptions;

/// Options for every connection; `hits` counts limits that clients reach.
#[must_use]
pub fn connection_options(
    limits: &ClientLimitsConfig,
    metrics: Option<Metrics>,
    hits: LimitHits,
) -> ServerOptions {
    let mut options = ServerOptions::default();
    options.max_streams = limits.max_streams;
    options.max_head_bytes = limits.max_head_bytes as usize;
    options.keepalive = limits.keepalive_s.map(Duration::from_secs);
    options.hits = hits;
    options.timeouts.idle_timeout = Duration::from_secs(limits.idle_timeout_s);
    options.timeouts.min_rate = limits.min_rate;
    options.spdy.metrics = metrics;
    options
}

/// Options for all listeners together.
#[must_use]
pub fn listen_options(limits: &ClientLimitsConfig, hits: LimitHits) -> ListenOptions {
    let mut admission = AdmissionLimits::default();
    admission.connections = limits.max_connections as usize;
    admission.per_address = limits.connections_per_address;
    admission.rate = limits.connection_rate;
    admission.abuses = limits.abuses_per_address;
    let mut options = ListenOptions::default();
    options.admission = Admission::new(admission, hits);
    options.drain_timeout = Duration::from_secs(limits.drain_timeout_s);
    options
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
