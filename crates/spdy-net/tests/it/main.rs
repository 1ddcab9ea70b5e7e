//! Connections of every protocol: between our two ends, and against peers that break the rules.

mod client_writes;
mod conformance;
mod exchanges;
mod expect_continue;
mod header_compression;
mod heads;
mod http2_resets;
mod idle_eviction;
mod interim_responses;
mod listener;
mod protocol_detection;
mod proxy_protocol;
mod quic_listener;
mod refusals;
mod slow_clients;
mod slow_servers;
mod support;
mod timeouts;
mod upgrade_offers;
