//! Measuring page loads.
//!
//! A page load is driven by [`page_load`], a browser's order of requests without I/O, over the server and
//! the client that ship, on the network of [`sim`]: virtual time, real bytes. [`load`] does one load,
//! [`race`] many on all cores, and [`stats`] sums them up.
//! [`experiment`] varies factors over many cells, [`store`] keeps what they came to, and [`claims`]
//! holds what papers said of SPDY against it.
//! [`calibrate`] holds virtual time against the kernel's TCP, and [`live`] does the same load in real time.
//!
//! `docs/explanation/virtual-time.md` explains how we measure.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod accelerator;
pub mod audit;
#[cfg(target_os = "linux")]
pub mod calibrate;
pub mod claims;
pub mod doctor;
pub mod experiment;
#[cfg(target_os = "linux")]
pub mod live;
pub mod load;
pub mod lulic;
pub mod model;
pub mod options;
pub mod page_load;
pub mod race;
pub mod report;
pub mod sim;
pub mod stats;
pub mod store;
mod workers;
