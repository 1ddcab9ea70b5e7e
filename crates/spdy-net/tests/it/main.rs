//! Connections of every protocol: between our two ends, and against peers that break the rules.

mod certificates;
mod conformance;
mod exchanges;
mod expect_continue;
mod heads;
mod http2_resets;
mod http3;
mod idle_eviction;
mod interim_responses;
mod listener;
mod protocol_detection;
mod proxy_protocol;
mod refusals;
mod slow_clients;
mod slow_servers;
mod support;
mod tls;
mod tls_records;
mod upgrade_offers;
