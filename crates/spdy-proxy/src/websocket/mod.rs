//! WebSockets through the accelerator: handshake, frames, tunnel.

pub(crate) mod connection;
pub(crate) mod frames;
pub(crate) mod tunnel;
