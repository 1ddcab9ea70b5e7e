//! The SPDY session machine: one endpoint, no socket, no clock, no task (SPDY/2, SPDY/3, SPDY/3.1 §2).
//!
//! ```text
//!  bytes ---> handle_input ----+                    +---> poll_event ----> what happened
//!  the hour -> handle_timeout -+--->  Session  -----+
//!  open, reply, send_data ... -+                    +---> poll_transmit -> bytes
//! ```
//!
//! [`session::Session`] is the whole door; [`config::Config`] holds every limit and choice;
//! [`event::Event`] is all that an owner hears; [`limit::Limit`] names what a peer can run into. What a frame's bytes mean is the business of
//! `spdy-frame`; what headers mean is the business of `spdy-http`.

mod closing;
mod commands;
mod deadline;
mod flood;
mod held_up;
mod outbound;
mod ping;
mod receive;
mod receive_stream;
mod scheduler;
mod stream;
mod streams;
pub mod tally;
mod undecided;
mod window;

pub mod config;
pub mod error;
pub mod event;
pub mod limit;
pub mod observe;
pub mod session;
