//! One connection as a session drives it: requests in, what became of them out; polled, never spawned.
//!
//! ```text
//!   send(slot) ----> queue -- flush --> socket
//!   events <-------- decode <- receive - socket
//! ```
//!
//! A wire knows its requests by the slot that the session gave them. What it sends is written on `flush`, so
//! that all requests that became due at once leave in one write.

mod connection;
mod event;
mod http1;
mod http2;
mod ring;
mod spdy;

pub(crate) use connection::Wire;
pub(crate) use event::Event;
