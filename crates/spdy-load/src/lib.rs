//! Load for a server: many sessions with many streams over SPDY, HTTP/2 or HTTP/1.1, and a report of the results.
//!
//! ```text
//!  plan.rs (the requests)                                      report.rs (the results)
//!     |                                                            ^
//!  run.rs: threads, each with its own runtime -------------------> tally.rs
//!     |                                                            ^
//!  worker.rs: the sessions of one thread                           |
//!     |                                                            |
//!  session.rs: pace.rs has the times, slots are in flight ---------+
//!     |
//!  wire/: spdy | http1 | http2                  the bytes of one connection, counted by traffic.rs
//! ```
//!
//! A session is one task; a request is none, and in SPDY and HTTP/1.1 it allocates almost nothing, to leave the machine to the
//! server. There are two kinds of load (`pace.rs`). The closed loop keeps a number of requests in flight. The open loop starts
//! requests at a rate that does not depend on the server, and measures latency from the intended start, so a server that stalls
//! cannot hide it (*coordinated omission*).
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
