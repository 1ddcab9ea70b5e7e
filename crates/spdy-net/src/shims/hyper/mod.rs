//! Shims of hyper; `shims/mod.rs` has their reasons.

pub(crate) mod head_size;
pub(crate) mod head_timeout;
