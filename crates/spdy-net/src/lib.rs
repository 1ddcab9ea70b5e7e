//! Connections of clients and servers: sockets, TLS, QUIC, and HTTP in every version with SPDY.
//!
//! ```text
//!   Network::connect                          Listener::accept            core: network.rs; listen/tcp.rs
//!        |  TCP                                     |                     admission/: limits of connections
//!   ClientTls::connect                        ServerTls::accept           core: tls/client.rs, tls/server.rs
//!        |  bytes, and the protocol of ALPN         |
//!        |                                    negotiate::sniff            negotiate.rs: ALPN, or the first bytes
//!        |  Protocol                                |
//!   Connection::start                         serve_connection            connection.rs, serve.rs
//!        |                                          |
//!      http1 / http2 / spdy  <--- bytes --->  http1 / http2 / spdy        http1/, http2/, spdy_session.rs: both roles each
//!        |                                          |                     (over QUIC: spdy-h3)
//!   http::Response<Body>                      Handler::answer             core: handler.rs
//!        `------------- after a 101 ----------------'                     http1/upgrade.rs
//! ```
//!
//! `core` is `spdy-net-core`: what all protocols share, from the traits of a network and a handler to limits, timeouts and TLS.
//! `spdy-h3` is HTTP/3 and QUIC. This crate has the protocols over TCP, and puts all together: only `connection.rs`, `serve.rs` and
//! `listen/` know every protocol. It re-exports the modules of both crates that its users need.
//!
//! - Which connections are admitted: `admission/` and `listen/connection_acceptor.rs`. Which proxies are trusted to name
//!   a client: `listen/trusted_proxies.rs`.
//! - With which congestion window a connection starts: `congestion/` of core.
//! - How slow a peer may be: `timing/progress_timeout.rs` of core. Its `limit.rs` names and counts every limit.
//! - Why a body waits: `shims/h2/write_scheduler.rs` and `shims/h2/window_tracker.rs` over HTTP/2,
//!   `quinn_shims/send_budget.rs` and `quinn_shims/wake_detector.rs` of `spdy-h3` over HTTP/3.
//! - What h2, hyper and quinn do not offer: the tables in `shims/mod.rs` and in `quinn_shims/mod.rs` of `spdy-h3`.
//!
//! `datagrams.rs` is a UDP socket for DNS: one datagram at a time. `frame_per_write.rs` divides a client's output as a browser does.
//!
//! Time and tasks come only from [`spdy::runtime::Runtime`], so all of this also runs in virtual time. Only
//! [`network::SystemNetwork`] and [`listen`] use the operating system.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![warn(missing_debug_implementations)]

pub mod admission;
pub mod connection;
pub mod datagrams;
mod frame_per_write;
pub mod http1;
mod http2;
pub mod listen;
mod log_throttle;
pub mod negotiate;
pub mod serve;
pub mod shims;
mod spdy_session;
pub mod wall_clock;

#[doc(inline)]
pub use spdy_h3::quic;
#[doc(inline)]
pub use spdy_net_core::{
    body_read_timeout, body_wrapper, client_certificate, congestion, connection_slot, early_data,
    error, handler, header_bytes, interim, latch, limit, network, options, priority, protocol,
    refusal, tap, tls,
};
