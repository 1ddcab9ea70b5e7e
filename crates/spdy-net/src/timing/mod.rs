//! Idle connections, and timeouts of connections without progress.

pub(crate) mod idle;
pub(crate) mod progress_timeout;
