//! `spdy lab`: runs, stores, reports and real-time links.

mod browse_files;
mod cluster;
mod postgres;
#[cfg(target_os = "linux")]
mod real_time;
mod report_filters;
mod reports;
mod results;
mod runs;
mod shape;
mod store;
mod view;
