//! The rules of the cache, and the store in memory.

mod invalidation;
mod laws;
mod memory_eviction;
mod memory_purge;
mod memory_store;
mod memory_store_laws;
mod object_file;
mod oracle;
mod responses;
mod serving;
mod storing;
mod support;
mod validation;
