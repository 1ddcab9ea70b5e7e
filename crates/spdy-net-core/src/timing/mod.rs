//! Idle connections, and timeouts of connections without progress.

pub mod block_reason;
pub mod idle;
pub mod progress_timeout;
mod read_timeout_body;
pub(crate) mod read_timeout_handler;
pub mod write_timeout_io;
