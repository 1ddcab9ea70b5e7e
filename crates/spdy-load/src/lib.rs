//! Load for a server: many sessions, many streams each, over SPDY, HTTP/2 or HTTP/1.1, and what came of it.
//!
//! ```text
//!  plan.rs (what is asked)                                     report.rs (what came of it)
//!     |                                                            ^
//!  run.rs: a thread each with a runtime of its own --------------> tally.rs
//!     |                                                            ^
//!  worker.rs: the sessions of one thread                           |
//!     |                                                            |
//!  session.rs: pace.rs says when, slots say what is in flight -----+
//!     |
//!  wire/: spdy | http1 | http2                  the bytes of one connection, counted by traffic.rs
//! ```
//!
//! A session is one task; a request is none, and in SPDY and HTTP/1.1 it allocates next to nothing, so that
//! the machine is left to the server. Two ways to ask (`pace.rs`): the closed loop keeps so many requests in
//! flight; the open loop begins them at a rate, whatever the server does, and counts latency from the
//! intended beginning, so that a server that stalls cannot hide it (*coordinated omission*).
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod error;
mod fault;
mod fine_timer;
mod pace;
pub mod plan;
pub mod process;
mod progress;
pub mod report;
pub mod run;
mod session;
mod tally;
pub mod target;
mod traffic;
mod wire;
mod worker;

pub use fault::FaultKind;
