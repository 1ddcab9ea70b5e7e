//! Measuring page loads.
//!
//! A page load is driven by [`page_load`], a browser's order of requests without I/O, over the server and
//! the client that ship, on the network of [`sim`]: virtual time, real bytes. [`browser`] does one load,
//! [`race`] many on all cores, [`stats`] sums them up, and [`measure`] says what one load came to.
//! [`experiment`] varies factors over many cells, [`store`] keeps what they came to, and [`claims`]
//! holds what papers said of SPDY against it.
//! [`calibrate`] holds virtual time against the kernel's TCP, and [`live`] does the same load in real time.
//!
//! `docs/explanation/virtual-time.md` explains how we measure.

pub mod accelerator;
pub mod audit;
pub mod browser;
mod cache;
pub mod cache_choice;
#[cfg(target_os = "linux")]
pub mod calibrate;
pub mod claims;
pub mod deployment;
pub mod doctor;
mod ends;
mod expected;
pub mod experiment;
pub mod hosts;
#[cfg(target_os = "linux")]
pub mod live;
pub mod lulic;
pub mod lulic_pages;
pub mod measure;
pub mod model;
pub mod options;
mod page;
pub mod page_load;
mod proxied_content;
pub mod push_choice;
pub mod race;
pub mod race_protocol;
mod recorded_request;
pub mod report;
pub mod scheduler;
mod serve_page;
pub mod sim;
pub mod stats;
pub mod store;
mod tab;
mod tls;
mod urgency;
mod workers;
