//! Metrics for Prometheus: which there are, and the endpoint that serves them.

mod encode;
mod endpoint;
mod format;
mod registry;

pub use encode::{counter, gauge, put, put_gauge};
pub use endpoint::{PATH, admission, answer};
pub use registry::registry;
