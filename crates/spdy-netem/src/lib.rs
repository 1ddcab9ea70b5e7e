//! A network without I/O: links, and a packet-level model of TCP.
//!
//! Everything here is a machine that is told the time and answers with what happens next; nothing
//! reads a clock, opens a socket or rolls unseeded dice. The same configuration, seed and calls give
//! the same nanoseconds on any machine: times are integers, and so is every number that feeds one.
//!
//! ```text
//!   application            application
//!       | write/read           ^
//!   +---v----+            +----+---+
//!   |  Tcp   |            |  Tcp   |      tcp/       one endpoint, as Linux would behave
//!   +---+----+            +----^---+
//!       | Segment              |          segment    real payload, counted headers
//!   +---v----------------------+---+
//!   | Path: queue > rate > loss >  |      path       which pipes a packet passes
//!   |       delay (+ jitter)       |      pipe       queue and rate of one link
//!   +------------------------------+
//! ```
//!
//! A driver owns both ends and the path, and an ordered list of what is due: it offers each segment
//! that [`Tcp::poll_transmit`] gives to [`Path::offer`], hands it to the other end at the instant of
//! the verdict, and wakes an end at its [`Tcp::poll_timeout`]. Names for whole networks are in
//! [`profile`].
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod loss;
pub mod path;
pub mod pipe;
pub mod profile;
pub mod queue;
pub mod rate;
pub mod rng;
pub mod segment;
pub mod tcp;

pub use path::{Direction, Path, PathConfig, PathOutcome};
pub use profile::Profile;
pub use segment::Segment;
pub use tcp::{Tcp, TcpConfig};
