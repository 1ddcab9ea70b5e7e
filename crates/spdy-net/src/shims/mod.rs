//! What h2 and hyper do not offer, done on the bytes beneath them.

pub(crate) mod head_size;
pub(crate) mod head_timeout;
pub(crate) mod window_tracker;
pub mod wire_observer;
pub(crate) mod write_coalescer;
pub(crate) mod write_scheduler;
