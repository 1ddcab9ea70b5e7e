//! `spdy lab ...`: experiments in virtual time and their stores, and programs behind a link in real time.
//!
//! `command.rs` has the tree of its commands. `run/` loads the cells of an experiment, `store/` works on the stores that keep them,
//! `report/` shows a store as a page, and `calibrate/` compares virtual time with the kernel's TCP.

#[cfg(target_os = "linux")]
pub(crate) mod browse;
#[cfg(target_os = "linux")]
pub(crate) mod calibrate;
mod command;
mod experiment;
pub(crate) mod report;
mod reproduce;
pub(crate) mod run;
#[cfg(target_os = "linux")]
pub(crate) mod shape;
pub(crate) mod store;

pub(crate) use command::{Args, EXAMPLES, run};
