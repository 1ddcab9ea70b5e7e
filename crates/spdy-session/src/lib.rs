//! The SPDY session machine: one endpoint, no socket, no clock, no task.
//!
//! Contract (signatures are fixed points for the crates above; the rest is the author's):
//! see `session.rs`, `config.rs`, `event.rs`.

pub mod config;
pub mod error;
pub mod event;
pub mod observe;
pub mod session;
