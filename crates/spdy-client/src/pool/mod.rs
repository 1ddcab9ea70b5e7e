//! Decides which connection each request uses: a state machine without I/O ([`Pool`]), and its removal of idle connections.

mod connection_pool;
mod idle_sweep;

pub use crate::pool::connection_pool::{Action, ConnectionId, Pool, RequestId};
