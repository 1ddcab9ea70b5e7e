//! `spdy bench`: loads a server, and reports rates, latencies and CPU time.

mod command;
mod progress;
pub(crate) mod report;

pub(crate) use command::{Args, EXAMPLES, run};
