//! The common parts of connections in all protocols: networks, options, limits, timeouts, TLS.
//!
//! | subject | files |
//! | --- | --- |
//! | sockets | `network.rs` (a trait, and the system's sockets), `udp_socket.rs` |
//! | protocols | `protocol.rs`; `tls/` (certificates, ALPN, key logs) |
//! | a server's requests | `handler.rs` (the trait that responds), `refusal.rs` (a response without it), `serve_context.rs` (what each protocol's server gets), `interim/` (100, 103), `client_certificate.rs`, `early_data.rs` (0-RTT) |
//! | bodies | `body_wrapper.rs` (a body around another one), `body_read_timeout.rs` (more time for one request's body) |
//! | message heads | `head/` (checks and host), `priority.rs` (RFC 9218), `header_bytes.rs` (their bytes on the wire) |
//! | slow peers | `timing/` (progress, idle connections), `upload_windows.rs` (receive windows), `limit.rs` (names and counts all limits) |
//! | start of a connection | `congestion/` (windows of earlier connections) |
//! | end of a connection | `latch.rs` (a signal), `connection_slot.rs` (a slot that another connection needs), `error.rs` |
//! | settings of the caller | `options/`, `tap.rs` (an observer of a client's bytes) |
//!
//! This crate speaks no protocol and accepts no connection. `spdy-h3` speaks HTTP/3 on it, and `spdy-net` all other protocols.
//! Programs depend on `spdy-net`, which re-exports the modules that they need.
//!
//! Time and tasks come only from [`spdy::runtime::Runtime`], so all of this also runs in virtual time. Only
//! [`network::SystemNetwork`] uses the operating system's network.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![warn(missing_debug_implementations)]

pub mod body_read_timeout;
pub mod body_wrapper;
pub mod client_certificate;
pub mod congestion;
pub mod connection_slot;
pub mod early_data;
pub mod error;
pub mod handler;
pub mod head;
pub mod header_bytes;
pub mod interim;
pub mod latch;
pub mod limit;
pub mod network;
pub mod options;
pub mod priority;
pub mod protocol;
pub mod refusal;
pub mod serve_context;
pub mod tap;
pub mod timing;
pub mod tls;
mod udp_socket;
pub mod upload_windows;
