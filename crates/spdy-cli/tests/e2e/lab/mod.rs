//! `spdy lab`: runs, stores, reports and real-time links.

mod browse_files;
#[cfg(target_os = "linux")]
mod browse_visits;
mod chromium49;
mod cluster;
#[cfg(target_os = "linux")]
mod living_page;
mod postgres;
mod python;
#[cfg(target_os = "linux")]
mod real_time;
mod report_filters;
pub(crate) mod reports;
mod results;
mod runs;
mod shape;
mod store;
mod view;
