//! `spdy lab ...`: a file for each of its commands.

#[cfg(target_os = "linux")]
mod browse;
#[cfg(target_os = "linux")]
mod calibrate;
#[cfg(target_os = "linux")]
mod calibrate_link;
#[cfg(target_os = "linux")]
mod calibrate_pages;
mod cell;
mod cells;
mod command;
mod compare;
mod experiment;
mod export;
mod import;
mod loading;
mod merge;
mod report;
mod reproduce;
mod run;
#[cfg(target_os = "linux")]
mod shape;
mod show;
mod summary_table;
mod view;
mod watch;

pub(crate) use command::{Args, EXAMPLES, run};
