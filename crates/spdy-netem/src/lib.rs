//! A network without I/O: links, and a packet-level model of TCP.
//!
//! Every type here is a machine: a call passes the time and an event, and returns the next action. Nothing reads a clock, opens a
//! socket or uses unseeded randomness. The same configuration, seed and calls give the same nanoseconds on any machine: times are
//! integers, and so is every number that affects one.
//!
//! ```text
//!   application            application
//!       | write/read           ^
//!   +---v----+            +----+---+
//!   |  Tcp   |            |  Tcp   |      tcp/       one endpoint, modelled on Linux
//!   +---+----+            +----^---+
//!       | Segment              |          segment    real payload, counted headers
//!   +---v----------------------+---+
//!   | Path: queue > link > loss >  |      path       the pipes of a packet
//!   |       delay (+ jitter)       |      pipe       queue and link: queue/, wire (rate, trace)
//!   +------------------------------+
//! ```
//!
//! A driver owns both ends and the path, and an ordered list of timers. It offers each segment that [`Tcp::poll_transmit`] returns to
//! [`Path::offer`], passes it to the other end at the instant of the outcome, and calls an end at its [`Tcp::poll_timeout`]. With a managed
//! queue it also calls [`Path::poll_departure`]. Names of whole networks are in [`profile`].
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
pub mod trace;
pub mod wire;

pub use path::{Direction, Path, PathConfig, PathOutcome};
pub use profile::Profile;
pub use segment::Segment;
pub use tcp::{Tcp, TcpConfig};
