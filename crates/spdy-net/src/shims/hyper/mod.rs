//! Shims of hyper; `shims/mod.rs` has their reasons.

pub(crate) mod head_size;
pub(crate) mod head_timeout;
pub mod literal_head;
pub(crate) mod literal_responses;
