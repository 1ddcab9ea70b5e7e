//! HTTP/2 on both sides, by the h2 crate (RFC 9113).
//!
//! Priorities are sent as RFC 9218's `priority: u=N` header field, whose levels 0 to 7 are the same as SPDY's; the server applies
//! them in `shims/h2/write_scheduler.rs`. Windows are always set explicitly, never left at h2's defaults.

pub(crate) mod body;
pub(crate) mod client;
mod error;
pub(crate) mod limits;
pub(crate) mod push;
pub(crate) mod server;
