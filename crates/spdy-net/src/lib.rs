//! The only sockets, and everything a connection is before it is HTTP.
//!
//! ```text
//!   Network::connect                          Listener::accept            network.rs, listen/tcp.rs
//!        |  TCP                                     |
//!   ClientTls::connect                        ServerTls::accept           tls/config.rs (certificates, verify, pins, key_log)
//!        |  bytes, and what ALPN chose              |
//!        |                                    negotiate::server           negotiate.rs: ALPN, or the first bytes
//!        |  Protocol                                |
//!   Connection::start                         serve::serve_connection     connection.rs, serve.rs
//!        |                                          |
//!      http1 / http2 / spdy  <--- bytes --->  http1 / http2 / spdy        a file or a folder each, both roles
//!        |                                          |
//!   http::Response<Body>                      Handler::answer             handler.rs
//!        `------------- behind a 101 ---------------'                     http1/upgrade.rs
//! ```
//!
//! Who is let in is `admission/` and `listen/connection_acceptor.rs`, whose word of a client is taken `listen/trusted_proxies.rs`, and how slow a peer may be `timing/progress_timeout.rs`; both count by the names of `limit.rs`. What a body waits for
//! is told by `shims/write_scheduler.rs` and `shims/window_tracker.rs` over HTTP/2, by `http3/room.rs` and `http3/bell.rs` over HTTP/3.
//!
//! Time and tasks come from [`spdy::runtime::Runtime`] alone, so that all of this runs in virtual
//! time too; only [`network::SystemNetwork`] and [`listen`] are of the operating system.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod admission;
pub mod connection;
pub mod connection_slot;
pub mod error;
pub mod handler;
pub mod http1;
mod http2;
#[doc(hidden)] // but for the door of fuzz/ nothing in it is public
pub mod http3;
pub mod interim;
pub mod latch;
pub mod limit;
pub mod listen;
mod log_throttle;
pub mod negotiate;
pub mod network;
pub mod protocol;
pub mod quic;
pub mod refusal;
mod request_head;
pub mod serve;
pub mod shims;
mod spdy_session;
pub mod tap;
mod timing;
pub mod tls;
mod upload_windows;
pub mod wall_clock;
