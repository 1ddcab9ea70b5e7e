//! The time of a run.
//!
//! All crates above measure time as an [`Instant`]: nanoseconds since the origin of a run. In real time a [`MonotonicClock`]
//! returns the current instant, in virtual time an event loop. No other crate without I/O reads a clock.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![warn(missing_debug_implementations)]

pub mod instant;
pub mod monotonic;

pub use instant::Instant;
pub use monotonic::MonotonicClock;
