//! Which request goes on which connection next: a machine without I/O ([`Pool`]), and its removal of idle connections.

mod connection_pool;
mod idle_sweep;

pub use crate::pool::connection_pool::{Action, ConnectionId, Pool, RequestId};
