//! Other servers on the servers' host: each ends TCP, TLS and the protocol, and gets every response from our site.
//!
//! ```text
//!   client's host            servers' host
//!     spdy-client ── link ──► gateway (a child process) ── HTTP/1.1 on loopback ──► server_side.rs: the page's site
//!                             every address, ports of the page
//! ```
//!
//! So every server sends the same status, headers and body for a request. `process.rs` starts the child on the thread of the host,
//! whose namespace it inherits, and ends it. `programs.rs` finds it, `nginx.rs` writes the configuration of nginx.

pub mod error;
mod nginx;
pub mod process;
pub mod programs;
