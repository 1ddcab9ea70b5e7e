//! Origins: addresses, connections, health, limits, errors.

pub mod client;
pub(crate) mod concurrency;
pub mod error;
pub(crate) mod grpc;
pub(crate) mod origin_addresses;
pub(crate) mod origin_backoff;
pub mod origins;
pub(crate) mod response_framing;
pub(crate) mod server_network;
pub(crate) mod servers;
pub(crate) mod slow_readers;
pub mod static_limit;
pub(crate) mod third_party;
pub(crate) mod uploads;
