//! HTTP/2 on both sides, by the h2 crate (RFC 9113).
//!
//! Priorities travel as RFC 9218's `priority: u=N` header field, whose 0 to 7 are SPDY's own levels;
//! the server obeys them by `shims/h2/write_scheduler.rs`. Windows are set in so many words, never h2's defaults.

pub(crate) mod body;
pub(crate) mod client;
mod error;
pub(crate) mod limits;
pub(crate) mod push;
pub(crate) mod server;
