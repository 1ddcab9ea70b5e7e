//! Stores and fetches responses: memory, disk, shared tier, purges, coalescing, negative cache.

pub mod coalescer;
pub mod disk;
pub mod encoded_bodies;
pub mod memory_store;
pub(crate) mod negative_cache;
pub(crate) mod public_response;
pub mod purge;
pub(crate) mod purge_log;
pub(crate) mod recompressor;
pub(crate) mod shared_response;
pub mod tiers;
