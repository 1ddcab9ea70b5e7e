//! Shims of h2; `shims/mod.rs` has their reasons.

pub(crate) mod data_frame_splitter;
pub(crate) mod window_tracker;
pub(crate) mod write_coalescer;
pub(crate) mod write_scheduler;
