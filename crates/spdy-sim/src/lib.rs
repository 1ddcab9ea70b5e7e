//! One page load in virtual time, and races of many.
//!
//! The released client, server and accelerator run here unchanged. They are async code over a [`Runtime`](spdy::runtime::Runtime) and
//! a [`Network`](spdy_net::network::Network). In a program these are tokio and the system's sockets; here they are [`runtime`] and
//! [`network`]:
//!
//! ```text
//! race.rs         many loads on all cores (workers.rs); race_results.rs groups them
//!    │
//! load/           one load: client, servers, result       accelerator/   the same through spdy-proxy
//!    │              options/    every choice of a load
//!    │              page_load/  a browser's order of requests
//!    ▼
//! network/        links and TCP packet by packet (spdy-netem)      seed.rs    a seed for each source of randomness
//!    ▼
//! runtime/        an executor whose clock jumps                    model.rs   the version of all of this
//! ```
//!
//! The same seed gives the same nanoseconds, whatever the machine and the number of threads. `docs/explanation/virtual-time.md`
//! explains what is real in a load and what is modelled.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

#[cfg(feature = "accelerator")]
pub mod accelerator;
pub mod load;
pub mod model;
pub mod network;
pub mod options;
pub mod page_load;
pub mod qlog;
pub mod race;
pub mod race_results;
pub mod runtime;
pub mod seed;
pub mod workers;
