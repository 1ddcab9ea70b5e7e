//! Idle connections, and timeouts of connections without progress.

pub(crate) mod block_reason;
pub(crate) mod idle;
pub(crate) mod progress_timeout;
pub(crate) mod read_timeout_body;
pub(crate) mod read_timeout_handler;
pub(crate) mod write_timeout_io;
