//! HTTP/1.1 on both sides, by hyper (RFC 9112).
//!
//! hyper manages the state of the connection. This module runs it with the runtime's clock, counts the bytes of heads, and
//! distinguishes a request that was never sent from one that was lost.

mod client;
mod request_check;
mod send;
mod server;
pub mod upgrade;

pub(crate) use client::Http1Client;
pub(crate) use server::serve;
