//! Responses made here: from the cache, errors, `Server-Timing`, and the BREACH guard.

pub(crate) mod breach_guard;
pub(crate) mod downstream_storage;
pub(crate) mod from_stored;
pub(crate) mod image_variant;
pub(crate) mod redirect_chain;
pub(crate) mod respond;
pub mod server_timing;
pub(crate) mod stale_entry;
