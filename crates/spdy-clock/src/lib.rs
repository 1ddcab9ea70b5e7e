//! The time of a run.
//!
//! Everything above counts time as an [`Instant`]: nanoseconds since the origin of
//! a run. In real time a [`MonotonicClock`] says where in the run we are; in virtual time
//! an event loop does. No other crate of the pure half reads a clock.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod instant;
pub mod monotonic;

pub use instant::Instant;
pub use monotonic::MonotonicClock;
