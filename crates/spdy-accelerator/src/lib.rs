//! The accelerator as a service: everything around [`spdy_proxy`] that `spdy accelerate` runs.
//!
//! ```text
//! config_source.rs            the configuration: file and environment; site_files.rs: the files of `include`
//! start_plan.rs, setup.rs     everything that can fail before a socket is opened
//! check.rs, warnings.rs       what a valid configuration may still lack
//! run.rs                      opens the listeners, starts the proxy; runs server/, then control/ until the end
//!
//! access_log/    the lines of the access log, and its file
//! server/        listeners, the tasks that accept from them, and one connection
//! control/       signals: reload, succession by another process, shutdown
//! certificates/  ACME, certificate files, the local authority
//! initial_window/  the socket option for the initial congestion window (Linux)
//! origins/       connections to origins, and which addresses they may have
//! telemetry/     spans to a collector
//! ```
//!
//! This crate is a part of the program and is not published: it prints nothing, but reports notices ([`spdy_service::notice`]), and its
//! errors are [`anyhow`]'s.

pub mod access_log;
mod certificates;
pub mod check;
pub mod config_source;
mod control;
#[cfg(target_os = "linux")]
mod initial_window;
mod metrics;
pub mod origins;
mod run;
mod secrets;
mod server;
mod setup;
mod shared_tier;
mod site_files;
pub mod start_plan;
mod telemetry;
mod warnings;

pub use run::{RunOptions, run};
pub use server::listeners::Ready;
