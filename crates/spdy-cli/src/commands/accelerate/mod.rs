//! `spdy accelerate`: a caching reverse proxy in front of a site.
//!
//! ```text
//! config_source.rs            the configuration: file and environment
//! start_plan.rs, setup.rs     everything that can fail before a socket is opened
//! command.rs                  the options; runs server/, then control/ until the end
//!
//! server/        listeners, the tasks that accept from them, and one connection
//! control/       signals: reload, succession by another process, shutdown
//! certificates/  ACME, certificate files, the local authority
//! origins/       connections to origins, and which addresses they may have
//! telemetry/     spans to a collector
//! audit/         `accelerate audit`: what an accelerator would do for a page
//! ```

mod access_log;
#[cfg(unix)]
mod audit;
mod certificates;
mod check;
mod command;
mod config_source;
mod control;
mod metrics;
mod origins;
mod schema;
mod secrets;
mod server;
mod setup;
mod shared_tier;
mod start_plan;
mod telemetry;
mod warnings;

pub(crate) use command::{Args, EXAMPLES, run};
