//! The parts of a session's state, each with its own rules. None of them depends on the session.

pub(crate) mod backpressure;
pub(crate) mod closing;
pub(crate) mod data_scheduler;
pub(crate) mod deadlines;
pub(crate) mod flood_budget;
pub(crate) mod output_queues;
pub(crate) mod pings;
pub(crate) mod stream;
pub(crate) mod streams;
pub(crate) mod version_detection;
pub(crate) mod window;
