//! Connections of clients and servers: sockets, TLS, QUIC, and HTTP in every version with SPDY.
//!
//! ```text
//!   Network::connect                          Listener::accept            network.rs, listen/tcp.rs
//!        |  TCP                                     |                     admission/: limits of connections
//!   ClientTls::connect                        ServerTls::accept           tls/client.rs, tls/server.rs
//!        |  bytes, and the protocol of ALPN         |
//!        |                                    negotiate::sniff            negotiate.rs: ALPN, or the first bytes
//!        |  Protocol                                |
//!   Connection::start                         serve_connection            connection.rs, serve.rs
//!        |                                          |
//!      http1 / http2 / spdy  <--- bytes --->  http1 / http2 / spdy        http1/, http2/, spdy_session.rs: both roles each
//!        |                                          |                     (over QUIC: quic/, http3/)
//!   http::Response<Body>                      Handler::answer             handler.rs
//!        `------------- behind a 101 ---------------'                     http1/upgrade.rs
//! ```
//!
//! The other files at the root, and `options/`, `head/`, `interim/` and `timing/`, are shared by all protocols: they know
//! none of the folders that speak one. `tls/` knows only those, `quic/` and `http3/` only those and `tls/`. Only
//! `connection.rs`, `serve.rs` and `listen/` know them all.
//!
//! - Which connections are admitted: `admission/` and `listen/connection_acceptor.rs`. Which proxies are trusted to name
//!   a client: `listen/trusted_proxies.rs`.
//! - How slow a peer may be: `timing/progress_timeout.rs`. `limit.rs` names and counts every limit.
//! - Why a body waits: `shims/h2/write_scheduler.rs` and `shims/h2/window_tracker.rs` over HTTP/2,
//!   `http3/quinn_shims/send_budget.rs` and `http3/quinn_shims/wake_detector.rs` over HTTP/3.
//! - What h2, hyper and quinn do not offer: the tables in `shims/mod.rs` and `http3/quinn_shims/mod.rs`.
//!
//! Time and tasks come only from [`spdy::runtime::Runtime`], so all of this also runs in virtual time. Only
//! [`network::SystemNetwork`] and [`listen`] use the operating system.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod admission;
pub mod connection;
pub mod connection_slot;
pub mod error;
pub mod handler;
mod head;
pub mod header_bytes;
pub mod http1;
mod http2;
#[doc(hidden)] // only http3::fuzz_api is public, for fuzz/
pub mod http3;
pub mod interim;
pub mod latch;
pub mod limit;
pub mod listen;
mod log_throttle;
pub mod negotiate;
pub mod network;
pub mod options;
mod priority;
pub mod protocol;
pub mod quic;
pub mod refusal;
pub mod serve;
mod serve_context;
pub mod shims;
mod spdy_session;
pub mod tap;
mod timing;
pub mod tls;
mod udp_socket;
mod upload_windows;
pub mod wall_clock;
