#![doc = include_str!("../README.md")]
//!
//! # Structure
//!
//! ```text
//! Client::send --> Pool (pool/, no I/O): which request on which connection next
//!                    |  Connect              |  Assign
//!                 connect.rs              exchange_body.rs: send, wait for the head, hand out the body
//!                    |  dns.rs, TCP, TLS     |  its end, or its drop, frees the connection
//!                    `-----> spdy_net::connection::Connection <-----'
//! ```
//!
//! Time and tasks come from the [`Runtime`](spdy::runtime::Runtime) of the client, names and connections from its
//! [`Network`](spdy_net::network::Network). The same code runs in virtual time.
#![warn(missing_debug_implementations)]

mod answered_addresses;
pub mod client;
pub mod config;
mod connect;
mod dns;
pub mod error;
mod exchange_body;
pub mod origin;
pub mod pool;
pub mod retry_budget;
pub mod route;
pub mod timing;
#[cfg(feature = "tower")]
mod tower;
pub mod upgrade;
mod upload_progress;

pub use client::{Client, Config, Stats};
pub use error::{ConnectFailure, Error};
pub use origin::Origin;
// Exported so that a program can create a client and its requests without a dependency on these crates.
pub use spdy::client::{Push, PushInfo, PushLimits};
pub use spdy::{
    Body, Compression, Instant, Metrics, Priority, Runtime, Secrets, SharedRuntime, Version, body,
    runtime,
};
pub use spdy_net::error::ExchangeError;
pub use spdy_net::network::BoxIo;
pub use spdy_net::network::{Network, SharedNetwork, SystemNetwork};
pub use spdy_net::options::{ClientOptions, QlogFiles, QuicOptions, SpdyClientOptions};
pub use spdy_net::protocol::Protocol;
pub use spdy_net::tls;
