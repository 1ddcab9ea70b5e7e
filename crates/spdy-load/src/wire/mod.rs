//! The interface of a session to its connection: requests in, outcomes out; polled, never spawned.
//!
//! ```text
//!   send(slot) ----> queue -- flush --> socket
//!   events <-------- decode <- receive - socket
//! ```
//!
//! A connection identifies requests by the session's slots. Requests are written on `flush`, so all requests that become due at once
//! are sent in one write.

mod connection;
mod event;
mod http1;
mod http2;
mod ring;
mod spdy;

pub(crate) use connection::Wire;
pub(crate) use event::Event;
