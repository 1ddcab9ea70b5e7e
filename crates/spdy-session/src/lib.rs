//! The SPDY session machine: one endpoint, no socket, no clock, no task (SPDY/2, SPDY/3, SPDY/3.1 §2).
//!
//! ```text
//!  bytes ---> handle_input ----+                    +---> poll_event ----> what happened
//!  time --> handle_timeout ----+--->  Session  -----+
//!  open, reply, send_data ... -+                    +---> poll_transmit -> bytes
//! ```
//!
//! [`session::Session`] is the whole interface; [`config::Config`] has every limit and choice; [`event::Event`] lists all events for
//! the owner; [`limit::Limit`] names the limits for a peer. `spdy-frame` interprets the bytes of a frame; `spdy-http` interprets headers.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![warn(missing_debug_implementations)]

pub mod config;
pub mod counters;
pub mod error;
pub mod event;
pub mod limit;
pub mod observe;
pub mod session;
mod state;
