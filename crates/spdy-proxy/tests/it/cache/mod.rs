//! What is stored and for how long: memory, disk, the shared tier, and one fetch for many requests.

mod body_sharing;
mod cache_groups;
mod coalescing;
mod disk;
mod head_requests;
mod invalidation;
mod negative_cache;
mod ranges;
mod restart;
mod shared_tier;
mod storage;
