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
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod accelerator;
pub mod audit;
pub mod browser;
pub mod cache;
#[cfg(target_os = "linux")]
pub mod calibrate;
pub mod claims;
pub mod deployment;
pub mod doctor;
mod ends;
mod expected;
pub mod experiment;
pub mod hints;
pub mod hosts;
#[cfg(target_os = "linux")]
pub mod live;
pub mod lulic;
pub mod lulic_pages;
pub mod measure;
pub mod model;
pub mod options;
pub mod page_load;
pub mod race;
mod recorded_request;
pub mod report;
pub mod scheduler;
pub mod sim;
pub mod stats;
pub mod store;
mod tab;
mod tls;
mod workers;
