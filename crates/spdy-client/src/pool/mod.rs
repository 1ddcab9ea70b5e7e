//! Decides which connection each request uses: a state machine without I/O ([`Pool`]).
//!
//! `assignment.rs` assigns requests to connections, and `idle_sweep.rs` removes idle connections.

mod assignment;
mod connection_pool;
mod connection_state;
mod idle_sweep;

pub use crate::pool::connection_pool::{Action, ConnectionId, Pool, RequestId};
