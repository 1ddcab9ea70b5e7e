//! Storage of responses: memory, disk, the shared tier, and coalesced fetches.

mod body_sharing;
mod cache_groups;
mod coalescing;
mod disk;
mod head_requests;
mod identified_clients;
mod image_variants;
mod invalidation;
mod negative_cache;
mod ranges;
mod recompression;
mod restart;
mod shared_tier;
mod storage;
