//! The only sockets, and everything a connection is before it is HTTP.
//!
//! ```text
//!   Network::connect                          Listener::accept            network.rs, listen.rs
//!        |  TCP                                     |
//!   ClientTls::connect                        ServerTls::accept           tls.rs (certificates, verify, pins, key_log)
//!        |  bytes, and what ALPN chose              |
//!        |                                    negotiate::server           negotiate.rs: ALPN, or the first bytes
//!        |  Protocol                                |
//!   Connection::start                         serve::serve_connection     connection.rs, serve.rs
//!        |                                          |
//!      http1 / http2 / spdy  <--- bytes --->  http1 / http2 / spdy        a file or a folder each, both roles
//!        |                                          |
//!   http::Response<Body>                      Handler::answer             handler.rs
//!        `------------- behind a 101 ---------------'                     switch.rs
//! ```
//!
//! Who is let in is `admission/` and `doorkeeper.rs`, whose word of a client is taken `in_front.rs`, and how slow a peer may be `stall.rs`; both count by the names of `limit.rs`. What a body waits for
//! is told by `turns.rs` and `window_watch.rs` over HTTP/2, by `http3/room.rs` and `http3/bell.rs` over HTTP/3.
//!
//! Time and tasks come from [`spdy::runtime::Runtime`] alone, so that all of this runs in virtual
//! time too; only [`network::SystemNetwork`] and [`listen`] are of the operating system.

pub mod admission;
pub mod allowed_hosts;
pub mod authority_file;
pub mod byte_count;
pub mod calendar;
pub mod certificates;
pub mod connection;
mod doorkeeper;
pub mod early_hints;
pub mod error;
pub mod expectation;
mod gathered;
mod growing_records;
pub mod handed;
pub mod handler;
mod head_clock;
mod head_size;
mod held_back;
mod http1;
mod http2;
#[doc(hidden)] // but for the door of fuzz/ nothing in it is public
pub mod http3;
pub mod identities;
mod idle;
pub mod in_front;
pub mod interim;
pub mod key_log;
pub mod latch;
pub mod limit;
pub mod listen;
mod literal_answers;
pub mod literal_head;
pub mod local_certificates;
pub mod negotiate;
pub mod network;
mod open_connections;
pub mod pins;
pub mod protocol;
mod proxy_protocol;
pub mod quic;
pub mod quic_listen;
pub mod refusal;
mod request_head;
pub mod seat;
mod seldom;
pub mod serve;
pub mod sockets;
mod spdy_session;
mod stall;
pub mod switch;
pub mod tap;
pub mod tls;
pub mod tls_error;
mod turns;
mod upload_windows;
pub mod verify;
mod window_watch;
