//! `spdy accelerate`: the command, and a file for each part of what it does.

mod acme;
mod again;
mod asked;
#[cfg(unix)]
mod audit;
#[cfg(unix)]
mod audit_page;
#[cfg(unix)]
mod audit_view;
mod certificate_files;
mod certificates;
mod command;
mod doors;
mod end;
mod log;
mod metrics;
mod names;
#[cfg(unix)]
mod open_files;
mod operator;
mod origins;
mod schema;
mod secrets;
mod served;
mod serving;
mod setup;
mod shared;
mod stays;
#[cfg(not(unix))]
#[path = "alone.rs"]
mod succession;
#[cfg(unix)]
mod succession;
mod upstream_needs;

pub(crate) use command::{Args, EXAMPLES, run};
