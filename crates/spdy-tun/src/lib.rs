//! Links in real time: any program behind the link model of `spdy-netem`.
//!
//! ```text
//!   client's namespace                                            servers' namespace
//!   198.19.0.1                                                    every address is here
//!  +-----------------+        +---------------------------+      +-----------------+
//!  | sockets of the  |  link0 |  one thread: link_thread  | link0| sockets of the  |
//!  | kernel's TCP    |<------>|  emulator: netem's Path   |<---->| kernel's TCP    |
//!  +-----------------+   TUN  |  meter: what was achieved |  TUN +-----------------+
//!                             +---------------------------+
//! ```
//!
//! [`namespaces`] creates the process that owns everything, [`host`] a namespace with its device, [`network`] two hosts and the
//! wire between them. [`emulator`] is the machine in the middle: without device and clock, with the same [`Path`](spdy_netem::Path)
//! as in virtual time. [`stats`] states what a run achieved, and [`limits`] decides if it counts. [`capture`] stores its packets on
//! request.
//!
//! Linux only. `docs/explanation/real-time-links.md` explains which addresses are reachable, and known problems.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod capture;
pub mod emulator;
mod flow;
pub mod limits;
mod meter;
pub mod stats;

#[cfg(target_os = "linux")]
pub mod cpu;
#[cfg(target_os = "linux")]
pub mod error;
#[cfg(target_os = "linux")]
pub mod host;
#[cfg(target_os = "linux")]
mod link_thread;
#[cfg(target_os = "linux")]
pub mod namespaces;
#[cfg(target_os = "linux")]
mod netlink;
#[cfg(target_os = "linux")]
pub mod network;
#[cfg(target_os = "linux")]
pub mod timed_socket;
