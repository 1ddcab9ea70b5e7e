//! Metrics for Prometheus: which there are, and the endpoint that serves them.

mod encode;
mod endpoint;
mod format;
mod registry;

pub(crate) use encode::{counter, gauge, put, put_gauge};
pub(crate) use endpoint::{PATH, admission, answer};
pub(crate) use registry::registry;
